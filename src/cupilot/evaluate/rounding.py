"""What a declared precision ("f32/f32", "f16/f32", "f32/tf32") means for an error bound.

The part before the slash is how tensors are stored, the part after it how products are formed. Everything
else (pointwise work, accumulation) is held to single precision: a bound in half precision would exceed one
per cent of every result and prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.errors import ProblemError
from cupilot.problem.precision import Precision

UNIT_ROUNDOFF = {"f32": 2.0**-24, "tf32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8}
SMALLEST_NORMAL = {"f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
LARGEST = {"f32": 3.4028234663852886e38, "f16": 65504.0, "bf16": 3.3895313892515355e38}

FACTOR = 24.0  # allowed multiple of the running bound
COHERENT_FACTOR = 64.0  # the same on inputs whose rounding errors all push one way
ROOT_CAP = 32.0  # sqrt(n) stops growing here: honest kernels sum in blocks


@dataclass(frozen=True)
class Rounding:
    """How tensors are stored and how products are formed, as numbers a bound is made of."""

    storage: str = "f32"
    arithmetic: str = "f32"

    @property
    def unit(self) -> float:
        return UNIT_ROUNDOFF["f32"]

    @property
    def underflow(self) -> float:
        """Absolute error of gradual underflow, in units of `unit`."""
        return SMALLEST_NORMAL["f32"]

    @property
    def flush(self) -> float:
        """The same for functions that flush tiny results to zero, as vectorised exponentials do."""
        return SMALLEST_NORMAL["f32"] / (FACTOR * self.unit) * 1.5

    @property
    def product_error(self) -> float:
        """Error of a product's term, in `unit`s, when both factors are rounded to `arithmetic`."""
        if self.arithmetic == "f32":
            return 0.0
        return 3.0 * UNIT_ROUNDOFF[self.arithmetic] / (FACTOR * self.unit)

    @property
    def output_rounding(self) -> float:
        """Relative error of storing a result, beyond the last rounding in single precision."""
        return 0.0 if self.storage == "f32" else UNIT_ROUNDOFF[self.storage]

    @property
    def output_spacing(self) -> float:
        """Absolute error of storing a result that is denormal in the storage type."""
        return 0.0 if self.storage == "f32" else UNIT_ROUNDOFF[self.storage] * SMALLEST_NORMAL[self.storage]

    @property
    def largest(self) -> float:
        return LARGEST[self.storage]

    def __str__(self) -> str:
        return f"{self.storage}/{self.arithmetic}"


def rounding_of(precision: Precision) -> Rounding:
    """The rounding of a declared precision; double precision has no wider reference to be held to."""
    storage, arithmetic = precision.storage.value, precision.arithmetic.value
    if storage not in SMALLEST_NORMAL or arithmetic not in UNIT_ROUNDOFF:
        raise ProblemError(
            f"results in {precision} cannot be checked: the reference itself runs in f64",
            hint='declare PRECISION = "f32/f32", "f32/tf32", "f16/f32" or "bf16/f32"',
        )
    return Rounding(storage, arithmetic)
