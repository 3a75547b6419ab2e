"""x86-64 instructions as objdump prints them (AT&T syntax), and the questions cuPilot asks about one.

Knows mnemonics by pattern, not by table: an unknown instruction answers "no" to everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)(?:\s+([^#<]*?))?\s*(?:<([^>]*)>)?\s*(?:#.*)?$")
_PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs", "ds", "es", "{vex}", "{evex}"}
_REGISTER = re.compile(r"%([xyz])mm(\d+)")
_BITS = {"x": 128, "y": 256, "z": 512}
_STACK = re.compile(r"-?(?:0x[0-9a-f]+)?\(%(rsp|rbp)\)")

_FUSED = r"fn?m(?:add|sub)(?:132|213|231)|fm(?:addsub|subadd)(?:132|213|231)"
_ARITHMETIC = (
    rf"(?:{_FUSED}|add|sub|mul|div|sqrt|max|min|rcp\d*|rsqrt\d*|round|rndscale|scalef|reduce|hadd|addsub)"
)
_DOT = r"dpbf16ps|pdpbusds?|pdpwssds?|pmadd(?:wd|ubsw)"
_INTEGER = r"p(?:add|sub|mul|min|max|cmp|abs|sad)\w+"
_IS_SCALAR = re.compile(_ARITHMETIC + r"s[sdh]|cmp[a-z]+s[sdh]|u?comis[sdh]")
_IS_PACKED = re.compile(_ARITHMETIC + rf"p[sdh]|cmp[a-z_]*p[sdh]|{_DOT}|{_INTEGER}")
_IS_FUSED = re.compile(rf"(?:{_FUSED})[ps][sdh]|{_DOT}")
_IS_DIVIDE = re.compile(r"(?:div|sqrt)[ps][sdh]|i?div[bwlq]?")
_IS_STREAMING = re.compile(r"movnt(?:p[sd]|dq|q|i)")
_USES_PART = re.compile(r"(?!pdp).*s[sdh]|mov[dq]|cvts\w+|p?xorp?[sd]?")  # of a vector register, or clears it
_TOUCHES_NO_MEMORY = re.compile(r"(?:lea|nop|prefetch|j|call|endbr)\w*")
_WRITES_NOTHING = re.compile(r"u?comis[sdh]|cmp[bwlq]?|test[bwlq]?|ptest|testp[sd]|push\w*")
_OVERWRITES = re.compile(r"(?:mov|lddqu|cvt|broadcast|pbroadcast|sqrtp|rcp|rsqrt|pmov|pabs|pshuf|perm)\w*")


@dataclass(frozen=True)
class Instruction:
    """Operands in AT&T order: sources first, destination last."""

    address: int
    mnemonic: str  # without the leading v of the three-operand forms
    operands: tuple[str, ...]
    symbol: str = ""  # what a jump or call goes to

    @property
    def is_scalar(self) -> bool:
        """Floating-point arithmetic, or a comparison, of one element."""
        return _IS_SCALAR.fullmatch(self.mnemonic) is not None

    @property
    def is_packed(self) -> bool:
        """Arithmetic on a whole vector."""
        return _IS_PACKED.fullmatch(self.mnemonic) is not None

    @property
    def is_fused(self) -> bool:
        return _IS_FUSED.fullmatch(self.mnemonic) is not None

    @property
    def is_divide(self) -> bool:
        """Also square roots: both are an order slower than a multiplication."""
        return _IS_DIVIDE.fullmatch(self.mnemonic) is not None

    @property
    def is_gather(self) -> bool:
        return "gather" in self.mnemonic

    @property
    def is_streaming_store(self) -> bool:
        return _IS_STREAMING.fullmatch(self.mnemonic) is not None

    @property
    def is_call(self) -> bool:
        return self.mnemonic.startswith("call")

    @property
    def callee(self) -> str:
        return re.sub(r"(@plt|\+0x[0-9a-f]+)$", "", self.symbol) or "a function pointer"

    @property
    def operations(self) -> frozenset[str]:
        """What it computes, in scalar and packed, fused and separate forms alike: subps adds."""
        if self.is_fused:
            return frozenset(("mul", "add"))
        name = re.sub(r"[ps][sdh]$", "", self.mnemonic)
        return (
            frozenset(("add" if name == "sub" else name,))
            if self.is_packed or self.is_scalar
            else frozenset()
        )

    @property
    def vector_bits(self) -> int:
        """The widest register it works on as a whole."""
        if _USES_PART.fullmatch(self.mnemonic):
            return 0
        return max((_BITS[m[1]] for o in self.operands for m in _REGISTER.finditer(o)), default=0)

    @property
    def is_store(self) -> bool:
        return (
            self._touches_memory() and len(self.operands) > 1 and "(" in self.operands[-1] and self._writes()
        )

    @property
    def is_load(self) -> bool:
        sources = self.operands[:-1] if self.is_store else self.operands
        return self._touches_memory() and any("(" in operand for operand in sources)

    @property
    def jump_target(self) -> int | None:
        """None unless it is a direct jump."""
        if not self.mnemonic.startswith("j") or not self.operands:
            return None
        return int(self.operands[0], 16) if re.fullmatch(r"[0-9a-f]+", self.operands[0]) else None

    @property
    def falls_through(self) -> bool:
        return not re.fullmatch(r"jmp\w*|ret\w*|ud2|hlt", self.mnemonic)

    def is_spill(self, has_frame: bool) -> bool:
        """A vector at a fixed place on the stack; `has_frame`: %rbp points to the stack as well."""
        if not self._touches_memory() or not any(_REGISTER.search(o) for o in self.operands):
            return False
        places = (_STACK.fullmatch(operand.split("{")[0]) for operand in self.operands)
        return any(place and (place[1] == "rsp" or has_frame) for place in places)

    def vectors_used(self) -> tuple[set[str], set[str]]:
        """Vector registers read, and written."""
        registers = [{m[2] for m in _REGISTER.finditer(operand)} for operand in self.operands]
        if not registers:
            return set(), set()
        *sources, last = registers
        reads = set[str]().union(*sources)
        if self.is_store or not self._writes():
            return reads | last, set()
        if re.match(r"p?xor", self.mnemonic) and reads == last:
            return set(), last  # clears the register
        is_two_operand = len(registers) == 2 and not _OVERWRITES.fullmatch(self.mnemonic)
        return (reads | last if is_two_operand or self.is_fused else reads), last

    def _writes(self) -> bool:
        return not _WRITES_NOTHING.fullmatch(self.mnemonic)

    def _touches_memory(self) -> bool:
        return not _TOUCHES_NO_MEMORY.fullmatch(self.mnemonic)


def parse_instruction(line: str) -> Instruction | None:
    """One line of `objdump -d --no-show-raw-insn`; None where it is something else."""
    match = _LINE.match(line)
    if match is None:
        return None
    address, mnemonic, rest, symbol = match.groups()
    rest = rest or ""
    while mnemonic in _PREFIXES and rest:
        mnemonic, _, rest = rest.partition(" ")
    if mnemonic.startswith("v") and mnemonic not in ("verr", "verw"):
        mnemonic = mnemonic[1:]
    operands = tuple(part.strip() for part in re.split(r",(?![^(]*\))", rest) if part.strip())
    return Instruction(int(address, 16), mnemonic, operands, symbol or "")
