"""Files in the KernelBench convention load unchanged, cost nothing to look at, and fail in words."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from cupilot.errors import ProblemError, UsageError
from cupilot.problem.loading import from_function, load
from cupilot.problem.precision import Arithmetic
from cupilot.problem.problem import Problem
from cupilot.types import DType, Role

LoadProblem = Callable[[str], Problem]
WriteProblem = Callable[[str], Path]

LAYER = """
class Model(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(features, eps=eps)
        self.register_buffer("offset", torch.linspace(0, 1, features))
        self.scale = 0.5

    def forward(self, x, flag: bool, power: int = 2):
        return self.norm(x) * self.scale ** power + self.offset

def get_inputs():
    return [torch.randn(6, 8), True]

def get_init_inputs():
    return [8]
"""


def names(problem: Problem) -> dict[str, Role]:
    return {spec.name: spec.role for spec in problem.target.tensors}


def test_inputs_weights_and_numbers_have_the_names_of_kernel_files(load_problem: LoadProblem) -> None:
    problem = load_problem(LAYER)
    assert names(problem) == {
        "x": Role.INPUT, "norm_weight": Role.PARAMETER, "norm_bias": Role.PARAMETER, "offset": Role.BUFFER,
    }  # fmt: skip
    assert problem.target.scalars["flag"] is True
    assert problem.target.scalars["self.scale"] == 0.5
    assert problem.target.scalars["self.norm_eps"] == 1e-5
    assert problem.target.scalars["self.norm_normalized_shape_0"] == 8
    assert "self.training" not in problem.target.scalars
    assert [str(out) for out in problem.target.outputs] == ["out: f32[6, 8]"]
    assert problem.name == "example"


def test_lists_dicts_none_and_strings_are_arguments(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def forward(self, xs, named, mask, how, sizes, *rest):
                y = xs[0] + xs[1][0] * named["w"] + sum(rest)
                return {"y": y if mask is None else y * mask, "pair": (y.sum(0), [y.argmax(1)])}

        def get_inputs():
            x = torch.randn(4, 3)
            return [[x, (x,)], {"w": torch.ones(3)}, None, "mean", [3, 4], torch.zeros(3), torch.ones(3)]

        def get_init_inputs():
            return []
        """
    )
    assert list(names(problem)) == ["xs0", "xs1_0", "named_w", "rest0", "rest1"]
    assert problem.target.scalars == {"sizes0": 3, "sizes1": 4}
    assert [str(out) for out in problem.target.outputs] == ["out0: f32[4, 3]", "out1: f32[3]", "out2: i64[4]"]
    tensors = problem.draw(3)
    y = tensors["xs0"] + tensors["xs1_0"] + 1
    got = problem.reference(tensors, torch.float64)
    torch.testing.assert_close(got[0], y.double())
    assert torch.equal(got[2], y.argmax(1))


def test_a_module_without_numbers_and_weights_needs_no_init_inputs(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def forward(self, x): return x.relu()

        def get_inputs(): return [torch.randn(5)]
        """
    )
    assert problem.target.scalars == {}


def test_six_gigabytes_cost_nothing_to_look_at(load_problem: LoadProblem) -> None:
    resident_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    problem = load_problem(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16384, 32768)

            def forward(self, x): return torch.softmax(self.linear(x), 1)

        def get_inputs(): return [torch.rand(98304, 16384)]

        def get_init_inputs(): return []
        """
    )
    shapes, domains = problem.shapes, problem.domains
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident_kb
    assert problem.target.tensors[0].size_bytes == 6 << 30
    assert len(shapes) > 1 and "x" in domains
    assert grown_kb < 512 << 10
    assert time.perf_counter() - started < 60  # drawing it would take minutes and swap
    assert not problem.target_fits(16 << 30)
    scaled = problem.scaled(3 << 30)
    assert scaled is not None and scaled.shapes["x"][1] == 16384


def test_generators_may_use_numpy(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        import numpy as np

        class Model(nn.Module):
            def forward(self, x, scale): return x * scale

        def get_inputs():
            x = np.random.rand(7, 5).astype("float32")
            return [torch.from_numpy(x), float(x.max() > 2)]

        def get_init_inputs(): return []
        """
    )
    assert problem.target.tensors[0].shape == (7, 5)
    assert torch.equal(problem.draw(4)["x"], problem.draw(4)["x"])
    assert not torch.equal(problem.draw(4)["x"], problem.draw(5)["x"])


def test_code_that_looks_at_values_is_learned_from_small_tensors(load_problem: LoadProblem) -> None:
    text = """
        class Model(nn.Module):
            def forward(self, x): return x / x.abs().max().item()

        def get_inputs(): return [torch.randn({rows}, 64)]
        """
    problem = load_problem(text.format(rows=32))
    assert problem.program.uses_values
    assert problem.target.outputs[0].shape == (32, 64)
    assert not problem.graph.complete
    with pytest.raises(ProblemError, match=r"\.item\(\)"):
        load_problem(text.format(rows=1 << 26))


def test_sizes_choose_keyword_arguments(write_problem: WriteProblem) -> None:
    path = write_problem(
        """
        class Model(nn.Module):
            def __init__(self, features):
                super().__init__()
                self.linear = nn.Linear(features, 2)

            def forward(self, x): return self.linear(x)

        def get_inputs(n=3, features=4): return [torch.randn(n, features)]

        def get_init_inputs(features=4): return [features]

        SIZES = {"paper": {"n": 30, "features": 40}}
        """
    )
    assert load(path).target.tensors[0].shape == (3, 4)
    assert load(path, "cpu").target.tensors[0].shape == (3, 4)
    assert load(path, "paper").target.tensors[0].shape == (30, 40)
    with pytest.raises(ProblemError, match="cpu, paper"):
        load(path, "huge")


def test_shapes_make_several_targets(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def forward(self, x): return x.sum(-1)

        def make_inputs(rows, columns): return [torch.randn(rows, columns)]

        SHAPES = [(8, 1000), (128, 64)]
        """
    )
    assert [case.signature.outputs[0].shape for case in problem.targets] == [(8,), (128,)]
    assert [case.name for case in problem.shapes[:2]] == ["target-1", "target-2"]
    assert problem.draw(1, problem.targets[1])["x"].shape == (128, 64)
    with pytest.raises(UsageError, match="targets only"):
        problem.draw(1, problem.shapes[-1])


def test_shapes_must_agree_on_names_and_types(load_problem: LoadProblem) -> None:
    with pytest.raises(ProblemError, match="SHAPES"):
        load_problem(
            """
            class Model(nn.Module):
                def forward(self, x): return x.sum(-1)

            def make_inputs(rank): return [torch.randn(*[3] * rank)]

            SHAPES = [(2,), (3,)]
            """
        )


def test_a_declared_precision_casts_what_is_stored(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        PRECISION = "f16/f32"

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 3)

            def forward(self, x): return self.linear(x)

        def get_inputs(): return [torch.randn(5, 4)]
        """
    )
    assert problem.precision.arithmetic is Arithmetic.F32 and str(problem.precision) == "f16/f32"
    assert {spec.dtype for spec in (*problem.target.tensors, *problem.target.outputs)} == {DType.F16}
    assert {tensor.dtype for tensor in problem.draw(0).values()} == {torch.float16}


def test_functions_and_modules_make_problems() -> None:
    x = torch.randn(3, 4)
    problem = from_function(lambda x, k: x * k, [x, 2], name="scale")
    assert problem.name == "scale" and problem.target.scalars == {"k": 2}
    drawn = problem.draw(0)["x"]
    assert torch.equal(drawn, x)
    drawn.zero_()
    assert x.any(), "the caller's tensor stays as it is"

    linear = nn.Linear(4, 2)
    problem = from_function(linear, lambda: [torch.randn(3, 4)])
    assert torch.equal(problem.weights(7)["weight"], linear.weight)
    assert not torch.equal(problem.draw(1)["input"], problem.draw(2)["input"])


def test_functions_of_torch_need_no_names() -> None:
    product = from_function(torch.matmul, lambda: [torch.randn(3, 4), torch.randn(4, 5)])
    assert list(names(product)) == ["x0", "x1"]
    assert list(names(from_function(torch.exp, [torch.randn(3)]))) == ["x"]


def test_plain_tensor_attributes_are_handed_to_kernels(load_problem: LoadProblem) -> None:
    problem = load_problem(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.randn(5)

            def forward(self, x): return x + self.table

        def get_inputs(): return [torch.randn(2, 5)]
        """
    )
    assert names(problem)["table"] is Role.BUFFER


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def get_inputs(:\n", r"example\.py:4: "),
        ("x = 1 / 0\n", r"example\.py:4: running the file failed with ZeroDivisionError"),
        ("def get_inputs(): return []\n", "defines no Model"),
        ("class Model(nn.Module): pass\n", "defines no get_inputs"),
        ("import missing_module\n", "missing_module"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("Model = 3\ndef get_inputs(): return []\n", "defines no Model"),
        ("PRECISION = 'f33'\n" + LAYER, "storage/arithmetic"),
    ],
)
def test_broken_files_are_named_with_line_and_reason(
    write_problem: WriteProblem, text: str, words: str
) -> None:
    with pytest.raises(ProblemError, match=words) as caught:
        load(write_problem(text))
    assert caught.value.hint


def module(forward: str, inputs: str = "torch.randn(4, 4)", init: str = "pass") -> str:
    return (
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, {forward}\ndef get_inputs(): return [{inputs}]\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (module("x): return x @ x[0:3]"), r"example\.py:8: forward failed with RuntimeError"),
        (module("x, y): return x"), "get_inputs returns 1 arguments"),
        (module("out): return out"), "both called out"),
        (module("range): return range"), "belongs to its language"),
        (module("x): return x.mean().item()", "torch.randn(3)"), "returns a float"),
        (module("x): return None"), "returns no tensor"),
        (module("x): return x * 2", "torch.randn(0, 4)"), "no elements"),
        (module("x): return x.cuda()"), "forward failed with"),
        (module("x): return torch.fft.fft(x)"), "complex"),
        (module("x): return x.to_sparse()"), "sparse|Sparse"),
        (module("x): return x[x > 0]"), "depends on the values"),
        (module("x): return F.dropout(x)"), "random"),
        (module("x): return x + torch.rand(4)"), "random"),
        (module("x): return x * random.random()", init="global random; import random"), "random"),
        (module("x): return x + np.random.rand()", init="global np; import numpy as np"), "random"),
        (module("x): return x.half().float()"), "rounds to f16"),
        (module("x): return x + self.ws[0]", init="self.ws = [torch.randn(100, 1, 1)]"), "register_buffer"),
        (module("x): return x", "object()"), "is a object"),
        (module("x): return x", init="self.a = nn.Linear(2, 2); self.a_bias = self.a.weight"), "a_bias"),
        (module("a_bias): return a_bias", init="self.a = nn.Linear(2, 2)"), "both called a_bias"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused_with_a_reason(
    write_problem: WriteProblem, text: str, words: str
) -> None:
    with pytest.raises(ProblemError, match=words) as caught:
        load(write_problem(text))
    assert caught.value.hint


def test_dropout_that_drops_nothing_is_no_randomness(load_problem: LoadProblem) -> None:
    problem = load_problem(module("x): return F.dropout(x, 0.0) + F.dropout(x, 0.5, training=False)"))
    assert [node.op for node in problem.graph.nodes] == ["input", "add"]


def test_what_a_file_prints_stays_off_standard_output(
    load_problem: LoadProblem, capsys: pytest.CaptureFixture[str]
) -> None:
    load_problem("print('hello')\n" + module("x): print('forward'); return x + 1"))
    assert capsys.readouterr().out == ""


def test_loading_leaves_the_callers_random_state_alone(load_problem: LoadProblem) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_problem("torch.manual_seed(99)\n" + module("x): return x.sum(0)")).draw(8)
    assert torch.equal(torch.rand(3), expected)
