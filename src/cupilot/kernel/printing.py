"""Canonical text of the launch language. Parsing what is printed gives the same tree again."""

from __future__ import annotations

from collections.abc import Iterable

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
    Expr,
    For,
    If,
    Index,
    Logic,
    LogicOp,
    Name,
    Number,
    Property,
    Start,
    Statement,
    Tuple,
    Unary,
    UnaryOp,
    Unpack,
    Update,
)

INDENT = "    "

# How tightly an expression binds, as in Python.
_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _NEGATE, _POWER, _ATOM = range(10)
_LEVEL = {
    BinaryOp.ADD: _SUM,
    BinaryOp.SUB: _SUM,
    BinaryOp.MUL: _PRODUCT,
    BinaryOp.DIV: _PRODUCT,
    BinaryOp.FLOORDIV: _PRODUCT,
    BinaryOp.MOD: _PRODUCT,
}


def print_block(block: Block) -> list[str]:
    """Its lines, without indentation of the whole."""
    return [line for statement in block for line in _statement(statement)]


def print_expr(expr: Expr) -> str:
    return _print(expr)[0]


def _statement(statement: Statement) -> list[str]:
    match statement:
        case Assign(name, value):
            return [f"{name} = {_bare(value)}"]
        case Update(name, op, value):
            return [f"{name} {op}= {_bare(value)}"]
        case Unpack(names, value):
            targets = ", ".join(names) if len(names) > 1 else f"{names[0]},"
            return [f"{targets} = {_bare(value)}"]
        case Allocate(name, shape, dtype):
            return [f"{name} = scratch({print_expr(shape)}, {dtype})"]
        case Clear(tensor):
            return [f"zero({tensor.id})"]
        case Start(kernel, entries, arguments, attributes):
            passed = [print_expr(each) for each in arguments]
            passed += [f"{name}={print_expr(value)}" for name, value in attributes]
            return [f"{kernel}[{_join(entries)}]({', '.join(passed)})"]
        case If(branches, otherwise):
            lines = []
            for word, (condition, body) in zip(["if"] + ["elif"] * len(branches), branches, strict=False):
                lines += [f"{word} {print_expr(condition)}:", *_indented(body)]
            return [*lines, "else:", *_indented(otherwise)] if otherwise else lines
        case For(name, bounds, body):
            return [f"for {name} in range({_join(bounds)}):", *_indented(body)]


def _indented(block: Block) -> list[str]:
    return [INDENT + line for line in print_block(block)]


def _join(expressions: Iterable[Expr]) -> str:
    return ", ".join(print_expr(each) for each in expressions)


def _bare(expr: Expr) -> str:
    """Alone on the right-hand side, tuples need no parentheses."""
    text = print_expr(expr)
    return text[1:-1] if isinstance(expr, Tuple) else text


def _at_least(expr: Expr, level: int) -> str:
    text, own = _print(expr)
    return text if own >= level else f"({text})"


def _print(expr: Expr) -> tuple[str, int]:
    """Text and how tightly it binds."""
    match expr:
        case Number(value):
            return repr(value), _ATOM
        case Name(id):
            return id, _ATOM
        case Property(tensor, kind):
            return f"{tensor.id}.{kind}", _ATOM
        case Index(base, index):
            return f"{print_expr(base)}[{print_expr(index)}]", _ATOM
        case Tuple(items):
            return f"({_join(items)}{',' if len(items) == 1 else ''})", _ATOM
        case Call(function, arguments):
            return f"{function}({_join(arguments)})", _ATOM
        case Unary(UnaryOp.NOT, operand):
            return f"not {_at_least(operand, _NOT)}", _NOT
        case Unary(_, operand):
            return f"-{_at_least(operand, _NEGATE)}", _NEGATE
        case Binary(BinaryOp.POW, left, right):
            return f"{_at_least(left, _ATOM)} ** {_at_least(right, _NEGATE)}", _POWER
        case Binary(op, left, right):
            level = _LEVEL[op]
            return f"{_at_least(left, level)} {op} {_at_least(right, level + 1)}", level
        case Compare(first, rest):
            links = "".join(f" {op} {_at_least(operand, _SUM)}" for op, operand in rest)
            return _at_least(first, _SUM) + links, _COMPARE
        case Logic(op, operands):
            level = _AND if op is LogicOp.AND else _OR
            return f" {op} ".join(_at_least(each, level + 1) for each in operands), level
        case Choice(condition, then, otherwise):
            parts = _at_least(then, _OR), _at_least(condition, _OR), _at_least(otherwise, _CHOICE)
            return "{} if {} else {}".format(*parts), _CHOICE
