"""Printing and parsing are inverse; whatever the text, the parser knows no error but ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cupilot.errors import KernelSyntaxError
from cupilot.kernel.expressions import RESERVED
from cupilot.kernel.file import KernelFile, parse_kernel, print_kernel
from cupilot.kernel.launch import GridStyle, LaunchProgram, run
from cupilot.kernel.nodes import (
    Allocate,
    Assign,
    Binary,
    BinaryOp,
    Block,
    Call,
    Choice,
    Clear,
    Compare,
    CompareOp,
    Expr,
    For,
    Function,
    If,
    Index,
    Logic,
    LogicOp,
    Name,
    Number,
    Property,
    PropertyKind,
    Start,
    Statement,
    Tuple,
    Unary,
    UnaryOp,
    Unpack,
    Update,
)
from cupilot.kernel.tunables import Tunable, first_point, is_valid
from cupilot.types import DType, Role, TensorSpec

PROFILE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

T = TypeVar("T")

VARIABLES = ["a", "b", "rows", "_", "x", "out", "n", "k1", "self.eps", "self.norm.eps"]
TARGETS = [name for name in VARIABLES if "." not in name]
WHOLE = st.one_of(st.integers(0, 9), st.integers(0, 2**63 - 1))
NUMBERS = st.one_of(WHOLE, st.booleans(), st.floats(0, allow_nan=False, allow_infinity=False))


class Writer:
    """Writes random programs. Plain recursion: nested strategies of this size are slow."""

    def __init__(self, draw: st.DrawFn, names: list[str], tensors: bool) -> None:
        self._draw = draw
        self._names = names
        self._leaves = ["number", "name", "name"] + ["property"] * tensors
        self._inner = ["unary", "binary", "binary", "compare", "logic", "choice", "call"]
        self._inner += ["tuple", "index"] * tensors

    def pick(self, options: Iterable[T]) -> T:
        return self._draw(st.sampled_from(list(options)))

    def some(self, make: Callable[[], T], least: int = 1, most: int = 3) -> tuple[T, ...]:
        return tuple(make() for _ in range(self._draw(st.integers(least, most))))

    def expr(self, depth: int = 2) -> Expr:
        def inner() -> Expr:
            return self.expr(depth - 1)

        match self.pick(self._leaves + self._inner * (depth > 0)):
            case "number":
                return Number(self._draw(NUMBERS))
            case "name":
                return Name(self.pick(self._names))
            case "property":
                return Property(Name(self.pick(TARGETS)), self.pick(PropertyKind))
            case "unary":
                return Unary(self.pick(UnaryOp), inner())
            case "binary":
                return Binary(self.pick(BinaryOp), inner(), inner())
            case "compare":
                return Compare(inner(), self.some(lambda: (self.pick(CompareOp), inner())))
            case "logic":
                return Logic(self.pick(LogicOp), self.some(inner, 2))
            case "choice":
                return Choice(inner(), inner(), inner())
            case "call":
                function = self.pick(Function)
                return Call(function, self.some(inner, 2, 2 if function is Function.CDIV else 3))
            case "tuple":
                return Tuple(self.some(inner))
            case _:
                base = inner()
                base = base if isinstance(base, Name | Property | Tuple) else Tuple((base,))
                index = inner()
                return Index(base, Number(0) if isinstance(index, Tuple) else index)

    def block(self, depth: int = 2) -> Block:
        return self.some(lambda: self.statement(depth))

    def statement(self, depth: int) -> Statement:
        simple = [Assign, Update, Unpack, Allocate, Clear, Start]
        match self.pick(simple + [If, For] * (depth > 0)):
            case kind if kind is Assign:
                return Assign(self.pick(TARGETS), self.expr())
            case kind if kind is Update:
                return Update(self.pick(TARGETS), self.pick(BinaryOp), self.expr())
            case kind if kind is Unpack:
                return Unpack(self.some(lambda: self.pick(TARGETS)), self.expr())
            case kind if kind is Allocate:
                return Allocate(self.pick(TARGETS), self.expr(), self.pick(DType))
            case kind if kind is Clear:
                return Clear(Name(self.pick(TARGETS)))
            case kind if kind is Start:
                return self.start()
            case kind if kind is If:
                branches = self.some(lambda: (self.expr(), self.block(depth - 1)))
                otherwise = self.block(depth - 1) if self._draw(st.booleans()) else ()
                if len(otherwise) == 1 and isinstance(otherwise[0], If):  # is written as elif
                    otherwise = (*otherwise, *otherwise)
                return If(branches, otherwise)
            case _:
                return For(self.pick(TARGETS), self.some(self.expr), self.block(depth - 1))

    def start(self) -> Start:
        entries = self.some(self.expr)
        if len(entries) == 1 and isinstance(entries[0], Tuple):  # is written as its entries
            entries = (*entries, *entries)
        attributes = {name: self.expr() for name in self.some(lambda: self.pick(["shared", "word"]), 0, 2)}
        return Start(self.pick(["k", "K2"]), entries, self.some(self.expr, 0), tuple(attributes.items()))


@st.composite
def programs(draw: st.DrawFn) -> LaunchProgram:
    return LaunchProgram(Writer(draw, VARIABLES, tensors=True).block())


TUNABLES = ["BLOCK", "VEC", "T_0", "X"]


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Expr, ...]:
    writer = Writer(draw, TUNABLES, tensors=False)
    return writer.some(lambda: Logic(LogicOp.OR, (Number(True), writer.expr())), 0)  # every point is valid


tunables = st.builds(
    lambda values: tuple(Tunable(name, tuple(each)) for name, each in zip(TUNABLES, values, strict=True)),
    st.lists(
        st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=3, unique=True),
        min_size=len(TUNABLES),
        max_size=len(TUNABLES),
    ),
)
words = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60),
    st.text("ab:\n\t *#/", max_size=40),
    st.sampled_from(["tune:", " launch:\n x", "Note:\nab", "flags: fast", "*/", "a\r\nb\rc", "/* cupilot 1"]),
)
UNSEEN = ["Cc", "Cf", "Zl", "Zp"]
sources = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=UNSEEN, include_characters="\t\n"), max_size=60),
    st.sampled_from(["int x;\r\nint y;", "*/", "/* cupilot 1", "tune:"]),
).filter(lambda text: text.strip(" \t\n\r") != "")
files = st.builds(KernelFile, words, tunables, conditions(), programs(), sources, words, words)


@settings(PROFILE, max_examples=300)
@given(files)
def test_parse_and_print_are_inverse(file):
    text = print_kernel(file)
    parsed = parse_kernel(text)
    assert (parsed.launch, parsed.tune, parsed.where) == (file.launch, file.tune, file.where)
    assert repr(parsed.launch) == repr(file.launch)  # 1, 1.0 and True are equal, their texts are not
    assert print_kernel(parsed) == text
    again = parse_kernel(print_kernel(parsed))
    assert again == parsed
    assert repr(again) == repr(parsed)
    assert again.hash == parsed.hash == file.hash


X = TensorSpec("x", (3, 4), DType.F32, Role.INPUT)
OUT = TensorSpec("out", (3, 4), DType.F32, Role.OUTPUT)


@settings(PROFILE, max_examples=300)
@given(programs(), st.sampled_from(GridStyle))
def test_any_program_ends_with_a_plan_or_with_our_error(program, style):
    try:
        plan = run(program, {"x": X, "out": OUT, "n": 3, "k1": 0.5, "self.eps": 1e-5}, grid_style=style)
    except KernelSyntaxError as error:
        assert error.hint
        return
    assert len(plan.steps) <= 1024


FILES = """/* cupilot 1
Words.
tune:
    BLOCK = 1 | 2
where:
    BLOCK < 3 and not BLOCK == 0
launch:
    rows, cols = x.shape
    ws = scratch((rows, 4), f32)
    zero(ws)
    for i in range(2):
        if i % 2 == 0:
            k[rows, cdiv(cols, BLOCK)](x, out, ws, self.eps, 1.5 if cols > 2 else -i)
        else:
            k[(rows, 1), 32](x, shared=4 * 2 ** 3)
strategy:
    none
*/
void k() {}
"""
TOKENS = [
    *RESERVED,
    *"()[]:=,.+-*/%<>|#'\"\\\n\t \0\x0b;@{}",
    "    ",
    "/*",
    "*/",
    "**",
    "//",
    "==",
    "lambda",
    "import",
]
TOKENS += [
    "__class__",
    "for",
    "in",
    "if",
    "elif",
    "else",
    "not",
    "1e9",
    "0x",
    "10" * 30,
    "é",
    "\u2028",
    "\ud800",
]


def shows_only_our_errors(text: str) -> None:
    try:
        file = parse_kernel(text)
    except KernelSyntaxError as error:
        assert error.hint
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        return
    assert parse_kernel(print_kernel(file)) == file
    assert is_valid(file, first_point(file))


@settings(PROFILE, max_examples=400)
@given(st.data())
def test_mutated_files(data):
    text = FILES
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.integers(0, 8))
        inserted = data.draw(st.one_of(st.sampled_from(TOKENS), st.sampled_from(FILES.split())))
        text = text[:start] + inserted + text[stop:]
    shows_only_our_errors(text)


@settings(PROFILE, max_examples=200)
@given(st.one_of(st.text(), st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join)))
def test_any_text(text):
    shows_only_our_errors(text)
    shows_only_our_errors(
        "/* cupilot 1\nlaunch:\n    " + text.replace("\n", "\n    ") + "\n*/\nvoid k() {}\n"
    )
    shows_only_our_errors("/* cupilot 1\ntune:\n " + text + "\nwhere:\n " + text + "\nlaunch:\n k[1]()\n*/ x")


ROOT = Path(__file__).parents[2]


def kernels_in(document: Path) -> list[tuple[str, str]]:
    """The fenced blocks that are kernel files: the language they are marked with, and the text."""
    blocks = [block.partition("\n") for block in document.read_text().split("```")[1::2]]
    return [(language, text) for language, _, text in blocks if text.startswith("/* cupilot")]


def test_the_documents_examples():
    blocks = kernels_in(ROOT / "docs" / "kernel-file.md")
    assert [language for language, _ in blocks] == ["cpp", "cuda"]
    assert all(parse_kernel(text).summary for _, text in blocks)


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
)
def test_kernels_in_any_document_parse(document):
    for _, text in kernels_in(ROOT / document):
        assert parse_kernel(text).source
