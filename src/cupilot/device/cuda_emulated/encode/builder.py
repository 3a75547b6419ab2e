"""Collects the emulator's instructions for one kernel: registers, predicates, constants, labels, sites."""

from __future__ import annotations

from dataclasses import dataclass, field

from cupilot.device.cuda_emulated.ptx.model import Instruction
from cupilot.errors import CupilotError

NONE = 0xFFFFFFFF  # an operand that is not there
NEGATED = 1 << 31  # of a predicate operand
SLOT_BYTES = 128  # 32 lanes of 4 bytes
_SIGN = 1 << 63


class UnsupportedError(CupilotError):
    """The emulator does not execute this instruction. Never guessed at."""

    def __init__(self, instruction: Instruction, why: str = "") -> None:
        place = instruction.place
        source = f"line {place.line} of {place.file.rsplit('/', 1)[-1]}: " if place.line else ""
        detail = f" ({why})" if why else ""
        super().__init__(
            f"{source}the emulator does not execute `{instruction.text}`, PTX line {place.ptx_line}{detail}",
            hint="write it without this instruction, or run it on a GPU",
        )
        self.instruction = instruction


@dataclass(frozen=True, slots=True)
class Reg:
    """A virtual register of 32 lanes; narrower types live in 32 bits. `out` marks a use that writes it."""

    number: int
    wide: bool  # 64 bits per lane
    out: bool = False

    def written(self) -> Reg:
        return Reg(self.number, self.wide, True)


@dataclass(frozen=True, slots=True)
class Const:
    """A preloaded register holding the same value in all lanes."""

    value: int
    wide: bool


Source = Reg | Const
Operand = Source | int
_REGISTER_FIELDS = ("dst", "a", "b", "c", "d", "e")


@dataclass(slots=True)
class Emitted:
    op: str
    fields: dict[str, Operand]
    extra: list[Operand]
    target: str | None
    origin: Instruction
    counts: bool  # stands for the PTX instruction in the instruction mix
    guarded: bool


@dataclass
class Builder:
    code: list[Emitted] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    site_count: int = 0
    register_count: int = 0
    predicate_count: int = 0
    shared_bytes: int = 0
    local_bytes: int = 0
    narrowest: dict[str, int] = field(default_factory=lambda: {"shared": 4, "global": 4})
    synchronises: bool = False
    waits: bool = False  # reads memory that other blocks write while it runs
    current: Instruction | None = None
    _counted: Instruction | None = None
    _guarded: bool = False

    def reg(self, wide: bool) -> Reg:
        self.register_count += 1
        return Reg(self.register_count - 1, wide)

    def predicate(self) -> int:
        self.predicate_count += 1
        return self.predicate_count - 1

    def site(self) -> int:
        self.site_count += 1
        return self.site_count - 1

    def begin(self, instruction: Instruction) -> None:
        self.current, self._counted = instruction, None

    def emit(self, op: str, /, **fields: Operand) -> None:
        """The first instruction that is not an assistant stands for its PTX instruction."""
        self._append(op, fields, counts=True)

    def assist(self, op: str, /, **fields: Operand) -> None:
        self._append(op, fields, counts=False)

    def emit_many(self, op: str, extra: list[Operand], /, **fields: Operand) -> None:
        """An instruction with more operands than a record has places for."""
        self._append(op, fields, counts=True, extra=extra)

    def jump(self, op: str, target: str, /, **fields: Operand) -> None:
        self._append(op, fields, counts=True, target=target)

    def hop(self, op: str, target: str, /, **fields: Operand) -> None:
        """A jump that the PTX does not have."""
        self._append(op, fields, counts=False, target=target)

    def _append(
        self, op: str, fields: dict[str, Operand], *, counts: bool, target: str | None = None,
        extra: list[Operand] | None = None,
    ) -> None:  # fmt: skip
        assert self.current is not None
        counts = counts and self._counted is not self.current
        if counts:
            self._counted = self.current
        self.code.append(Emitted(op, fields, extra or [], target, self.current, counts, self._guarded))

    def guard(self, predicate: int, around: str) -> None:
        """Until `unguard`: only lanes where the predicate holds; without any, on to the label."""
        self.hop("guard", around, a=predicate)
        self._guarded = True

    def unguard(self) -> None:
        self._guarded = False
        self.assist("unguard")

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def note_access(self, space: str, size_bytes: int) -> None:
        for touched in ("shared", "global") if space == "generic" else (space,):
            if touched in self.narrowest:
                self.narrowest[touched] = min(self.narrowest[touched], size_bytes)

    def take_shared(self, size_bytes: int, align: int) -> int:
        start = -(-self.shared_bytes // align) * align
        self.shared_bytes = start + size_bytes
        return start

    def take_local(self, size_bytes: int, align: int) -> int:
        start = -(-self.local_bytes // align) * align
        self.local_bytes = start + size_bytes
        return start


def signed(value: int) -> int:
    """64 bits as the signed number the record holds."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value & _SIGN else value
