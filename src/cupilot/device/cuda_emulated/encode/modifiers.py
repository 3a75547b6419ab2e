"""The parts of an opcode, taken one by one; what nobody took makes the instruction unsupported."""

from __future__ import annotations

from cupilot.device.cuda_emulated.encode.builder import UnsupportedError
from cupilot.device.cuda_emulated.ptx.model import Instruction

ROUNDINGS = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
FLUSH, SATURATE, INTEGER, RELU = 4, 8, 16, 32  # flags of native/numbers.h


class Modifiers:
    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.opcode[1:])

    def has(self, name: str) -> bool:
        if name in self._left:
            self._left.remove(name)
            return True
        return False

    def one_of(self, *names: str) -> str | None:
        return next((name for name in names if self.has(name)), None)

    def must(self, *names: str) -> str:
        found = self.one_of(*names)
        if found is None:
            raise UnsupportedError(self._instruction, f"without one of {', '.join('.' + n for n in names)}")
        return found

    def type(self, *allowed: str) -> str:
        """The last part."""
        if not self._left:
            raise UnsupportedError(self._instruction)
        found = self._left.pop()
        if allowed and found not in allowed:
            raise UnsupportedError(self._instruction, f"type .{found}")
        return found

    def skip(self, *names: str, prefixes: tuple[str, ...] = ()) -> None:
        """Drop what changes nothing that is emulated."""
        self._left = [m for m in self._left if m not in names and not m.startswith(prefixes or ("\0",))]

    def done(self) -> None:
        if self._left:
            raise UnsupportedError(self._instruction, f"modifier .{self._left[0]}")
