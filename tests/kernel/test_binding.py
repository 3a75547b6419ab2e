"""Names of a problem and of a tuning point, brought together."""

from __future__ import annotations

import pytest

from cupilot.errors import KernelSyntaxError, ProblemError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.launch import GridStyle, Launch, TensorArg, run
from cupilot.types import DType, Role, Scalar, Signature, TensorSpec

FILE = parse_kernel(
    "/* cupilot 1\ntune:\n    N = 4 | 8\nlaunch:\n    k[N](x, fc_weight, out, self.eps, k)\n*/\nvoid k() {}\n"
)


def signature(*inputs: str, scalars: dict[str, Scalar] | None = None) -> Signature:
    tensors = tuple(TensorSpec(name, (2,), DType.F32, Role.INPUT) for name in inputs)
    return Signature(tensors, scalars or {}, (TensorSpec("out", (2,), DType.F32, Role.OUTPUT),))


def test_tensors_numbers_and_tunables_are_bound():
    bindings = bind(FILE, signature("x", "fc_weight", scalars={"self.eps": 1e-5, "k": 3}), {"N": 8})
    assert set(bindings) == {"x", "fc_weight", "self.eps", "k", "out", "N"}
    (step,) = run(FILE.launch, bindings, grid_style=GridStyle.CPU).steps
    tensors = tuple(TensorArg(name) for name in ("x", "fc_weight", "out"))
    assert step == Launch("k", (8,), None, (*tensors, 1e-5, 3))


def test_a_tunable_named_like_an_input_is_the_files_mistake():
    with pytest.raises(KernelSyntaxError, match="'N' is a tunable and a name of the problem") as caught:
        bind(FILE, signature("x", "N"), {"N": 4})
    assert (caught.value.line, caught.value.column) == (3, 5)


@pytest.mark.parametrize(
    "name", ["out", "out3", "scratch", "zero", "min", "max", "cdiv", "range", "self", "f32", "bool", "i64"]
)
def test_inputs_cannot_take_words_of_the_language(name):
    with pytest.raises(ProblemError, match=f"'{name}' has a meaning of its own"):
        bind(FILE, signature(name), {"N": 4})
    with pytest.raises(ProblemError, match=f"'{name}' has a meaning of its own"):
        bind(FILE, signature("x", scalars={name: 1}), {"N": 4})


@pytest.mark.parametrize("name", ["a.b", "1a", "é", "__x", "lambda", "", "a b"])
def test_inputs_have_names_that_can_be_written(name):
    with pytest.raises(ProblemError, match="cannot be a name"):
        bind(FILE, signature(name), {"N": 4})


def test_names_are_unique():
    with pytest.raises(ProblemError, match="two things called 'x'"):
        bind(FILE, signature("x", "x"), {"N": 4})
    with pytest.raises(ProblemError, match="two things called 'x'"):
        bind(FILE, signature("x", scalars={"x": 1}), {"N": 4})
