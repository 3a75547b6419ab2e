"""Which values an input may take: words for people, and a projection that maps any tensor into the domain.

A domain holds at any shape of the same rank. It is learned from a few draws (see `learning`); this file only
says what a domain is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import torch

from cupilot.problem.dtypes import torch_dtype
from cupilot.types import DType


class Structure(StrEnum):
    """Of the matrices in the last two dimensions."""

    FULL = "full"
    UPPER = "upper triangular"
    LOWER = "lower triangular"
    DIAGONAL = "diagonal"
    SYMMETRIC = "symmetric"


class Order(StrEnum):
    """Along the last dimension."""

    NONE = "unordered"
    ASCENDING = "sorted ascending"
    DESCENDING = "sorted descending"


@dataclass(frozen=True)
class Extent:
    """One extent of a tensor, by name; ties a range of integers to it at every shape."""

    tensor: str
    dim: int

    def __str__(self) -> str:
        return f"{self.tensor}.shape[{self.dim}]"


@dataclass(frozen=True)
class Domain:
    """The values one tensor may take. Without any restriction all floating numbers are allowed."""

    dtype: DType
    low: float | None = None
    high: float | None = None
    values: tuple[float, ...] = ()  # the only ones, ascending
    below: Extent | None = None  # integers: high is this extent minus one
    sums_to_one: int | None = None  # along this dimension
    structure: Structure = Structure.FULL
    order: Order = Order.NONE
    fixed: torch.Tensor | None = field(default=None, compare=False)  # the module's own constant
    drawn: str = ""  # what the generator keeps to, where the module is defined beyond it

    @property
    def is_free(self) -> bool:
        """No restriction beyond the element type."""
        plain = replace(self, drawn="", dtype=DType.F32)
        return self.dtype.is_floating and plain == Domain(DType.F32) and self.fixed is None

    @property
    def is_interval(self) -> bool:
        """Restricted by a range of floating numbers and nothing else."""
        plain = replace(self, low=None, high=None)
        return plain.is_free and (self.low, self.high) != (None, None)

    def at(self, shapes: Mapping[str, tuple[int, ...]]) -> Domain:
        """The domain at other shapes: a range tied to an extent follows it."""
        if self.below is None or self.below.tensor not in shapes:
            return self
        return replace(self, high=max(shapes[self.below.tensor][self.below.dim] - 1, self.low or 0))

    def project(self, tensor: torch.Tensor) -> torch.Tensor:
        """The nearest relative of `tensor` in the domain; what is already inside stays as it is.

        NaN and infinities stay where the domain allows every number, and become finite where it does not.
        """
        if self.fixed is not None:
            return self.fixed.clone()
        wide = tensor.to(torch.float64)
        if self.values:
            wide = _nearest(_finite(wide), self.values)
        elif not self.dtype.is_floating:
            wide = _integers(_finite(wide), self.low or 0, self.high if self.high is not None else 1)
        elif self.sums_to_one is not None:
            wide = _normalized(_finite(wide).abs(), self.sums_to_one, self.low or 0.0)
        elif (self.low, self.high) != (None, None):
            wide = _interval(_finite(wide), self.low, self.high)
        return _ordered(_structured(wide, self.structure), self.order).to(torch_dtype(self.dtype))

    def __str__(self) -> str:
        if self.fixed is not None:
            return "constant, as the module makes it"
        words = [self._range()]
        if self.sums_to_one is not None:
            words.append(f"sums to 1 along dimension {self.sums_to_one}")
        words += [
            str(kind) for kind in (self.structure, self.order) if kind not in (Structure.FULL, Order.NONE)
        ]
        if self.drawn:
            words.append(f"drawn {self.drawn} but defined beyond")
        return ", ".join(words)

    def _range(self) -> str:
        if self.values:
            return "one of " + ", ".join(f"{value:g}" for value in self.values)
        if not self.dtype.is_floating:
            tied = f" (below {self.below})" if self.below else ""
            return f"integers {self.low:.0f} to {self.high:.0f}{tied}"
        match self.low, self.high:
            case None, None:
                return "any number"
            case low, None:
                return f"at least {low:g}"
            case None, high:
                return f"at most {high:g}"
        return f"in [{self.low:g}, {self.high:g}]"


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(tensor, nan=0.0, posinf=1.0, neginf=-1.0)


def _nearest(tensor: torch.Tensor, values: tuple[float, ...]) -> torch.Tensor:
    """The nearest of the values, after stretching the tensor over their range."""
    grid = torch.tensor(values, dtype=torch.float64)
    if torch.isin(tensor, grid).all():
        return tensor
    stretched = _stretched(tensor, values[0], values[-1])
    middles = (grid[1:] + grid[:-1]) / 2
    return grid[torch.bucketize(stretched, middles)]


def _integers(tensor: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Rounded and wrapped into the range; what spans less than it is stretched over it first."""
    inside = (tensor >= low) & (tensor <= high) & (tensor == tensor.round())
    if tensor.numel() == 0 or inside.all():
        return tensor
    if float(tensor.max() - tensor.min()) < high - low:
        tensor = _stretched(tensor, low, high)
    return low + torch.remainder(tensor.round() - low, high - low + 1)


def _stretched(tensor: torch.Tensor, low: float, high: float) -> torch.Tensor:
    if tensor.numel() == 0:
        return tensor
    smallest, largest = tensor.min(), tensor.max()
    if smallest == largest:
        return tensor.clamp(low, high)
    return low + (tensor - smallest) * ((high - low) / (largest - smallest))


def _interval(tensor: torch.Tensor, low: float | None, high: float | None) -> torch.Tensor:
    """Folded by sign, then scaled by a power of two, which keeps every significand as it was."""
    if low is not None and low >= 0:
        tensor = tensor.abs()
    elif high is not None and high <= 0:
        tensor = -tensor.abs()
    if low is not None and high is not None and tensor.numel():
        bound, largest = max(abs(low), abs(high)), float(tensor.abs().max())
        if largest > bound:
            tensor = tensor * 2.0 ** -torch.tensor(largest / bound, dtype=torch.float64).log2().ceil()
    return tensor.clamp(low, high) if (low, high) != (None, None) else tensor


def _normalized(tensor: torch.Tensor, dim: int, low: float) -> torch.Tensor:
    if tensor.numel() == 0:
        return tensor
    peaks = tensor.amax(dim, keepdim=True)
    tensor = torch.where(peaks > 0, tensor / peaks, 1.0)  # a row of zeros becomes uniform
    return (tensor / tensor.sum(dim, keepdim=True)).clamp_min(low)


def _structured(tensor: torch.Tensor, structure: Structure) -> torch.Tensor:
    match structure:
        case Structure.UPPER:
            return tensor.triu()
        case Structure.LOWER:
            return tensor.tril()
        case Structure.DIAGONAL:
            return tensor.triu().tril()
        case Structure.SYMMETRIC:
            return tensor.triu() + tensor.triu(1).mT
    return tensor


def _ordered(tensor: torch.Tensor, order: Order) -> torch.Tensor:
    if order is Order.NONE or tensor.dim() == 0:
        return tensor
    return tensor.sort(-1, descending=order is Order.DESCENDING).values
