"""The reference: the user's module as a function of inputs and weights, at any shape and precision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem

LoadProblem = Callable[[str], Problem]


def test_given_weights_are_used_and_left_alone() -> None:
    problem = from_function(nn.Linear(4, 2), lambda: [torch.randn(3, 4)])
    tensors = {"input": torch.randn(5, 4), "weight": torch.randn(2, 4), "bias": torch.randn(2)}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    (got,) = problem.reference(tensors, torch.float64)
    expected = tensors["input"].double() @ tensors["weight"].double().T + tensors["bias"].double()
    torch.testing.assert_close(got, expected, rtol=1e-15, atol=1e-15)
    assert all(torch.equal(before[name], tensors[name]) for name in tensors)


def test_train_mode_returns_outputs_and_names_what_it_changes(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.bn = nn.BatchNorm2d(3)
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls += 1
                return self.bn(x)

        def get_inputs(): return [torch.randn(4, 3, 5, 5)]
        """
    )
    assert set(problem.graph.mutated) == {
        "bn_running_mean",
        "bn_running_var",
        "bn_num_batches_tracked",
        "calls",
    }
    tensors = problem.draw(0)
    first = problem.reference(tensors, torch.float64)
    second = problem.reference(tensors, torch.float64)
    assert torch.equal(first[0], second[0])
    assert not tensors["bn_running_mean"].any() and not tensors["calls"].any()
    assert abs(float(first[0].mean())) < 1e-12


def test_casts_inside_the_module_do_not_round_the_fp64_reference(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def forward(self, x):
                wide = x.float() if x.dtype == torch.float16 else x.to(torch.float32)
                scale = torch.tensor(0.1) + torch.full((1,), 0.2, dtype=torch.float32)
                return (wide * scale).type(torch.float32) + torch.zeros(3)

        def get_inputs(): return [torch.randn(4, 3)]
        """
    )
    x = torch.randn(4, 3, dtype=torch.float64)
    (got,) = problem.reference({"x": x}, torch.float64)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, x * (0.1 + 0.2), rtol=1e-15, atol=0.0)
    assert torch.get_default_dtype() == torch.float32


def test_integers_stay_integers() -> None:
    def pick(
        table: torch.Tensor, index: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return table[index] * mask, index.sum()

    problem = from_function(
        pick, [torch.randn(9, 2), torch.arange(9, dtype=torch.int32), torch.ones(9, 1, dtype=torch.bool)]
    )
    out0, out1 = problem.reference(problem.draw(0), torch.float64)
    assert out0.dtype == torch.float64 and out1.dtype == torch.int64


def test_tied_weights_are_one_tensor() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4, bias=False)
            self.second = nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    problem = from_function(Tied(), [torch.randn(3, 4)])
    assert [spec.name for spec in problem.target.tensors] == ["x", "first_weight"]
    x, weight = torch.randn(3, 4), torch.randn(4, 4)
    (got,) = problem.reference({"x": x, "first_weight": weight}, torch.float64)
    torch.testing.assert_close(got, x.double() @ weight.double().T @ weight.double().T)


def test_every_shape_case_runs_in_the_reference() -> None:
    problem = from_function(nn.Conv2d(3, 4, 3, padding=1), lambda: [torch.randn(2, 3, 20, 24)])
    for case in problem.shapes:
        tensors = {spec.name: torch.randn(spec.shape) for spec in case.signature.tensors}
        (out,) = problem.reference(tensors, torch.float64)
        assert tuple(out.shape) == case.signature.outputs[0].shape
