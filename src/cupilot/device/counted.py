"""What a device without a clock can say of a kernel: how much it executes and how it asks for memory.

Counts are of one call. No time follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable


class Space(StrEnum):
    GLOBAL = "global"  # units: sectors of 32 bytes
    SHARED = "shared"  # units: wavefronts, of 32 banks with 4 bytes each


UNIT_BYTES: Mapping[Space, int] = {Space.GLOBAL: 32, Space.SHARED: 128}


@dataclass(frozen=True)
class Access:
    """One instruction that asks for memory, over all warps that executed it."""

    line: int  # of the kernel file; 0 when the compiler does not say
    text: str
    space: Space
    lane_bytes: int
    requests: int
    lanes: int
    units: int
    is_atomic: bool = False

    @property
    def asked_bytes(self) -> int:
        return self.lanes * self.lane_bytes

    @property
    def moved_bytes(self) -> int:
        return self.units * UNIT_BYTES[self.space]

    @property
    def least_units(self) -> int:
        """If its lanes lay side by side."""
        per_request = self.asked_bytes / max(1, self.requests) / UNIT_BYTES[self.space]
        return round(self.requests * max(1.0, per_request))


@dataclass(frozen=True)
class KernelCounts:
    """All launches of one kernel. The last fields are the compiler's and hold for its largest launch."""

    name: str
    warp_instructions: int
    thread_instructions: int
    mix: Mapping[str, int]  # warp instructions by kind
    accesses: tuple[Access, ...]
    blocks: int
    threads: int
    registers: int
    spilled_bytes: int
    shared_bytes: int  # static and dynamic, of a block
    occupancy: float
    limited_by: str
    machine_code: Mapping[str, int]  # how often each opcode stands in it; a loop counts once
    races_followed: bool  # between blocks

    @property
    def active_lanes(self) -> float:
        """The share of lanes that did something, where a warp executed."""
        return self.thread_instructions / max(1, 32 * self.warp_instructions)


@dataclass(frozen=True)
class Counted:
    kernels: tuple[KernelCounts, ...]
    barriers: int
    atomics: int
    atomic_conflicts: int  # lanes that met another lane of their warp at the same address
    unique_bytes: int  # global memory that was touched at all
    multiprocessors: int


@runtime_checkable
class Counting(Protocol):
    """A session that counts."""

    def counted(self) -> Counted:
        """Everything since the session was opened."""
