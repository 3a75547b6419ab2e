"""The values that flow through the system. Frozen, without behaviour beyond what they say of themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class DType(StrEnum):
    """Element types a kernel can be handed; the value is the name shown to people."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def size_bytes(self) -> int:
        return _SIZE_BYTES[self]

    @property
    def is_floating(self) -> bool:
        return self in (DType.F64, DType.F32, DType.F16, DType.BF16)


_SIZE_BYTES = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8,
    DType.I32: 4, DType.I16: 2, DType.I8: 1, DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip


class Role(StrEnum):
    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OUTPUT = "output"


@dataclass(frozen=True)
class TensorSpec:
    """A named dense, contiguous tensor. `name` is the name a kernel file uses for it."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    role: Role

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.numel * self.dtype.size_bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


Scalar = int | float | bool


@dataclass(frozen=True)
class Signature:
    """Everything a kernel may name, at one set of shapes: tensors in, numbers, tensors out."""

    tensors: tuple[TensorSpec, ...]  # inputs, then parameters, then buffers
    scalars: Mapping[str, Scalar]  # forward's numbers by name, the module's as "self.<name>"
    outputs: tuple[TensorSpec, ...]  # "out", or "out0", "out1", ...


class Stage(StrEnum):
    """Where a candidate stands in the evaluation, in order."""

    PARSE = "parse"
    COMPILE = "compile"
    INSPECT = "inspect"
    LOAD = "load"
    VERIFY = "verify"
    FLOOR = "floor"
    TIME = "time"


@dataclass(frozen=True)
class Failed:
    """The candidate is wrong: `reason` is a sentence for people, `log` the evidence (compiler output)."""

    stage: Stage
    reason: str
    log: str = ""
    error: ErrorFigure | None = None  # the wrong element, where there is one


@dataclass(frozen=True)
class Undecided:
    """No honest verdict was possible (a contended machine, a peak that must be measured again)."""

    reason: str


@dataclass(frozen=True)
class ErrorFigure:
    """The worst element seen: its error over the allowed error, and where it stood."""

    ratio: float
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    input: str  # the name of the distribution
    shape: str
    detail: Mapping[str, float] = field(default_factory=dict)
