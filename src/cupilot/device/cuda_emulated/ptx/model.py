"""PTX as values: what a module declares and what its functions consist of. Names and operands stay text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction comes from."""

    ptx_line: int
    file: str = ""  # of the source, as the compiler was told
    line: int = 0


@dataclass(frozen=True, slots=True)
class Instruction:
    opcode: tuple[str, ...]  # "ld.global.f32" split at its dots
    operands: tuple[str, ...]
    guard: str  # a predicate register, "!" before it when negated; empty when always executed
    place: Place

    @property
    def text(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join(self.opcode)} {', '.join(self.operands)}".strip()


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Registers:
    """`count` is None for one register of exactly this name, else %name0 ... %name<count-1>."""

    type: str
    name: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Variable:
    space: str  # "shared", "local", "global", "const", "param"
    name: str
    align: int
    size_bytes: int  # 0: as much as the launch gives (extern shared)
    initial: bytes | tuple[tuple[int, str], ...] = b""  # bytes, or (offset, symbol) pairs


@dataclass(frozen=True, slots=True)
class Scope:
    """A brace: names declared inside are new."""

    opens: bool


@dataclass(frozen=True, slots=True)
class Targets:
    """A jump table of brx.idx."""

    name: str
    labels: tuple[str, ...]


Statement = Instruction | Label | Registers | Variable | Scope | Targets


@dataclass(frozen=True)
class Function:
    name: str
    is_entry: bool
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    statements: tuple[Statement, ...]  # empty for one that is only declared
    max_threads: int | None = None


@dataclass(frozen=True)
class Module:
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
