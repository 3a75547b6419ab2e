"""How many blocks of a kernel fit on one multiprocessor, and what stops the next, by NVIDIA's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

WARP_LANES = 32
MAX_THREADS_PER_BLOCK = 1024
MAX_REGISTERS_PER_THREAD = 255
_REGISTERS_PER_SM = 65536
_REGISTER_UNIT = 256  # registers are handed to warps in these portions
_WARP_UNIT = 4  # warps are spread over four partitions
_KIB = 1024


class Limiter(StrEnum):
    WARPS = "warps"
    BLOCKS = "blocks"
    REGISTERS = "registers"
    SHARED = "shared memory"
    NOTHING_FITS = "nothing fits"


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor of an architecture (CUDA programming guide, compute capabilities)."""

    max_warps: int
    max_blocks: int
    shared_bytes: int
    shared_bytes_per_block: int  # with the opt-in
    shared_reserved_bytes: int  # taken by the system from every block
    shared_unit_bytes: int


MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_75": Multiprocessor(32, 16, 64 * _KIB, 64 * _KIB, 0, 256),
    "sm_80": Multiprocessor(64, 32, 164 * _KIB, 163 * _KIB, 1024, 128),
    "sm_86": Multiprocessor(48, 16, 100 * _KIB, 99 * _KIB, 1024, 128),
    "sm_89": Multiprocessor(48, 24, 100 * _KIB, 99 * _KIB, 1024, 128),
    "sm_90": Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, 1024, 128),
    "sm_90a": Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, 1024, 128),
    "sm_100a": Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, 1024, 128),
    "sm_120": Multiprocessor(48, 24, 100 * _KIB, 99 * _KIB, 1024, 128),
}


@dataclass(frozen=True)
class Occupancy:
    blocks: int  # per multiprocessor
    warps: int
    max_warps: int
    limiter: Limiter

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Of blocks of `threads` threads with `registers` each; `shared_bytes` is static and dynamic memory."""
    sm = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP_LANES)
    shared = _round_up(shared_bytes + sm.shared_reserved_bytes, sm.shared_unit_bytes)
    fits = {
        Limiter.WARPS: sm.max_warps // warps,
        Limiter.BLOCKS: sm.max_blocks,
        Limiter.REGISTERS: _blocks_by_registers(sm, warps, registers),
        Limiter.SHARED: sm.shared_bytes // shared if shared else sm.max_blocks,
    }
    limiter = min(fits, key=lambda which: fits[which])
    blocks = fits[limiter]
    return Occupancy(blocks, blocks * warps, sm.max_warps, limiter if blocks else Limiter.NOTHING_FITS)


def _blocks_by_registers(sm: Multiprocessor, warps: int, registers: int) -> int:
    if registers == 0:
        return sm.max_blocks
    per_warp = _round_up(registers * WARP_LANES, _REGISTER_UNIT)
    warps_per_sm = _REGISTERS_PER_SM // per_warp // _WARP_UNIT * _WARP_UNIT
    return warps_per_sm // _round_up(warps, _WARP_UNIT) if warps_per_sm else 0


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
