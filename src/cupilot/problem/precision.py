"""The declared precision of a problem: how its numbers are stored and how they are computed with.

Does not choose tolerances: that is the evaluator's part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cupilot.errors import ProblemError
from cupilot.types import DType, TensorSpec


class Arithmetic(StrEnum):
    """The coarsest arithmetic a kernel may use; TF32 exists only here, never in storage."""

    F64 = "f64"
    F32 = "f32"
    TF32 = "tf32"
    F16 = "f16"
    BF16 = "bf16"


@dataclass(frozen=True)
class Precision:
    """`storage` is the element type of the floating tensors, `arithmetic` what sums and products are made in.

    `declared` says that the file asked for it, so that its tensors are cast to `storage`.
    """

    storage: DType
    arithmetic: Arithmetic
    declared: bool = False

    def __str__(self) -> str:
        return f"{self.storage}/{self.arithmetic}"


def parse_precision(text: object) -> Precision:
    """Read `PRECISION = "f16/f32"`; one word means the same for storage and arithmetic."""
    try:
        if not isinstance(text, str):
            raise ValueError(text)
        storage, _, arithmetic = text.partition("/")
        precision = Precision(DType(storage), Arithmetic(arithmetic or storage), declared=True)
        if not precision.storage.is_floating:
            raise ValueError(text)
    except ValueError:
        raise ProblemError(
            f"PRECISION = {text!r} is not a precision",
            hint='write storage/arithmetic, for example PRECISION = "f32/f32", "f32/tf32" or "f16/f32"',
        ) from None
    return precision


def default_precision(tensors: Iterable[TensorSpec]) -> Precision:
    """What the tensors themselves say: the widest floating type, computed in at least fp32."""
    floating = [spec.dtype for spec in tensors if spec.dtype.is_floating]
    storage = max(floating, key=lambda dtype: dtype.size_bytes, default=DType.F32)
    return Precision(storage, Arithmetic.F64 if storage is DType.F64 else Arithmetic.F32)
