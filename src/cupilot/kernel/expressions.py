"""Reading expressions: from Python's syntax tree to ours, refusing what is not in the language."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable
from typing import TypeVar

from cupilot.kernel import limits
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
from cupilot.kernel.syntax import Section, parse_python, position
from cupilot.types import DType

RESERVED = frozenset({"scratch", "zero", "range", "self", *map(str, Function), *map(str, DType)})

BINARY_OPS: dict[type[ast.operator], BinaryOp] = {
    ast.Add: BinaryOp.ADD,
    ast.Sub: BinaryOp.SUB,
    ast.Mult: BinaryOp.MUL,
    ast.Div: BinaryOp.DIV,
    ast.FloorDiv: BinaryOp.FLOORDIV,
    ast.Mod: BinaryOp.MOD,
    ast.Pow: BinaryOp.POW,
}
_COMPARE_OPS: dict[type[ast.cmpop], CompareOp] = {
    ast.Lt: CompareOp.LT,
    ast.LtE: CompareOp.LE,
    ast.Gt: CompareOp.GT,
    ast.GtE: CompareOp.GE,
    ast.Eq: CompareOp.EQ,
    ast.NotEq: CompareOp.NE,
}
_UNARY_OPS: dict[type[ast.unaryop], UnaryOp] = {ast.USub: UnaryOp.NEGATE, ast.Not: UnaryOp.NOT}
_LOGIC_OPS: dict[type[ast.boolop], LogicOp] = {ast.And: LogicOp.AND, ast.Or: LogicOp.OR}

_PROPERTIES = "a tensor has .shape, .stride and .numel"
_FUNCTIONS = "functions are min, max and cdiv"
_EXPRESSIONS = "expressions are numbers, names, arithmetic, comparisons, `a if c else b`, min, max and cdiv"
_REFUSED: dict[type[ast.expr], str] = {
    ast.Slice: "take one entry: x.shape[0]",
    ast.Starred: "write the values out, one by one",
    ast.GeneratorExp: "use a for loop",
    ast.ListComp: "use a for loop",
    ast.NamedExpr: "assign on a line of its own",
}

_K = TypeVar("_K", bound=ast.AST)
_V = TypeVar("_V")


def suggest(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """A did-you-mean hint, or `otherwise`."""
    near = difflib.get_close_matches(name, list(candidates), n=1)
    return f"did you mean '{near[0]}'?" if near else otherwise


def parse_expressions(section: Section) -> tuple[Expr, ...]:
    """One expression per statement."""
    expressions = []
    for statement in parse_python(section):
        if not isinstance(statement, ast.Expr):
            raise mistake(
                "a condition is expected", position(statement, section), "for example THREADS * VEC <= 1024"
            )
        expressions.append(read_expr(statement.value, section))
    return tuple(expressions)


def read_expr(node: ast.expr, section: Section, depth: int = 0) -> Expr:
    at = position(node, section)
    if depth > limits.MAX_EXPRESSION_DEPTH:
        raise mistake("the expression is nested too deeply", at, "assign parts of it to names")

    def read(child: ast.expr) -> Expr:
        return read_expr(child, section, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return _number(value, at)
        case ast.Name():
            return read_name(node, section)
        case ast.Attribute():
            return _attribute(node, section)
        case ast.Subscript(value=base, slice=index):
            tuple_ = read(base)
            if not isinstance(tuple_, Name | Property | Tuple) or isinstance(index, ast.Tuple):
                raise mistake("only tuples have an index, and only one", at, "for example x.shape[0]")
            return Index(tuple_, read(index), at=at)
        case ast.Tuple(elts=[_, *_] as items) | ast.List(elts=[_, *_] as items):
            return Tuple(tuple(read(item) for item in items), at=at)
        case ast.UnaryOp(op=unary, operand=operand):
            return Unary(known(_UNARY_OPS, unary, at), read(operand), at=at)
        case ast.BinOp(left=left, op=binary, right=right):
            return Binary(known(BINARY_OPS, binary, at), read(left), read(right), at=at)
        case ast.BoolOp(op=logic, values=values):
            return Logic(known(_LOGIC_OPS, logic, at), tuple(read(value) for value in values), at=at)
        case ast.Compare(left=left, ops=ops, comparators=others):
            known_ops = (known(_COMPARE_OPS, op, at) for op in ops)
            return Compare(read(left), tuple(zip(known_ops, map(read, others), strict=True)), at=at)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Choice(read(test), read(body), read(orelse), at=at)
        case ast.Call():
            function = _function(node, at)
            return Call(function, tuple(read(each) for each in node.args), at=at)
        case _:
            raise mistake(
                "this is not part of the launch language", at, _REFUSED.get(type(node), _EXPRESSIONS)
            )


def read_name(node: ast.Name, section: Section) -> Name:
    at = position(node, section)
    if node.id in RESERVED:
        raise mistake(
            f"'{node.id}' is not a value", at, "name a tensor, a number, a tunable or an assigned name"
        )
    return Name(node.id, at=at)


def known(table: dict[type[_K], _V], op: _K, at: Position) -> _V:
    """The operator of ours that Python's operator stands for."""
    if type(op) not in table:
        hint = f"operators are {' '.join(BinaryOp)}, {' '.join(CompareOp)}, and, or, not"
        raise mistake("this operator is not part of the launch language", at, hint)
    return table[type(op)]


def _number(value: int | float | bool, at: Position) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise mistake("the number is too large", at, "floating-point numbers reach 1.8e308")
    if isinstance(value, int) and value > limits.MAX_INTEGER:
        raise mistake("the number is too large", at, f"integers reach {limits.MAX_INTEGER}")
    return Number(value, at=at)


def _attribute(node: ast.Attribute, section: Section) -> Name | Property:
    at = position(node, section)
    parts: list[str] = []
    base: ast.expr = node
    while isinstance(base, ast.Attribute):
        parts.insert(0, base.attr)
        base = base.value
    if isinstance(base, ast.Name) and base.id == "self":
        return Name(".".join(["self", *parts]), at=at)
    if not isinstance(base, ast.Name) or len(parts) > 1:
        raise mistake(f"'.{parts[-1]}' does not belong to a tensor", at, _PROPERTIES)
    if parts[0] not in set(PropertyKind):
        hint = suggest(parts[0], PropertyKind, _PROPERTIES + "; the module's numbers are self.<name>")
        raise mistake(f"a tensor has no '.{parts[0]}'", at, hint)
    return Property(read_name(base, section), PropertyKind(parts[0]), at=at)


def _function(node: ast.Call, at: Position) -> Function:
    match node.func:
        case ast.Name(id="scratch"):
            raise mistake("scratch memory needs a name of its own", at, "write ws = scratch((rows, 4), f32)")
        case ast.Name(id="zero"):
            raise mistake("zero(t) is a statement", at, "write it on a line of its own, with one tensor")
        case ast.Name(id="range"):
            raise mistake("range belongs to a for loop", at, "write for i in range(n):")
        case ast.Subscript():
            raise mistake("a launch is a statement", at, "write it on a line of its own")
        case ast.Attribute(attr=name):
            raise mistake(f"'.{name}' cannot be called", at, _PROPERTIES + ", without parentheses")
        case ast.Name(id=name) if name in set(Function):
            function = Function(name)
        case ast.Name(id=name):
            raise mistake(
                f"'{name}' is not a function of the launch language", at, suggest(name, Function, _FUNCTIONS)
            )
        case _:
            raise mistake("this cannot be called", at, _FUNCTIONS)
    if node.keywords or len(node.args) < 2 or (function is Function.CDIV and len(node.args) > 2):
        raise mistake(
            f"wrong arguments for {function}", at, "write min(a, b, ...), max(a, b, ...) or cdiv(n, d)"
        )
    return function
