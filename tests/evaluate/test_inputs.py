"""Distributions: deterministic, all different, inside each tensor's domain, sharp where they claim to be."""

from __future__ import annotations

import pytest
import torch

from cupilot.evaluate import patterns
from cupilot.evaluate.inputs import Distribution, derived_seed, distributions, draw_inputs
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem


def lookup(x: torch.Tensor, w: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return (x @ w)[index]


def lookup_inputs() -> list[torch.Tensor]:
    return [torch.randn(20, 30), torch.rand(30, 17), torch.randint(0, 20, (50,))]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return from_function(lookup, lookup_inputs)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def test_every_distribution_fills_every_tensor_inside_its_domain(problem: Problem) -> None:
    for case in problem.shapes:
        domains = problem.domains_at(case)
        for distribution in distributions(problem):
            tensors = draw_inputs(problem, case, distribution, 5)
            for spec in case.signature.tensors:
                tensor = tensors[spec.name]
                assert tuple(tensor.shape) == spec.shape
                assert tensor.is_contiguous()
                again = domains[spec.name].project(tensor)
                assert torch.equal(again.nan_to_num(7.0), tensor.nan_to_num(7.0))


def test_the_same_seed_gives_the_same_inputs_and_another_one_others(problem: Problem) -> None:
    case = problem.shapes[0]
    for distribution in distributions(problem):
        first, second, third = (draw_inputs(problem, case, distribution, seed) for seed in (5, 5, 6))
        assert torch.equal(first["x"].nan_to_num(7.0), second["x"].nan_to_num(7.0))
        assert any(not torch.equal(first[n].nan_to_num(7.0), third[n].nan_to_num(7.0)) for n in ("x", "w"))


def test_names_are_unique_and_say_what_they_expose(problem: Problem) -> None:
    every = distributions(problem)
    assert len({d.name for d in every}) == len(every)
    assert all(d.exposes for d in every)


def test_low_bits_round_the_same_way_in_every_narrower_type() -> None:
    x = patterns.make("low bits", (4096,), 0, generator())
    for narrow in (
        x.half().float(),
        x.bfloat16().float(),
        (x.view(torch.int32) & ~0x1FFF).view(torch.float32),
    ):
        assert (narrow != x).all()
    assert (x.half().float() < x).float().mean() > 0.85


def test_low_bits_in_one_tensor_leave_the_others_exact_in_bf16(problem: Problem) -> None:
    tensors = draw_inputs(problem, problem.shapes[0], Distribution("low bits in", "x"), 1)
    assert torch.equal(tensors["w"], tensors["w"].bfloat16().float())
    assert (tensors["x"] != tensors["x"].bfloat16().float()).all()


@pytest.mark.parametrize("dim", [0, 1])
def test_a_selection_has_one_term_in_each_line(dim: int) -> None:
    x = patterns.make("selection", (6, 9), dim, generator())
    assert ((x != 0).sum(dim) == 1).all()
    assert (x[x != 0] != x[x != 0].half().float()).all()


def test_edges_are_all_that_is_not_zero() -> None:
    x = patterns.make("edges", (5, 6, 7), 0, generator())
    assert (x[1:-1, 1:-1, 1:-1] == 0).all()
    assert (x[-1] != 0).all()


def test_partners_cancel_along_the_last_dimension() -> None:
    x = patterns.make("cancelling", (8, 64), 0, generator()).double()
    assert (x.sum(-1).abs() < 1e-2 * x.abs().sum(-1)).all()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2)])
@pytest.mark.parametrize("pattern", patterns.EXPOSES)
def test_degenerate_shapes_are_filled_too(shape: tuple[int, ...], pattern: str) -> None:
    assert patterns.make(pattern, shape, 0, generator()).shape == torch.Size(shape)


def test_seeds_follow_from_all_their_parts() -> None:
    assert derived_seed(1, "a") == derived_seed(1, "a")
    assert (
        len({derived_seed(1, "a"), derived_seed(1, "b"), derived_seed(2, "a"), derived_seed(1, "a", 0)}) == 4
    )
