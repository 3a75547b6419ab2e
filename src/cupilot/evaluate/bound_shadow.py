"""Shadow memory: beside every float64 element its error bound, beside every discrete one a flag of doubt.

Bounds are kept per *storage*, not per tensor, so views share them and in-place writes through a view are seen
by its base, as with the values themselves. Does not decide what an operator does to a bound: the rules do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from cupilot.evaluate.rounding import FACTOR, Rounding

STEP_UNITS = 32.0  # the finite step of the pointwise rules, in units of the unit round-off
HOPELESS = 1e300  # a bound that stands for "nothing is known here"


@dataclass(frozen=True)
class Selection:
    """Where an index came from: values (rows, n), and their bounds unless they are exact."""

    values: torch.Tensor
    errors: torch.Tensor | None
    dim: int
    shape: tuple[int, ...]  # the index output with `dim` present
    distinct: bool


class Shadows:
    """Error bounds and doubts of all live tensors, and what the operators' rules need to know besides."""

    def __init__(self, rounding: Rounding, root_cap: float) -> None:
        self.rounding = rounding
        self.root_cap = root_cap
        self.sketched: set[str] = set()
        self._cells: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._selections: dict[int, tuple[StorageWeakRef, Selection]] = {}
        self._writes = 0

    @property
    def step(self) -> float:
        return STEP_UNITS * self.rounding.unit

    @property
    def jump(self) -> float:
        """Divides the height of a discontinuity so that the allowed error just covers it."""
        return FACTOR * self.rounding.unit

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The bounds (or doubts) of `tensor`, shaped like it; None means all zero."""
        entry = self._cells.get(_key(tensor))
        if entry is None:
            return None
        return entry[1].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def error(self, tensor: torch.Tensor) -> torch.Tensor:
        found = self.get(tensor)
        return torch.zeros_like(tensor) if found is None else found

    def doubt(self, tensor: torch.Tensor) -> torch.Tensor:
        found = self.get(tensor)
        return torch.zeros(tensor.shape, dtype=torch.bool) if found is None else found

    def put(self, tensor: torch.Tensor, shadow: torch.Tensor) -> None:
        """Attaches bounds: NaN counts as zero and infinity as hopeless."""
        if shadow.is_floating_point():
            shadow = torch.nan_to_num(shadow, nan=0.0, posinf=HOPELESS)
        key, count = _key(tensor), tensor.untyped_storage().nbytes() // tensor.element_size()
        if key not in self._cells:
            if count == tensor.numel() and tensor.is_contiguous():
                self._keep(key, tensor, shadow.expand(tensor.shape).contiguous().reshape(-1))
                return
            self._keep(key, tensor, torch.zeros(count, dtype=shadow.dtype))
        cells = self._cells[key][1]
        cells.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(shadow)

    def select(self, index: torch.Tensor, selection: Selection) -> None:
        self._selections[_key(index)] = (_weak(index), selection)

    def selection(self, index: torch.Tensor) -> Selection | None:
        entry = self._selections.get(_key(index))
        if entry is None or index.numel() != math.prod(entry[1].shape):
            return None
        return entry[1]

    def is_exact(self, tensor: torch.Tensor) -> bool:
        """True where only inputs, moved or negated, can stand: their bound is their own magnitude."""
        found = self.get(tensor)
        return found is None or bool(torch.equal(found, finite_magnitude(tensor)))

    def _keep(self, key: int, tensor: torch.Tensor, cells: torch.Tensor) -> None:
        self._cells[key] = (_weak(tensor), cells)
        self._writes += 1
        if (
            self._writes % 16 == 0
        ):  # a weak reference keeps the address from being reused until it is dropped here
            for table in (self._cells, self._selections):
                for dead in [k for k, (ref, _) in table.items() if _is_gone(ref)]:
                    del table[dead]


def carries_error(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


def is_discrete(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point() and not value.is_complex()


def finite_magnitude(tensor: torch.Tensor) -> torch.Tensor:
    """|x|, with zero where x is not finite: an infinity carries no rounding error."""
    return torch.nan_to_num(tensor.abs(), nan=0.0, posinf=0.0)


def chunks(out: torch.Tensor, leaves: list[torch.Tensor]) -> Iterator[Callable[[torch.Tensor], torch.Tensor]]:
    """Cuts tensors that broadcast to `out` into pieces that stay in cache; yields their cutters."""
    if out.numel() <= _CHUNK:
        yield lambda tensor: tensor
        return
    flat = out.is_contiguous() and all(
        leaf.dim() == 0 or (leaf.shape == out.shape and leaf.is_contiguous()) for leaf in leaves
    )
    shape = (out.numel(),) if flat else tuple(out.shape)
    dim = next(i for i, extent in enumerate(shape) if extent > 1)
    length = max(1, _CHUNK * shape[dim] // out.numel())
    for start in range(0, shape[dim], length):
        size = min(length, shape[dim] - start)

        def cut(tensor: torch.Tensor, start: int = start, size: int = size) -> torch.Tensor:
            if tensor.dim() == 0:
                return tensor
            whole = tensor.view(-1) if flat else tensor.expand(out.shape)
            return whole.narrow(dim, start, size)

        yield cut


_CHUNK = 1 << 15  # up to here torch stays on one thread: waiting for others costs more than they bring


def _weak(tensor: torch.Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def _is_gone(reference: StorageWeakRef) -> bool:
    return bool(reference.expired())  # type: ignore[no-untyped-call]


def _key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
