"""What a device can do: turn a kernel file into a library, and hold it in a process of its own that runs it.

The parent never executes a candidate, and a candidate never sees an expected value, a seed or a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from cupilot.kernel.file import KernelFile
from cupilot.kernel.plan import Plan
from cupilot.types import DType, Failed, Signature

Array = np.ndarray[Any, np.dtype[Any]]

# bf16 has no numpy type: it travels as its bits.
NUMPY_TYPES: Mapping[DType, np.dtype[Any]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(np.uint16),
    DType.I64: np.dtype(np.int64),
    DType.I32: np.dtype(np.int32),
    DType.I16: np.dtype(np.int16),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.BOOL: np.dtype(np.bool_),
}


class ElementKind(Enum):
    """What the compiler says a parameter is (the numbers of native/thunk.h)."""

    OPAQUE = 0
    FLOATING = 1
    SIGNED = 2
    UNSIGNED = 3
    BOOLEAN = 4


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as the compiler sees it; a pointer has its element's kind and width."""

    kind: ElementKind
    width_bytes: int
    is_pointer: bool
    is_const: bool  # a pointer to const


@dataclass(frozen=True)
class Compiled:
    """A candidate as a library on disk, inspected but never executed."""

    library: Path
    kernels: Mapping[str, tuple[Parameter, ...]]  # block coordinates included, in order
    log: str  # the compiler's warnings

    @property
    def facts(self) -> Mapping[str, float | str]:
        """What the compiler says the code takes, as "kernel: what"; nothing where it says nothing."""
        return {}


@dataclass(frozen=True)
class Ring:
    """Calls take turns through `inputs` sets of inputs and `outputs` sets of outputs."""

    inputs: int
    outputs: int


@dataclass(frozen=True)
class Ran:
    """A batch came to its end. CPU times are readings of the process's own clock, taken by the parent.

    `cpu_end_ns - cpu_start_ns` is what the batch seemed to cost; what it did cost shows when the next starts.
    """

    cpu_start_ns: int
    cpu_end_ns: int
    wall_ns: int


@dataclass(frozen=True)
class Died:
    """The process is gone; `reason` completes the sentence "the kernel ..."."""

    reason: str


class Session(Protocol):
    """One sandboxed process with a candidate and its buffers. A context manager: leaving it ends the process.

    Memory is written and read by the parent, directly; the process itself never maps or shares anything.
    Once `run` has returned `Died`, everything but closing raises `SessionOverError`.
    """

    @property
    def pid(self) -> int: ...

    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        """Fill input slot `slot`: every input, parameter and buffer of the signature, bf16 as uint16."""

    def poison(self, slot: int) -> None:
        """Fill output slot `slot` with a fresh random pattern: NaN as floats, out of range as integers."""

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        """Calls `first` to `first + count - 1`; call i uses input slot i % R and output slot i % Q.

        Blocks run in their natural order for `order_seed` 0 and in a pseudo-random one otherwise.
        Scratch is filled with a fresh random pattern beforehand.
        """

    def read(self, slot: int) -> dict[str, Array]:
        """The outputs in slot `slot`, as raw values."""

    def read_inputs(self, slot: int) -> dict[str, Array]:
        """The inputs in slot `slot`, as they are now."""

    def check_guards(self) -> str | None:
        """None, or what was written outside the buffers, completing the sentence "the kernel ..."."""

    def cpu_time_ns(self) -> int:
        """CPU time of the process so far; exact while it is not running on another core."""

    def pin(self, core: int) -> None:
        """Keep all threads of the process on one core."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Device(Protocol):
    """A place where kernels run. Outcomes are values; what the machine lacks is `DeviceUnavailable`."""

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str:
        """The suffix of its kernel files: "cpp", "cu"."""

    @property
    def has_clock(self) -> bool:
        """Whether its times mean anything."""

    def compile(
        self, kernel: KernelFile, point: Mapping[str, int], signature: Signature
    ) -> Compiled | Failed: ...

    def open(
        self, compiled: Compiled, plan: Plan, signature: Signature, ring: Ring, threads: int = 1
    ) -> Session | Failed: ...
