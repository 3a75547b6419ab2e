"""What a right answer is: expected values, and the error allowed for each element.

Built once per problem, shape and input, then kept (`reference_cache`). Does not compare; `compare` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cupilot.evaluate.bound import Bounded, run_with_bound
from cupilot.evaluate.bound_shadow import Selection
from cupilot.evaluate.rounding import COHERENT_FACTOR, FACTOR, Rounding

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Mapping[str, torch.Tensor], torch.dtype], tuple[torch.Tensor, ...]]

VAGUE_SHARE = 0.01  # an element whose allowed error exceeds this share of its value proves little
NOTHING = (
    2.0**-120
)  # an allowed error that no one can mistake for a value: zeros that must be zeros are proof


@dataclass(frozen=True)
class Choice:
    """An index output is right if it selects a right value: `values` is (rows, n), chosen along `dim`."""

    values: Array
    allowed: Array | None  # None where the values are the inputs themselves: only true ties are right
    dim: int
    shape: tuple[int, ...]
    distinct: bool


@dataclass(frozen=True)
class OutputReference:
    """One output. `allowed` is None for discrete outputs, which are exact up to `doubt` and `choice`."""

    name: str
    value: Array
    allowed: Array | None
    largest: float  # of the storage type: beyond it an infinity is right
    eager_places: Array  # flat positions where single precision and the reference differ in NaN or infinity
    eager_values: Array  # what single precision has there; either is right
    doubt: Array | None = None
    choice: Choice | None = None

    def vagueness(self, tolerated: float = VAGUE_SHARE) -> float:
        """The share of elements whose allowed error exceeds `tolerated` times their value."""
        if self.value.size == 0:
            return 1.0
        if self.allowed is None:
            return 0.0 if self.doubt is None else float(np.mean(self.doubt))
        size = np.abs(self.value)
        return float(np.mean((self.allowed > tolerated * size) & (self.allowed > NOTHING)))

    @property
    def nonfinite_share(self) -> float:
        """The share of elements that are not finite in the reference or in single precision.

        For indices it is the share among the values that they choose from.
        """
        if self.choice is not None and self.choice.values.size:
            return float(np.mean(~np.isfinite(self.choice.values)))
        if self.allowed is None or self.value.size == 0:
            return 0.0
        infinite = int(np.count_nonzero(~np.isfinite(self.value)))
        only_single = int(np.count_nonzero(~np.isfinite(self.eager_values)))
        return (infinite + only_single) / self.value.size


@dataclass(frozen=True)
class Reference:
    outputs: tuple[OutputReference, ...]
    sketched: tuple[str, ...]  # operators whose bound was sampled, not derived


def build_reference(
    run: Run,
    tensors: Mapping[str, torch.Tensor],
    names: Sequence[str],
    rounding: Rounding,
    *,
    coherent: bool = False,
) -> Reference:
    """Runs the reference in double precision with bounds, and as the framework would in single precision."""
    bounded, sketched = run_with_bound(lambda t: run(t, torch.float64), tensors, rounding, coherent=coherent)
    with torch.no_grad():
        eager = run(tensors, torch.float32)
    factor = COHERENT_FACTOR if coherent else FACTOR
    outputs = tuple(
        _output(name, exact, single, rounding, factor)
        for name, exact, single in zip(names, bounded, eager, strict=True)
    )
    return Reference(outputs, sketched)


def _output(
    name: str, exact: Bounded, eager: torch.Tensor, rounding: Rounding, factor: float
) -> OutputReference:
    none = np.zeros(0)
    if not exact.value.is_floating_point():
        doubt = None if exact.error is None else exact.error.numpy()
        choice = None if exact.selection is None else _choice(exact.selection, rounding, factor)
        discrete = exact.value.contiguous().numpy()
        return OutputReference(name, discrete, None, rounding.largest, none, none, doubt, choice)
    value, single = exact.value.double().contiguous(), eager.double()
    error = torch.zeros_like(value) if exact.error is None else exact.error
    unit = rounding.unit * (error + value.abs() + rounding.underflow)
    worst = torch.nan_to_num((single - value).abs() / unit, nan=0.0, posinf=0.0)
    ratio = float(worst.max()) if worst.numel() else 0.0
    allowed = max(factor, 2 * ratio) * unit
    allowed += rounding.output_rounding * (value.abs() + allowed) + rounding.output_spacing
    special = ~(torch.isfinite(value) & torch.isfinite(single))
    same = (value == single) | (value.isnan() & single.isnan())
    differ = torch.nonzero((special & ~same).reshape(-1)).reshape(-1)
    return OutputReference(
        name,
        value.numpy(),
        np.maximum(_narrow(allowed), np.float32(1e-45)),
        rounding.largest,
        differ.numpy(),
        single.reshape(-1)[differ].numpy(),
    )


def _narrow(allowed: torch.Tensor) -> Array:
    """Single precision is enough to say how much is allowed, and halves what the cache holds."""
    return torch.nan_to_num(allowed, nan=0.0, posinf=float("inf")).float().contiguous().numpy()


def _choice(selection: Selection, rounding: Rounding, factor: float) -> Choice:
    allowed = None
    if selection.errors is not None:
        unit = rounding.unit * (selection.errors + selection.values.abs() + rounding.underflow)
        allowed = (factor * unit).numpy()
    return Choice(selection.values.numpy(), allowed, selection.dim, selection.shape, selection.distinct)
