"""The syntax tree of the launch language: all that a launch program and a `where` line can consist of.

Positions say where a node stands in the kernel file; they take no part in comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from cupilot.errors import KernelSyntaxError
from cupilot.types import DType


@dataclass(frozen=True)
class Position:
    """1-based, in the kernel file."""

    line: int
    column: int


NOWHERE = Position(1, 1)


def mistake(message: str, at: Position, hint: str) -> KernelSyntaxError:
    return KernelSyntaxError(message, line=at.line, column=at.column, hint=hint)


class BinaryOp(StrEnum):
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    POW = "**"


class UnaryOp(StrEnum):
    NEGATE = "-"
    NOT = "not"


class CompareOp(StrEnum):
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="


class LogicOp(StrEnum):
    AND = "and"
    OR = "or"


class Function(StrEnum):
    MIN = "min"
    MAX = "max"
    CDIV = "cdiv"


class PropertyKind(StrEnum):
    SHAPE = "shape"
    STRIDE = "stride"
    NUMEL = "numel"


@dataclass(frozen=True)
class Node:
    at: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Number(Node):
    value: int | float | bool


@dataclass(frozen=True)
class Name(Node):
    """A variable, tensor, number or tunable; numbers of the module carry their dots: "self.eps"."""

    id: str


@dataclass(frozen=True)
class Property(Node):
    tensor: Name
    kind: PropertyKind


@dataclass(frozen=True)
class Index(Node):
    base: Name | Property | Tuple
    index: Expr


@dataclass(frozen=True)
class Tuple(Node):
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary(Node):
    op: UnaryOp
    operand: Expr


@dataclass(frozen=True)
class Binary(Node):
    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Compare(Node):
    """A chain: `first op expr op expr ...`, each operand evaluated once."""

    first: Expr
    rest: tuple[tuple[CompareOp, Expr], ...]


@dataclass(frozen=True)
class Logic(Node):
    op: LogicOp
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class Choice(Node):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Call(Node):
    function: Function
    arguments: tuple[Expr, ...]


Expr = Number | Name | Property | Index | Tuple | Unary | Binary | Compare | Logic | Choice | Call


def names_in(part: object) -> Iterator[Name]:
    """Every name in an expression, in the order of the text."""
    if isinstance(part, Name):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from names_in(each)
    elif isinstance(part, Node):
        yield from names_in(tuple(vars(part).values()))


@dataclass(frozen=True)
class Assign(Node):
    name: str
    value: Expr


@dataclass(frozen=True)
class Update(Node):
    """`name op= value`"""

    name: str
    op: BinaryOp
    value: Expr


@dataclass(frozen=True)
class Unpack(Node):
    names: tuple[str, ...]
    value: Expr


@dataclass(frozen=True)
class Allocate(Node):
    """`name = scratch(shape, dtype)`"""

    name: str
    shape: Expr
    dtype: DType


@dataclass(frozen=True)
class Clear(Node):
    """`zero(tensor)`"""

    tensor: Name


@dataclass(frozen=True)
class Start(Node):
    """`kernel[entries](arguments, attribute=value)`: a launch, before it has values."""

    kernel: str
    entries: tuple[Expr, ...]
    arguments: tuple[Expr, ...]
    attributes: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class If(Node):
    """`if` and its `elif`s in order, then `else` (empty when there is none)."""

    branches: tuple[tuple[Expr, Block], ...]
    otherwise: Block


@dataclass(frozen=True)
class For(Node):
    name: str
    bounds: tuple[Expr, ...]  # the arguments of range
    body: Block


Statement = Assign | Update | Unpack | Allocate | Clear | Start | If | For
Block = tuple[Statement, ...]
