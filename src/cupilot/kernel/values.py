"""Evaluating expressions of the launch language over numbers, tuples, and tensors seen from outside."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cupilot.errors import KernelSyntaxError
from cupilot.kernel import limits
from cupilot.kernel.expressions import suggest
from cupilot.kernel.nodes import (
    Binary,
    BinaryOp,
    Call,
    Choice,
    Compare,
    CompareOp,
    Expr,
    Function,
    Index,
    Logic,
    LogicOp,
    Name,
    Number,
    Position,
    Property,
    PropertyKind,
    Tuple,
    Unary,
    UnaryOp,
    mistake,
)
from cupilot.kernel.plan import ScratchSpec
from cupilot.types import TensorSpec

Tensor = TensorSpec | ScratchSpec
Item = Tensor | int | float | bool
Value = Item | tuple[Item, ...]


class TooLongError(KernelSyntaxError):
    """The fuel is spent."""


class Fuel:
    """How many more steps may be taken: what bounds loops and searches."""

    def __init__(self, steps: int, excuse: str) -> None:
        self._left = steps
        self._excuse = excuse

    def add(self, steps: int) -> None:
        self._left += steps

    def burn(self, at: Position) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooLongError(self._excuse, line=at.line, column=at.column, hint="simplify it")


@dataclass(frozen=True)
class Scope:
    """What names mean while expressions are evaluated."""

    names: Mapping[str, Value]
    fuel: Fuel


def describe(value: Value) -> str:
    match value:
        case bool() | int() | float():
            return f"the number {value}"
        case tuple():
            return f"a tuple of {len(value)}"
        case _:
            return f"the tensor '{value.name}'"


def evaluate(expr: Expr, scope: Scope) -> Value:
    scope.fuel.burn(expr.at)
    match expr:
        case Number(value):
            return value
        case Name(id):
            return _lookup(id, scope, expr.at)
        case Property(tensor, kind):
            return _property(_tensor(tensor, scope), kind)
        case Index(base, index):
            return _entry(evaluate(base, scope), integer(index, scope), expr.at)
        case Tuple(items):
            return tuple(_item(item, scope) for item in items)
        case Unary(UnaryOp.NOT, operand):
            return not number(operand, scope)
        case Unary(_, operand):
            return -number(operand, scope)
        case Binary(op, left, right):
            return _arithmetic(op, number(left, scope), number(right, scope), expr.at)
        case Compare(first, rest):
            return _compare(first, rest, scope)
        case Logic(op, operands):
            return _logic(op, operands, scope)
        case Choice(condition, then, otherwise):
            return evaluate(then if number(condition, scope) else otherwise, scope)
        case Call(Function.CDIV, (left, right)):
            return -_arithmetic(BinaryOp.FLOORDIV, -integer(left, scope), integer(right, scope), expr.at)
        case Call(function, arguments):
            numbers = [number(each, scope) for each in arguments]
            return min(numbers) if function is Function.MIN else max(numbers)


def number(expr: Expr, scope: Scope) -> int | float | bool:
    value = evaluate(expr, scope)
    if not isinstance(value, int | float):
        hint = (
            "of a tensor, take .shape[i] or .numel"
            if isinstance(value, Tensor)
            else "take one entry: shape[0]"
        )
        raise mistake(f"a number is expected here, not {describe(value)}", expr.at, hint)
    return value


def integer(expr: Expr, scope: Scope) -> int:
    value = number(expr, scope)
    if isinstance(value, float):
        raise mistake(f"an integer is expected here, not {value}", expr.at, "divide with // or cdiv(n, d)")
    return int(value)


def integers(expr: Expr, scope: Scope) -> tuple[int, ...]:
    """An integer or a tuple of integers, as a tuple."""
    value = evaluate(expr, scope)
    items = value if isinstance(value, tuple) else (value,)
    plain = [int(item) for item in items if isinstance(item, int)]
    if len(plain) != len(items):
        wrong = describe(next(item for item in items if not isinstance(item, int)))
        raise mistake(f"integers are expected here, not {wrong}", expr.at, "divide with // or cdiv(n, d)")
    return tuple(plain)


def _lookup(id: str, scope: Scope, at: Position) -> Value:
    if id not in scope.names:
        listing = ", ".join(sorted(scope.names)[:20])
        raise mistake(f"there is no '{id}' here", at, suggest(id, scope.names, f"known names are {listing}"))
    return scope.names[id]


def _tensor(name: Name, scope: Scope) -> Tensor:
    value = _lookup(name.id, scope, name.at)
    if not isinstance(value, Tensor):
        raise mistake(f"'{name.id}' is {describe(value)}, not a tensor", name.at, "only tensors have a shape")
    return value


def _property(tensor: Tensor, kind: PropertyKind) -> Value:
    match kind:
        case PropertyKind.SHAPE:
            return tensor.shape
        case PropertyKind.STRIDE:
            extents = [max(extent, 1) for extent in tensor.shape]  # as the framework counts empty tensors
            return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
        case PropertyKind.NUMEL:
            return tensor.numel


def _entry(value: Value, index: int, at: Position) -> Item:
    if not isinstance(value, tuple):
        raise mistake(f"{describe(value)} has no entries", at, "only tuples such as x.shape have an index")
    if not -len(value) <= index < len(value):
        raise mistake(f"there is no entry {index} in {describe(value)}", at, f"use 0 to {len(value) - 1}")
    return value[index]


def _item(expr: Expr, scope: Scope) -> Item:
    value = evaluate(expr, scope)
    if isinstance(value, tuple):
        raise mistake("tuples cannot be nested", expr.at, "write its entries out: (x.shape[0], 4)")
    return value


def _compare(first: Expr, rest: tuple[tuple[CompareOp, Expr], ...], scope: Scope) -> bool:
    left = number(first, scope)
    for op, operand in rest:
        right = number(operand, scope)
        if not _holds(op, left, right):
            return False
        left = right
    return True


def _holds(op: CompareOp, left: float, right: float) -> bool:
    match op:
        case CompareOp.LT:
            return left < right
        case CompareOp.LE:
            return left <= right
        case CompareOp.GT:
            return left > right
        case CompareOp.GE:
            return left >= right
        case CompareOp.EQ:
            return left == right
        case CompareOp.NE:
            return left != right


def _logic(op: LogicOp, operands: tuple[Expr, ...], scope: Scope) -> int | float | bool:
    """As in Python: the operand that decides is the value."""
    value: int | float | bool = False
    for operand in operands:
        value = number(operand, scope)
        if bool(value) is (op is LogicOp.OR):
            break
    return value


def _arithmetic(op: BinaryOp, left: int | float, right: int | float, at: Position) -> int | float:
    if op in (BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.MOD) and right == 0:
        raise mistake("division by zero", at, "guard it: n // d if d > 0 else 0")
    if op is BinaryOp.POW:
        return _power(left, right, at)
    result = _OPERATIONS[op](left, right)
    return _in_range(result, at)


def _power(base: int | float, exponent: int | float, at: Position) -> int | float:
    if base == 0 and exponent < 0:
        raise mistake("division by zero", at, "0 has no negative power")
    if base < 0 and isinstance(exponent, float) and not exponent.is_integer():
        raise mistake("this power is not a real number", at, "the base is negative")
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 63 and abs(base) > 1:
        raise mistake("the number is too large", at, f"integers reach {limits.MAX_INTEGER}")
    try:
        result: int | float = base**exponent
    except OverflowError:
        raise mistake("the number is too large", at, "floating-point numbers reach 1.8e308") from None
    return _in_range(result, at)


def _in_range(result: int | float, at: Position) -> int | float:
    if isinstance(result, int) and abs(result) > limits.MAX_INTEGER:
        raise mistake("the number is too large", at, f"integers reach {limits.MAX_INTEGER}")
    return result


_OPERATIONS: Mapping[BinaryOp, Callable[[Any, Any], int | float]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: operator.truediv,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.MOD: operator.mod,
}
