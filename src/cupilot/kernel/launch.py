"""Launch programs: from a kernel file's `launch` section and the values of its names to a plan of launches.

A program is interpreted, never executed: it cannot reach Python, loop for ever or claim memory without bound.
What it may not do is said with the line and column in the kernel file. Whether the kernels it names exist and
take these arguments is the compiler's to say, not ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from cupilot.errors import UsageError
from cupilot.kernel import limits
from cupilot.kernel.expressions import suggest
from cupilot.kernel.nodes import (
    Allocate,
    Assign,
    Binary,
    Block,
    Clear,
    Expr,
    For,
    If,
    Name,
    Position,
    Start,
    Statement,
    Unpack,
    Update,
    mistake,
)
from cupilot.kernel.plan import GridStyle, Launch, Plan, ScratchSpec, TensorArg, Zero
from cupilot.kernel.statements import parse_block
from cupilot.kernel.syntax import Section
from cupilot.kernel.values import (
    Fuel,
    Scope,
    Value,
    describe,
    evaluate,
    integer,
    integers,
    number,
)
from cupilot.types import Role, TensorSpec

__all__ = [
    "GridStyle", "Launch", "LaunchProgram", "Plan", "ScratchSpec", "TensorArg", "Value", "Zero",
    "grid_style_of", "parse_program", "run",
]  # fmt: skip

GRID_STYLES = {".cpp": GridStyle.CPU, ".cu": GridStyle.CUDA}

# What every CUDA device since compute capability 2.0 agrees on.
_CUDA_MAX_GRID = (2**31 - 1, 65_535, 65_535)
_CUDA_MAX_BLOCK = (1024, 1024, 64)
_CUDA_MAX_THREADS = 1024
_ATTRIBUTE_LIMITS = {"shared": 1 << 18, "cluster": 16, "cooperative": 1}


@dataclass(frozen=True)
class LaunchProgram:
    statements: Block


def grid_style_of(path: str | PurePath) -> GridStyle:
    """The style of a kernel file, by its suffix."""
    suffix = PurePath(path).suffix
    if suffix not in GRID_STYLES:
        raise UsageError(f"{path} is not a kernel file", hint="name it .cpp (CPU) or .cu (CUDA)")
    return GRID_STYLES[suffix]


def parse_program(section: Section) -> LaunchProgram:
    return LaunchProgram(parse_block(section))


def run(program: LaunchProgram, bindings: Mapping[str, Value], *, grid_style: GridStyle) -> Plan:
    """Interpret a program. `bindings` are the tensors, numbers and tunables it may name (see `bind`)."""
    interpreter = _Interpreter(bindings, grid_style)
    interpreter.block(program.statements)
    return Plan(tuple(interpreter.scratch.values()), tuple(interpreter.steps))


class _Interpreter:
    """One run of one program."""

    def __init__(self, bindings: Mapping[str, Value], grid_style: GridStyle) -> None:
        self._given = frozenset(bindings)
        self._names = dict(bindings)
        self._style = grid_style
        self._fuel = Fuel(limits.MAX_PROGRAM_STEPS, "the launch program runs for too long")
        self._scope = Scope(self._names, self._fuel)
        self.scratch: dict[str, ScratchSpec] = {}
        self.steps: list[Launch | Zero] = []

    def block(self, statements: Block) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        self._fuel.burn(statement.at)
        match statement:
            case Assign(name, value):
                self._assign(name, evaluate(value, self._scope), statement.at)
            case Update(name, op, value):
                updated = Binary(op, Name(name, at=statement.at), value, at=statement.at)
                self._assign(name, evaluate(updated, self._scope), statement.at)
            case Unpack(names, value):
                self._unpack(names, evaluate(value, self._scope), statement.at)
            case Allocate():
                self._allocate(statement)
            case Clear():
                self._clear(statement)
            case Start():
                self._start(statement)
            case If(branches, otherwise):
                taken = (body for condition, body in branches if number(condition, self._scope))
                self.block(next(taken, otherwise))
            case For(name, bounds, body):
                for index in self._range(bounds, statement.at):
                    self._fuel.burn(statement.at)
                    self._assign(name, index, statement.at)
                    self.block(body)

    def _assign(self, name: str, value: Value, at: Position) -> None:
        if name in self._given:
            what = describe(self._names[name])
            raise mistake(f"'{name}' is given ({what}) and cannot be assigned to", at, "choose another name")
        self._names[name] = value

    def _unpack(self, names: tuple[str, ...], value: Value, at: Position) -> None:
        if not isinstance(value, tuple):
            raise mistake(f"{describe(value)} cannot be unpacked", at, "only tuples such as x.shape can")
        if len(value) != len(names):
            hint = (
                f"write {', '.join(f'n{axis}' for axis in range(len(value)))} = ..."
                if value
                else "it is empty"
            )
            raise mistake(f"{describe(value)} cannot be unpacked into {len(names)} names", at, hint)
        for name, item in zip(names, value, strict=True):
            self._assign(name, item, at)

    def _range(self, bounds: tuple[Expr, ...], at: Position) -> range:
        numbers = [integer(bound, self._scope) for bound in bounds]
        if len(numbers) == 3 and numbers[2] == 0:
            raise mistake("the step of a range is not 0", at, "write range(start, stop, step)")
        return range(*numbers)

    def _allocate(self, statement: Allocate) -> None:
        name, at = statement.name, statement.at
        shape = integers(statement.shape, self._scope)
        if name in self.scratch:
            raise mistake(f"'{name}' is allocated already", at, "allocate once, before the loop")
        if not 1 <= len(shape) <= limits.MAX_RANK or min(shape) < 0:
            raise mistake(f"{shape} is not a shape", at, f"one to {limits.MAX_RANK} extents, none negative")
        spec = ScratchSpec(name, shape, statement.dtype)
        total = spec.size_bytes + sum(each.size_bytes for each in self.scratch.values())
        if total > limits.MAX_SCRATCH_BYTES or len(self.scratch) == limits.MAX_SCRATCH_TENSORS:
            hint = f"at most {limits.MAX_SCRATCH_BYTES >> 20} MiB in {limits.MAX_SCRATCH_TENSORS} tensors"
            raise mistake(f"too much scratch memory: {total} bytes in all", at, hint)
        self._assign(name, spec, at)
        self.scratch[name] = spec

    def _clear(self, statement: Clear) -> None:
        tensor = evaluate(statement.tensor, self._scope)
        match tensor:
            case ScratchSpec(name) | TensorSpec(name, role=Role.OUTPUT):
                self._add(Zero(name), statement.at)
            case _:
                raise mistake(
                    f"zero cannot be applied to {describe(tensor)}",
                    statement.at,
                    "only to outputs and scratch",
                )

    def _add(self, step: Launch | Zero, at: Position) -> None:
        if len(self.steps) == limits.MAX_STEPS_IN_PLAN:
            hint = "let one launch do more blocks"
            raise mistake(f"more than {limits.MAX_STEPS_IN_PLAN} launches", at, hint)
        self.steps.append(step)

    def _start(self, start: Start) -> None:
        grid, block = self._cuda_grid(start) if self._style is GridStyle.CUDA else self._cpu_grid(start)
        _check_grid(grid, start.at)
        args = tuple(self._argument(each) for each in start.arguments)
        attributes = self._attributes(start)
        if math.prod(grid) > 0:
            self._add(Launch(start.kernel, grid, block, args, attributes, start.at.line), start.at)

    def _cpu_grid(self, start: Start) -> tuple[tuple[int, ...], None]:
        if len(start.entries) == 1:
            return integers(start.entries[0], self._scope), None
        return tuple(integer(entry, self._scope) for entry in start.entries), None

    def _cuda_grid(self, start: Start) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if len(start.entries) != 2:
            hint = f"write {start.kernel}[(gx, gy), (bx, by)](...)"
            raise mistake(
                "a CUDA launch has two entries in its brackets, the grid and the block", start.at, hint
            )
        grid, block = (integers(entry, self._scope) for entry in start.entries)
        within = all(1 <= extent <= most for extent, most in zip(block, _CUDA_MAX_BLOCK, strict=False))
        if not 1 <= len(block) <= 3 or not within or math.prod(block) > _CUDA_MAX_THREADS:
            raise mistake(
                f"{block} is not a block", start.entries[1].at, "one to three extents, 1024 threads at most"
            )
        if any(extent > most for extent, most in zip(grid, _CUDA_MAX_GRID, strict=False)):
            raise mistake(
                f"the grid {grid} is too large", start.entries[0].at, "CUDA allows (2147483647, 65535, 65535)"
            )
        return grid, block

    def _argument(self, expr: Expr) -> TensorArg | int | float:
        value: Value = evaluate(expr, self._scope)
        match value:
            case bool():
                return int(value)
            case int() | float():
                return value
            case tuple():
                raise mistake(
                    f"{describe(value)} cannot be passed to a kernel", expr.at, "pass its entries one by one"
                )
            case _:
                return TensorArg(value.name)

    def _attributes(self, start: Start) -> dict[str, int]:
        values = {}
        for name, expr in start.attributes:
            if self._style is GridStyle.CPU:
                raise mistake(
                    f"a CPU launch takes no '{name}='", start.at, "attributes belong to CUDA launches"
                )
            if name not in _ATTRIBUTE_LIMITS:
                hint = suggest(name, _ATTRIBUTE_LIMITS, f"attributes are {', '.join(_ATTRIBUTE_LIMITS)}")
                raise mistake(f"'{name}' is not a launch attribute", start.at, hint)
            values[name] = integer(expr, self._scope)
            if not 0 <= values[name] <= _ATTRIBUTE_LIMITS[name]:
                raise mistake(
                    f"{name}={values[name]} is out of range", expr.at, f"0 to {_ATTRIBUTE_LIMITS[name]}"
                )
        return values


def _check_grid(grid: tuple[int, ...], at: Position) -> None:
    if not 1 <= len(grid) <= 3 or min(grid) < 0:
        raise mistake(f"{grid} is not a grid", at, "one to three extents, none negative")
    if math.prod(max(extent, 1) for extent in grid) > limits.MAX_EXTENT:
        raise mistake(f"the grid {grid} is too large", at, f"at most {limits.MAX_EXTENT} blocks in all")
