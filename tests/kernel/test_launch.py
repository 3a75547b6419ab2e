"""What launch programs come to, and how they go wrong while they run."""

from __future__ import annotations

import pytest

from cupilot.errors import KernelSyntaxError, UsageError
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.launch import GridStyle, Launch, Plan, ScratchSpec, TensorArg, Zero, grid_style_of, run
from cupilot.types import DType, Role, TensorSpec

BINDINGS = {
    "x": TensorSpec("x", (6, 10), DType.F32, Role.INPUT),
    "w": TensorSpec("w", (), DType.F32, Role.PARAMETER),
    "e": TensorSpec("e", (0, 3), DType.F32, Role.INPUT),
    "out": TensorSpec("out", (6, 10), DType.F32, Role.OUTPUT),
    "n": 7,
    "p": 0.5,
    "flag": True,
    "self.eps": 1e-5,
    "BLOCK": 4,
}
FIRST_LINE = 3


def plan_of(*lines: str, style: GridStyle = GridStyle.CPU) -> Plan:
    body = "".join(f"    {line}\n" for line in lines)
    file = parse_kernel(f"/* cupilot 1\nlaunch:\n{body}*/\nvoid k() {{}}\n")
    return run(file.launch, BINDINGS, grid_style=style)


def launches_of(*lines: str, style: GridStyle = GridStyle.CPU) -> list[Launch]:
    return [step for step in plan_of(*lines, style=style).steps if isinstance(step, Launch)]


def value_of(expression: str) -> int | float:
    (launch,) = launches_of(f"k[1]({expression})")
    (argument,) = launch.args
    assert not isinstance(argument, TensorArg)
    return argument


def error_of(*lines: str, style: GridStyle = GridStyle.CPU) -> KernelSyntaxError:
    with pytest.raises(KernelSyntaxError) as caught:
        plan_of(*lines, style=style)
    assert caught.value.hint
    return caught.value


EXPRESSIONS = [
    "1 + 2 * 3 - 4", "7 // 2", "-7 // 2", "7 / 2", "7 % 3", "-7 % 3", "2 ** 10", "2 ** -1", "-2 ** 2",
    "(-2) ** 2", "2 ** 3 ** 2", "0.5 * 4", "1e-3 + 1", "9 ** 0.5", "1 - (2 - 3)", "12 // (3 // 2)",
    "10 % (7 % 4)", "(1 + 2) * 3", "1 < 2 < 3", "1 < 2 > 3", "1 == 1.0", "not 1 < 2", "1 and 2",
    "0 and 1", "0 or 3", "4 or 1", "not 0", "1 if 2 > 1 else 3", "1 if 0 else 2 if 0 else 3",
    "(1 if 0 else 2) + 1", "min(3, 1, 2)", "max(1, 2.5)", "True + True", "-(-3)", "not (1 and 0) or 5",
    "(1, 2, 3)[1]", "(1, 2, 3)[-1]", "9223372036854775807", "1e308 * 10",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_mean_what_they_mean_in_python(expression):
    assert value_of(expression) == eval(expression)
    assert type(value_of(expression)) is type(eval(expression) + 0)  # a boolean is passed as 0 or 1


def test_of_tensors_shapes_are_seen():
    assert [value_of(f"x.{text}") for text in ("shape[0]", "shape[-1]", "numel")] == [6, 10, 60]
    assert [value_of(f"x.stride[{axis}]") for axis in (0, 1)] == [10, 1]
    assert [value_of(text) for text in ("w.numel", "e.numel", "e.stride[0]", "e.stride[1]")] == [1, 0, 3, 1]
    assert value_of("cdiv(x.numel, 7)") == 9
    assert value_of("cdiv(-7, 2)") == -3
    assert value_of("self.eps") == 1e-5
    assert value_of("flag") == 1 and value_of("flag") is not True


def test_statements():
    program = [
        "rows, cols = x.shape",
        "_, cols = x.shape",
        "total = 0",
        "for i in range(rows):",
        "    if i == 0:",
        "        total += cols",
        "    elif i % 2:",
        "        total -= 1",
        "    else:",
        "        total *= 2",
        "k[rows](total, i)",
    ]
    total = 0
    for i in range(6):
        total = total + 10 if i == 0 else total - 1 if i % 2 else total * 2
    assert launches_of(*program) == [Launch("k", (6,), None, (total, 5))]
    assert launches_of(*program)[0].line == FIRST_LINE + len(program) - 1


def test_ranges_count_as_in_python():
    for bounds in ("4", "1, 4", "5, 0, -2", "3, 3"):
        ran = launches_of(f"for i in range({bounds}):", "    k[1](i)")
        assert [launch.args[0] for launch in ran] == list(eval(f"range({bounds})"))


def test_scratch_memory_is_planned_cleared_and_passed():
    memory = "ws = scratch((x.shape[0], 4), f32)", "t = scratch(n, i64)"
    plan = plan_of(*memory, "zero(ws)", "zero(out)", "k[2](ws, t)")
    assert plan.scratch == (ScratchSpec("ws", (6, 4), DType.F32), ScratchSpec("t", (7,), DType.I64))
    assert plan.scratch[0].size_bytes == 96
    assert plan.steps == (Zero("ws"), Zero("out"), Launch("k", (2,), None, (TensorArg("ws"), TensorArg("t"))))


def test_buffers_can_trade_places():
    memory = "a = scratch(4, f32)", "b = scratch(5, f32)"
    ran = launches_of(*memory, "for i in range(2):", "    k[a.shape[0]](a, b)", "    a, b = b, a")
    a, b = TensorArg("a"), TensorArg("b")
    assert [(launch.grid, launch.args) for launch in ran] == [((4,), (a, b)), ((5,), (b, a))]


def test_cpu_grids():
    ran = launches_of("k[3]()", "k[3, 2]()", "k[3, 2, 1]()", "g = 4, 5", "k[g]()")
    assert [launch.grid for launch in ran] == [(3,), (3, 2), (3, 2, 1), (4, 5)]


def test_cuda_grids_and_attributes():
    ran = launches_of(
        "k[x.shape[0], 128](x)",
        "k[(6, 2), (8, 4, 2)](x, shared=4 * 1024, cluster=2, cooperative=True)",
        style=GridStyle.CUDA,
    )
    assert [(launch.grid, launch.block) for launch in ran] == [((6,), (128,)), ((6, 2), (8, 4, 2))]
    assert [launch.attributes for launch in ran] == [{}, {"shared": 4096, "cluster": 2, "cooperative": 1}]


def test_a_grid_without_blocks_is_no_launch():
    assert plan_of("k[e.shape[0]](e)", "k[3, 0]()") == Plan((), ())
    assert plan_of("k[(1, 0), 32](e)", style=GridStyle.CUDA) == Plan((), ())


def test_the_suffix_tells_the_style():
    assert grid_style_of("a/b.cpp") is GridStyle.CPU
    assert grid_style_of("b.cu") is GridStyle.CUDA
    with pytest.raises(UsageError, match="not a kernel file"):
        grid_style_of("b.py")


# The last line is wrong: the column of the mistake, and what is said of it.
MISTAKES = [
    (["k[1](y)"], 6, "there is no 'y'"),
    (["k[1](self.esp)"], 6, "there is no 'self.esp'"),
    (["k[1](7 // (n - 7))"], 6, "division by zero"),
    (["k[1](7 % 0)"], 6, "division by zero"),
    (["k[1](7 / 0.0)"], 6, "division by zero"),
    (["k[1](0 ** -1)"], 6, "division by zero"),
    (["k[1]((-8) ** 0.5)"], 6, "not a real number"),
    (["k[1](2 ** 63)"], 6, "too large"),
    (["k[1](3 ** 9223372036854775807)"], 6, "too large"),
    (["k[1](1e10 ** 1000)"], 6, "too large"),
    (["k[1](9223372036854775807 + 1)"], 6, "too large"),
    (["k[1](4000000000 * 4000000000)"], 6, "too large"),
    (["k[1](x.shape[2])"], 6, "no entry 2 in a tuple of 2"),
    (["k[1](x.shape[-3])"], 6, "no entry -3"),
    (["k[1](x.shape[0.5])"], 14, "an integer is expected"),
    (["k[1](n[0])"], 6, "has no entries"),
    (["k[1](n.shape)"], 6, "not a tensor"),
    (["k[1](x.shape)"], 6, "a tuple of 2 cannot be passed"),
    (["k[1](x + 1)"], 6, "not the tensor 'x'"),
    (["k[1](x.shape + 1)"], 6, "not a tuple of 2"),
    (["k[1](-x)"], 7, "not the tensor 'x'"),
    (["k[1](x and 1)"], 6, "not the tensor 'x'"),
    (["k[1]((x.shape, 1)[1])"], 7, "cannot be nested"),
    (["k[1](cdiv(1.5, 2))"], 11, "an integer is expected"),
    (["k[1](min(x, 2))"], 10, "not the tensor 'x'"),
    (["if x:", "    k[1]()"], None, "not the tensor 'x'"),
    (["x = 1"], 1, "'x' is given"),
    (["BLOCK = 1"], 1, "'BLOCK' is given"),
    (["BLOCK += 1"], 1, "'BLOCK' is given"),
    (["n, m = x.shape"], 1, "'n' is given"),
    (["out = scratch(4, f32)"], None, "'out' is given"),
    (["a, b, c = x.shape"], 1, "a tuple of 2 cannot be unpacked into 3"),
    (["a, = w.shape"], 1, "a tuple of 0"),
    (["a, b = n"], 1, "cannot be unpacked"),
    (["for i in range(0, 4, 0):", "    k[1](i)"], None, "step of a range is not 0"),
    (["for i in range(p):", "    k[1](i)"], None, "an integer is expected"),
    (["for n in range(4):", "    k[1](n)"], None, "'n' is given"),
    (["zero(x)"], 1, "cannot be applied to the tensor 'x'"),
    (["zero(n)"], 1, "cannot be applied to the number 7"),
    (["ws = scratch(w.shape, f32)"], None, "not a shape"),
    (["ws = scratch((4, -1), f32)"], None, "not a shape"),
    (["ws = scratch((4, 0.5), f32)"], None, "integers are expected"),
    (["ws = scratch((1,) , f32)", "ws = scratch(1, f32)"], None, "allocated already"),
    (["ws = scratch((2 ** 20, 513), f32)"], None, "too much scratch"),
    (["ws = scratch((2 ** 62, 2 ** 62, 2 ** 62, 2 ** 62), f64)"], None, "too much scratch"),
    (["k[-1]()"], 1, "not a grid"),
    (["k[0.5]()"], 3, "integers are expected"),
    (["k[x]()"], 3, "integers are expected"),
    (["k[1, 1, 1, 1]()"], 1, "not a grid"),
    (["k[w.shape]()"], 1, "not a grid"),
    (["k[2 ** 31]()"], 1, "too large"),
    (["k[2 ** 16, 2 ** 16]()"], 1, "too large"),
    (["k[2 ** 62, 0]()"], 1, "too large"),
    (["k[1](shared=4)"], 1, "a CPU launch takes no 'shared='"),
]


@pytest.mark.parametrize("lines, column, message", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_have_a_place_and_a_hint(lines, column, message):
    error = error_of(*lines)
    assert message in error.message
    if column is not None:
        assert (error.line, error.column) == (FIRST_LINE + len(lines) - 1, 4 + column)


CUDA_MISTAKES = [
    ("k[4]()", "two entries"),
    ("k[1, 2, 3]()", "two entries"),
    ("k[1, 0]()", "not a block"),
    ("k[1, 2048]()", "not a block"),
    ("k[1, (32, 64)]()", "not a block"),
    ("k[1, (1, 1, 128)]()", "not a block"),
    ("k[1, (1, 1, 1, 1)]()", "not a block"),
    ("k[1, w.shape]()", "not a block"),
    ("k[(1, 65536), 32]()", "too large"),
    ("k[(1, 1, 1, 1), 32]()", "not a grid"),
    ("k[1, 32](x, shraed=1)", "not a launch attribute"),
    ("k[1, 32](x, shared=-1)", "out of range"),
    ("k[1, 32](x, shared=2 ** 40)", "out of range"),
    ("k[1, 32](x, cooperative=2)", "out of range"),
    ("k[1, 32](x, shared=0.5)", "an integer is expected"),
]


@pytest.mark.parametrize("line, message", CUDA_MISTAKES)
def test_cuda_mistakes(line, message):
    error = error_of(line, style=GridStyle.CUDA)
    assert message in error.message
    assert error.line == FIRST_LINE


def test_names_are_suggested():
    assert error_of("k[1](self.esp)").hint == "did you mean 'self.eps'?"
    assert error_of("k[BLOCKS]()").hint == "did you mean 'BLOCK'?"
    assert error_of("k[1, 32](shraed=1)", style=GridStyle.CUDA).hint == "did you mean 'shared'?"


def test_launches_are_counted():
    assert len(launches_of("for i in range(1024):", "    k[1]()")) == 1024
    assert "more than 1024 launches" in error_of("for i in range(1025):", "    k[1]()").message


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in range(9223372036854775807):", "    a = i"],
        ["for i in range(10 ** 18):", "    if i < 0:", "        k[1]()"],
        [f"{'    ' * depth}for i{depth} in range(1000):" for depth in range(8)] + [" " * 32 + "a = 1"],
        ["for i in range(10 ** 18):", "    k[0]()"],
    ],
)
def test_no_program_runs_for_ever(lines):
    assert "runs for too long" in error_of(*lines).message


def test_scratch_tensors_are_counted():
    lines = [f"s{index} = scratch(1, f32)" for index in range(65)]
    assert len(plan_of(*lines[:64]).scratch) == 64
    assert "too much scratch" in error_of(*lines).message


def test_values_cannot_grow():
    """Doubling a value in a loop is the way to claim memory without bound."""
    assert "cannot be nested" in error_of("t = 1, 2", "for i in range(99):", "    t = t, t").message
    assert "not a tuple" in error_of("t = 1, 2", "for i in range(99):", "    t = t + t").message
    assert "too large" in error_of("a = 3", "for i in range(99):", "    a = a * a").message
    assert "too large" in error_of("a = 3", "for i in range(99):", "    a **= 9").message
