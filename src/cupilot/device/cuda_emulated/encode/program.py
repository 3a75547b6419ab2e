"""An encoded kernel: what the emulator executes, and for each of its instructions the PTX it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupilot.device.cuda_emulated.ptx.model import Instruction

_MAGIC = 0x58545045
_RECORD = np.dtype(
    [(name, "<u4") for name in ("op", "dst", "a", "b", "c", "d", "e", "target", "site", "x", "y", "unused")]
    + [("imm", "<i8")]
)
_SYNCHRONISES, _MAY_SPIN = 1, 2


@dataclass(frozen=True)
class Program:
    entry: str
    code: np.ndarray[Any, np.dtype[Any]]  # of _RECORD
    names: tuple[str, ...]  # operations, as `code["op"]` numbers them
    origins: tuple[Instruction | None, ...]  # per instruction; None for helpers that count as nothing
    places: tuple[Instruction, ...]  # per instruction: the PTX instruction to blame
    sites: tuple[int, ...]  # per memory site: its instruction
    constants: tuple[int, ...]  # two words per 128-byte slot
    extra: tuple[int, ...]
    register_bytes: int
    predicate_count: int
    static_shared: int
    local_bytes: int
    parameter_bytes: int
    parameter_offsets: tuple[tuple[int, int], ...]  # (offset, size) in order
    granule_shared: int  # the smallest access, in bytes
    granule_global: int
    synchronises: bool
    may_spin: bool
    max_threads: int | None  # of a block, as __launch_bounds__ promised

    def pack(self) -> bytes:
        flags = self.synchronises * _SYNCHRONISES | self.may_spin * _MAY_SPIN
        counts = (len(self.code), len(self.constants), len(self.names), len(self.extra))
        sizes = (
            self.register_bytes, self.predicate_count, len(self.sites), self.static_shared, self.local_bytes,
            self.granule_shared.bit_length() - 1, self.granule_global.bit_length() - 1, flags,
        )  # fmt: skip
        head = np.array([_MAGIC, *counts, *sizes], "<u4").tobytes()
        head += b"".join(name.encode() + b"\0" for name in self.names)
        words = np.array([*self.constants, *self.extra], "<u4").tobytes()
        return _padded(_padded(head) + words) + self.code.tobytes()


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)


def record_array(rows: list[Mapping[str, int]]) -> np.ndarray[Any, np.dtype[Any]]:
    names = _RECORD.names or ()
    return np.array([tuple(row.get(name, 0) for name in names) for row in rows], _RECORD)
