"""Places a problem on a device's roofline: zone, floors, what is attainable.

Pure arithmetic over two values: what a problem must do at least (`Work`) and what a device can do at
most (`DevicePeaks`). Measures nothing and knows no kernel.

Two times come out, for two uses. The *floor* is sound: no correct kernel can be faster, so a faster one
is wrong. The *attainable* time is what a very good kernel reaches (it copies at the speed of copying, its
plain operations are not all fused multiply-adds): it steers the search and says when to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from cupilot.problem.operators import Operation
from cupilot.problem.precision import Arithmetic

if TYPE_CHECKING:
    from cupilot.problem.counts import Counts


class Zone(StrEnum):
    """What binds a problem on a device."""

    MEMORY = "memory"  # left of the first ridge: the plain cores keep up with the memory
    MIDDLE = "middle"  # between the ridges: memory-bound on matrix units, compute-bound on plain cores
    COMPUTE = "compute"  # right of the second ridge
    LATENCY = "latency"  # an empty launch takes longer than the work


class Format(StrEnum):
    """Number formats whose arithmetic has a peak of its own."""

    F64 = "f64"
    F32 = "f32"
    TF32 = "tf32"
    F16 = "f16"
    BF16 = "bf16"
    F8 = "f8"
    I8 = "i8"


class Pattern(StrEnum):
    """How memory is walked. Bandwidth counts the bytes the program names, not what the caches add."""

    READ = "read"
    WRITE = "write"
    COPY = "copy"
    TRIAD = "triad"  # reads two arrays, writes one
    STREAM_WRITE = "stream write"  # non-temporal stores
    STREAM_COPY = "stream copy"
    ZERO = "zero"  # writing zeros, which some memory systems do faster than writing data


_READ_SHARE = {
    Pattern.READ: 1.0,
    Pattern.WRITE: 0.0,
    Pattern.COPY: 1 / 2,
    Pattern.TRIAD: 2 / 3,
    Pattern.STREAM_WRITE: 0.0,
    Pattern.STREAM_COPY: 1 / 2,
    Pattern.ZERO: 0.0,
}


class Source(StrEnum):
    """Where peaks come from. Times computed from a data sheet are predictions."""

    MEASURED = "measured"
    DATASHEET = "datasheet"


@dataclass(frozen=True)
class Work:
    """What any correct implementation must do at least."""

    bytes_read: float
    bytes_written: float
    operations: Mapping[Operation, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bytes_total <= 0:
            raise ValueError("a problem reads or writes something")

    @classmethod
    def of(cls, counts: Counts) -> Work:
        return cls(counts.bytes_read, counts.bytes_written, counts.operations)

    @property
    def bytes_total(self) -> float:
        return self.bytes_read + self.bytes_written

    @property
    def operations_total(self) -> float:
        return sum(self.operations.values())


@dataclass(frozen=True)
class MemoryLevel:
    """A cache or the main memory (`capacity_bytes` None), as all threads of `DevicePeaks` see it together."""

    name: str
    capacity_bytes: int | None
    bytes_per_s: Mapping[Pattern, float]

    def fits(self, footprint_bytes: float) -> bool:
        return self.capacity_bytes is None or footprint_bytes <= self.capacity_bytes


@dataclass(frozen=True)
class DevicePeaks:
    """What a device can do at most, dense (no sparsity)."""

    device: str
    source: Source
    threads: int  # CPU threads the figures hold for; 0 on a GPU: the whole device
    levels: tuple[MemoryLevel, ...]  # fastest first; the last one is the main memory
    core_ops_per_s: Mapping[Format, float]  # a fused multiply-add is two operations
    matrix_ops_per_s: Mapping[Format, float]  # empty without matrix units
    special_per_s: float  # f32 exponentials
    launch_s: float  # an empty launch, over all threads, waited for

    def level(self, footprint_bytes: float) -> MemoryLevel:
        """The fastest level that holds the footprint."""
        return next(level for level in self.levels if level.fits(footprint_bytes))

    def core(self, arithmetic: Arithmetic) -> float:
        """Plain-core rate; a precision without plain arithmetic of its own (as tf32) runs as f32."""
        return self.core_ops_per_s.get(Format(arithmetic), self.core_ops_per_s[Format.F32])

    def matrix(self, arithmetic: Arithmetic) -> float:
        """The rate of contractions on the best unit that knows the precision."""
        return max(self.core(arithmetic), self.matrix_ops_per_s.get(Format(arithmetic), 0.0))


@dataclass(frozen=True)
class Placement:
    """A problem on a roofline. The two ridge points coincide where no matrix unit helps this problem."""

    zone: Zone
    level: str  # of memory, whose bandwidth counts
    source: Source
    intensity_ops_per_byte: float
    core_ridge_ops_per_byte: float
    matrix_ridge_ops_per_byte: float
    bytes_per_s: float  # attainable at this mix of reads and writes
    core_ops_per_s: float  # attainable at this mix of operations, on plain cores
    matrix_ops_per_s: float  # the same with contractions on the best unit
    byte_floor_s: float
    operation_floor_s: float
    attainable_s: float

    @property
    def floor_s(self) -> float:
        return max(self.byte_floor_s, self.operation_floor_s)

    @property
    def binds(self) -> str:
        """What the attainable time is made of, in a word or two."""
        return {
            Zone.MEMORY: f"{self.level} bandwidth",
            Zone.MIDDLE: f"plain-core arithmetic, {self.level} bandwidth with matrix units",
            Zone.COMPUTE: "arithmetic",
            Zone.LATENCY: "launch latency",
        }[self.zone]

    def headroom(self, time_s: float) -> float:
        """The share of a kernel's time that a very good kernel would not need."""
        return max(0.0, 1 - self.attainable_s / time_s)


def place(work: Work, peaks: DevicePeaks, arithmetic: Arithmetic, footprint_bytes: float) -> Placement:
    """`footprint_bytes` is what repeated calls walk through before they meet the same memory again."""
    level = peaks.level(footprint_bytes)
    bytes_s = _attainable_bytes_s(work, level)
    core_s = _attainable_operations_s(work, peaks, peaks.core(arithmetic), peaks.core(arithmetic))
    matrix_s = _attainable_operations_s(work, peaks, peaks.core(arithmetic), peaks.matrix(arithmetic))
    bytes_per_s = work.bytes_total / bytes_s
    core_ops_per_s = work.operations_total / core_s if core_s else peaks.core(arithmetic)
    matrix_ops_per_s = work.operations_total / matrix_s if matrix_s else peaks.core(arithmetic)
    return Placement(
        zone=_zone(bytes_s, core_s, matrix_s, peaks.launch_s),
        level=level.name,
        source=peaks.source,
        intensity_ops_per_byte=work.operations_total / work.bytes_total,
        core_ridge_ops_per_byte=core_ops_per_s / bytes_per_s,
        matrix_ridge_ops_per_byte=matrix_ops_per_s / bytes_per_s,
        bytes_per_s=bytes_per_s,
        core_ops_per_s=core_ops_per_s,
        matrix_ops_per_s=matrix_ops_per_s,
        byte_floor_s=byte_floor_s(work, peaks, footprint_bytes),
        operation_floor_s=operation_floor_s(work, peaks, arithmetic),
        attainable_s=max(bytes_s, matrix_s),
    )


def byte_floor_s(work: Work, peaks: DevicePeaks, footprint_bytes: float) -> float:
    """Reads at the fastest reading seen, writes at the fastest writing, both together at the fastest mix."""
    outward = peaks.levels[peaks.levels.index(peaks.level(footprint_bytes)) :]
    rates = [(pattern, rate) for level in outward for pattern, rate in level.bytes_per_s.items()]
    return max(
        work.bytes_read / max(rate * _READ_SHARE[pattern] for pattern, rate in rates),
        work.bytes_written / max(rate * (1 - _READ_SHARE[pattern]) for pattern, rate in rates),
        work.bytes_total / max(rate for _, rate in rates),
    )


def operation_floor_s(work: Work, peaks: DevicePeaks, arithmetic: Arithmetic) -> float:
    """Contractions on the best unit, or other arithmetic on all pipes.

    Comparisons and special functions count nothing here: they may run on pipes and in formats of their own.
    """
    return max(
        work.operations.get(Operation.CONTRACTION, 0) / peaks.matrix(arithmetic),
        work.operations.get(Operation.ARITHMETIC, 0) / peaks.core(arithmetic),
    )


def _attainable_bytes_s(work: Work, level: MemoryLevel) -> float:
    """Copies what can be paired; the rest is only read or only written."""
    paired = min(work.bytes_read, work.bytes_written)
    read = work.bytes_read - paired
    written = work.bytes_written - paired
    return (
        2 * paired / _fastest(level, Pattern.COPY, Pattern.STREAM_COPY)
        + read / _fastest(level, Pattern.READ)
        + written / _fastest(level, Pattern.WRITE, Pattern.STREAM_WRITE)
    )


def _attainable_operations_s(work: Work, peaks: DevicePeaks, core: float, contraction: float) -> float:
    """A plain operation takes the slot of a fused one, which counts two; special functions overlap."""
    operations = work.operations
    plain = operations.get(Operation.ARITHMETIC, 0) + operations.get(Operation.COMPARE, 0)
    arithmetic_s = operations.get(Operation.CONTRACTION, 0) / contraction + 2 * plain / core
    return max(arithmetic_s, operations.get(Operation.SPECIAL, 0) / peaks.special_per_s)


def _fastest(level: MemoryLevel, *patterns: Pattern) -> float:
    return max(level.bytes_per_s.get(pattern, 0.0) for pattern in patterns)


def _zone(bytes_s: float, core_s: float, matrix_s: float, launch_s: float) -> Zone:
    if max(bytes_s, matrix_s) < launch_s:
        return Zone.LATENCY
    if core_s <= bytes_s:
        return Zone.MEMORY
    return Zone.COMPUTE if matrix_s >= bytes_s else Zone.MIDDLE
