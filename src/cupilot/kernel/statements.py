"""Reading statements: from Python's syntax tree to ours, refusing what is not in the language."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cupilot.kernel import limits
from cupilot.kernel.expressions import BINARY_OPS, RESERVED, known, read_expr, read_name, suggest
from cupilot.kernel.nodes import (
    Allocate,
    Assign,
    Block,
    Clear,
    Expr,
    For,
    If,
    Position,
    Start,
    Statement,
    Unpack,
    Update,
    mistake,
)
from cupilot.kernel.syntax import Section, parse_python, position
from cupilot.types import DType

_STATEMENTS = "statements are assignments, if, for over range, zero(t) and launches: kernel[grid](arguments)"


def parse_block(section: Section) -> Block:
    return _block(parse_python(section), section, depth=0)


def _block(statements: Sequence[ast.stmt], section: Section, depth: int) -> Block:
    if depth > limits.MAX_BLOCK_DEPTH:
        at = position(statements[0], section)
        raise mistake("blocks are nested too deeply", at, f"at most {limits.MAX_BLOCK_DEPTH} levels")
    return tuple(_statement(statement, section, depth) for statement in statements)


def _statement(node: ast.stmt, section: Section, depth: int) -> Statement:
    at = position(node, section)
    match node:
        case ast.Assign(targets=[target], value=value):
            return _assignment(target, value, section)
        case ast.AugAssign(target=target, op=op, value=value):
            return Update(
                _target(target, section), known(BINARY_OPS, op, at), read_expr(value, section), at=at
            )
        case ast.If():
            return _if(node, section, depth)
        case ast.For():
            return _for(node, section, depth)
        case ast.Expr(value=ast.Call(func=ast.Subscript(value=ast.Name() as kernel, slice=grid)) as call):
            return _launch(kernel, grid, call, section)
        case ast.Expr(value=ast.Call(func=ast.Name(id="zero"), args=[ast.Name() as tensor], keywords=[])):
            return Clear(read_name(tensor, section), at=at)
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name not in RESERVED:
            raise mistake(f"the launch of '{name}' has no grid", at, f"write {name}[blocks](arguments)")
        case _:
            raise mistake("this statement is not part of the launch language", at, _STATEMENTS)


def _assignment(target: ast.expr, value: ast.expr, section: Section) -> Statement:
    at = position(target, section)
    match target, value:
        case ast.Name(), ast.Call(func=ast.Name(id="scratch")):
            return _allocation(_target(target, section), value, section)
        case ast.Name(), _:
            return Assign(_target(target, section), read_expr(value, section), at=at)
        case ((ast.Tuple(elts=[_, *_] as targets) | ast.List(elts=[_, *_] as targets)), _):
            names = tuple(_target(each, section) for each in targets)
            return Unpack(names, read_expr(value, section), at=at)
        case _:
            raise mistake("only names can be assigned to", at, "write n = ... or rows, cols = x.shape")


def _target(target: ast.expr, section: Section) -> str:
    at = position(target, section)
    if not isinstance(target, ast.Name):
        raise mistake(
            "only plain names can be assigned to",
            at,
            "write rows, cols = x.shape; use _ for what is not needed",
        )
    if target.id in RESERVED:
        raise mistake(
            f"'{target.id}' has a meaning of its own and cannot be assigned to", at, "choose another name"
        )
    return target.id


def _allocation(name: str, call: ast.Call, section: Section) -> Allocate:
    at = position(call, section)
    match call:
        case ast.Call(args=[shape, ast.Name(id=dtype) as named], keywords=[]):
            if dtype not in set(DType):
                hint = suggest(dtype, DType, f"element types are {', '.join(DType)}")
                raise mistake(f"'{dtype}' is not an element type", position(named, section), hint)
            return Allocate(name, read_expr(shape, section), DType(dtype), at=at)
        case _:
            raise mistake(
                "scratch takes a shape and an element type", at, "write ws = scratch((rows, 4), f32)"
            )


def _if(node: ast.If, section: Section, depth: int) -> If:
    branches: list[tuple[Expr, Block]] = []
    rest: list[ast.stmt] = [node]
    while len(rest) == 1 and isinstance(rest[0], ast.If):  # `elif` is an `if` alone in the else branch
        branches.append((read_expr(rest[0].test, section), _block(rest[0].body, section, depth + 1)))
        rest = rest[0].orelse
    if len(branches) > limits.MAX_BRANCHES:
        raise mistake("too many branches", position(node, section), f"at most {limits.MAX_BRANCHES}")
    return If(tuple(branches), _block(rest, section, depth + 1) if rest else (), at=position(node, section))


def _for(node: ast.For, section: Section, depth: int) -> For:
    at = position(node, section)
    match node.iter, node.orelse:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_] as bounds, keywords=[]), [] if len(bounds) <= 3:
            read = tuple(read_expr(bound, section) for bound in bounds)
            return For(_target(node.target, section), read, _block(node.body, section, depth + 1), at=at)
        case _:
            raise mistake("loops go over a range", at, "write for i in range(n): or range(start, stop, step)")


def _launch(kernel: ast.Name, grid: ast.expr, call: ast.Call, section: Section) -> Start:
    at = position(call, section)
    if kernel.id in RESERVED:
        raise mistake(
            f"'{kernel.id}' is not a kernel", at, "a launch begins with the name of a function of this file"
        )
    entries = grid.elts if isinstance(grid, ast.Tuple) else [grid]
    if not entries:
        raise mistake("the grid is empty", at, f"write {kernel.id}[blocks](arguments)")
    if len(call.args) > limits.MAX_ARGUMENTS:
        raise mistake("too many arguments", at, f"at most {limits.MAX_ARGUMENTS}")
    return Start(
        kernel.id,
        tuple(read_expr(entry, section) for entry in entries),
        tuple(read_expr(argument, section) for argument in call.args),
        _attributes(call.keywords, section, at),
        at=at,
    )


def _attributes(keywords: list[ast.keyword], section: Section, at: Position) -> tuple[tuple[str, Expr], ...]:
    attributes: dict[str, Expr] = {}
    for each in keywords:
        if each.arg is None or each.arg in attributes:
            raise mistake(
                "launch attributes are named, once each", at, "write kernel[grid, block](x, shared=4096)"
            )
        attributes[each.arg] = read_expr(each.value, section)
    return tuple(attributes.items())
