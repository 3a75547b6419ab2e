"""What a launch program comes to at one set of shapes and tunables: scratch memory and a list of steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cupilot.types import DType


class GridStyle(StrEnum):
    """What stands in a launch's brackets. CPU: one to three extents. CUDA: a grid and a block."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True)
class ScratchSpec:
    """Memory of the kernel's own: allocated once, contents undefined at the start of every call."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.numel * self.dtype.size_bytes


@dataclass(frozen=True)
class TensorArg:
    """An input, output or scratch tensor, by name."""

    name: str


@dataclass(frozen=True)
class Launch:
    """One kernel over one grid. Every extent is at least 1: a launch without blocks is not a step."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...] | None  # None on the CPU
    args: tuple[TensorArg | int | float, ...]
    attributes: Mapping[str, int] = field(default_factory=dict)
    line: int = field(default=1, compare=False)  # in the kernel file


@dataclass(frozen=True)
class Zero:
    """Set a whole output or scratch tensor to zero bytes."""

    name: str


@dataclass(frozen=True)
class Plan:
    """Steps run strictly in order."""

    scratch: tuple[ScratchSpec, ...]
    steps: tuple[Launch | Zero, ...]
