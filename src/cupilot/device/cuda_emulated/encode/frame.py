"""What the names in a function body mean while it is encoded: registers, variables, labels, parameters."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from cupilot.device.cuda_emulated.encode.builder import (
    NEGATED,
    NONE,
    Builder,
    Const,
    Reg,
    Source,
    UnsupportedError,
)
from cupilot.device.cuda_emulated.encode.special_registers import SPECIAL_REGISTERS
from cupilot.device.cuda_emulated.ptx.model import Instruction, Registers, Variable
from cupilot.device.cuda_emulated.ptx.parser import parse_number

SHARED_WINDOW = 0x7000_0000_0000
LOCAL_WINDOW = 0x7100_0000_0000
GLOBAL_WINDOW = 0x7200_0000_0000
SLOT_SHIFT = 36
MODULE_BUFFER, PARAMETER_BUFFER, WORKSPACE_BUFFER, FIRST_TENSOR_BUFFER = 0, 1, 2, 3

_WIDE_TYPES = frozenset({"b64", "u64", "s64", "f64"})
_REGISTER_TYPES = frozenset(
    {"b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16", "f16x2", "b32", "u32", "s32", "f32"}
)
_MEMORY = re.compile(r"\[\s*([%\w$.]+|-?\d\w*)\s*(?:\+\s*(-?\w+))?\s*\]")


def buffer_address(number: int) -> int:
    return GLOBAL_WINDOW + (number << SLOT_SHIFT)


def is_wide(type_name: str) -> bool:
    return type_name in _WIDE_TYPES


@dataclass
class Names:
    """One brace of a function: registers as (type, virtual register or predicate), variables as addresses."""

    registers: dict[str, tuple[str, Reg | int]] = field(default_factory=dict)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)  # (space, address within it)
    parameters: dict[str, dict[int, tuple[str, Source]]] = field(default_factory=dict)  # by offset


@dataclass
class Frame:
    """A function being encoded, once per call: its braces, innermost last."""

    builder: Builder
    globals: Mapping[str, tuple[str, int]]  # module variables: (space, address)
    prefix: str  # makes its labels unique
    scopes: list[Names] = field(default_factory=lambda: [Names()])
    entry_parameters: Mapping[str, int] = field(default_factory=dict)  # offsets; empty in called functions
    instruction: Instruction | None = None

    # ---- declarations ----
    def declare(self, registers: Registers) -> None:
        names = [registers.name] if registers.count is None else [
            f"{registers.name}{k}" for k in range(registers.count)
        ]  # fmt: skip
        self.scopes[-1].registers |= dict.fromkeys(names, (registers.type, -1))  # made on first use

    def place(self, variable: Variable) -> None:
        scope = self.scopes[-1]
        if variable.space == "param":
            scope.parameters[variable.name] = {}
        elif variable.space == "shared":
            start = self.builder.take_shared(variable.size_bytes, variable.align)
            scope.variables[variable.name] = ("shared", start)
        else:
            start = self.builder.take_local(variable.size_bytes, variable.align)
            scope.variables[variable.name] = ("local", start)

    # ---- looking up ----
    def fail(self, why: str = "") -> UnsupportedError:
        assert self.instruction is not None
        return UnsupportedError(self.instruction, why)

    def lookup(self, name: str) -> tuple[str, Reg | int]:
        for scope in reversed(self.scopes):
            found = scope.registers.get(name)
            if found is not None:
                type_name, where = found
                if where == -1:
                    if type_name == "pred":
                        where = self.builder.predicate()
                    elif type_name in _REGISTER_TYPES or type_name in _WIDE_TYPES:
                        where = self.builder.reg(type_name in _WIDE_TYPES)
                    else:
                        raise self.fail(f"registers of type .{type_name}")
                    scope.registers[name] = (type_name, where)
                return type_name, where
        raise self.fail(f"{name} is not a register")

    def is_register(self, name: str) -> bool:
        """Inline assembly may name its own without a percent sign."""
        return name.startswith("%") or any(name in scope.registers for scope in self.scopes)

    def type_of(self, name: str) -> str:
        return self.lookup(name)[0]

    def register(self, name: str) -> Reg:
        where = self.lookup(name)[1]
        if not isinstance(where, Reg):
            raise self.fail(f"{name} is a predicate")
        return where

    def predicate(self, text: str) -> int:
        """A predicate operand, negated or not."""
        negated, name = text.startswith("!"), text.lstrip("! ")
        where = self.lookup(name)[1]
        if isinstance(where, Reg):
            raise self.fail(f"{name} is not a predicate")
        return where | (NEGATED if negated else 0)

    def predicate_source(self, text: str) -> int:
        """A predicate, or a constant."""
        if text.lstrip("-").isdigit():
            constant, zero = self.builder.predicate(), Const(0, False)
            comparison = "ne" if int(text) == 0 else "eq"
            self.builder.assist(f"setp.{comparison}.u32", dst=constant, d=NONE, a=zero, b=zero, c=NONE)
            return constant
        return self.predicate(text)

    def variable(self, name: str) -> tuple[str, int] | None:
        for scope in reversed(self.scopes):
            if name in scope.variables:
                return scope.variables[name]
        if name in self.entry_parameters:
            return "param", buffer_address(PARAMETER_BUFFER) + self.entry_parameters[name]
        return self.globals.get(name)

    def parameter(self, name: str) -> dict[int, tuple[str, Source]] | None:
        for scope in reversed(self.scopes):
            if name in scope.parameters:
                return scope.parameters[name]
        return None

    # ---- operands ----
    def source(self, text: str, type_name: str) -> Source:
        """A register, special register, immediate or address, as an operand of this type."""
        wide = is_wide(type_name)
        if self.is_register(text):
            return self._register_or_special(text, wide)
        if text == "WARP_SZ":
            return Const(32, wide)
        number = self._number(text, type_name)
        if number is not None:
            return Const(number & ((1 << 64) - 1) if wide else number & 0xFFFFFFFF, wide)
        return Const(self.address(text)[1], wide)

    def _number(self, text: str, type_name: str) -> int | None:
        number = parse_number(text)
        if number is not None:
            if type_name in ("f32", "f64") and text[:2].lower() not in ("0f", "0d"):
                return _float_bits(float(number), type_name)
            if type_name == "f32" and text[:2].lower() == "0d":
                return _float_bits(struct.unpack("<d", number.to_bytes(8, "little"))[0], "f32")
            if type_name in ("u16", "s16", "b16"):
                return number & 0xFFFF
            return number
        if type_name in ("f32", "f64") and re.fullmatch(r"-?\d*\.?\d+(?:[eE][-+]?\d+)?", text):
            return _float_bits(float(text), type_name)
        return None

    def _register_or_special(self, text: str, wide: bool) -> Source:
        special = SPECIAL_REGISTERS.get(text)
        if special is None:
            found = self.register(text)
            if found.wide and not wide:
                narrow = self.builder.reg(False)
                self.builder.assist("cvt.now.u32.u64", dst=narrow, a=found)
                return narrow
            if wide and not found.wide:
                raise self.fail(f"{text} is too narrow")
            return found
        temporary = self.builder.reg(wide)
        self.builder.assist("sreg.b64" if wide else "sreg.b32", dst=temporary, x=special)
        return temporary

    def address(self, text: str) -> tuple[str, int]:
        """Space and value of a symbol, with or without a displacement."""
        name, _, displacement = text.partition("+")
        found = self.variable(name.strip())
        if found is None:
            raise self.fail(f"unknown name {name.strip()}")
        return found[0], found[1] + (int(displacement, 0) if displacement else 0)

    def memory(self, text: str) -> tuple[str, int]:
        """The base (a register or a symbol) and the displacement of "[base+displacement]"."""
        match = _MEMORY.fullmatch(text)
        if match is None:
            raise self.fail(f"address {text}")
        return match[1], int(match[2], 0) if match[2] else 0


def _float_bits(value: float, type_name: str) -> int:
    format_ = "<f" if type_name == "f32" else "<d"
    return int.from_bytes(struct.pack(format_, value), "little")
