"""Where everything lies in the runner's memory: slots of tensors, with guard zones on both sides of each.

Every tensor begins at a page boundary. A guard zone begins at the very byte after a tensor's last one. The
last one fills the huge page that it begins in: nothing in this memory can be written unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cupilot.device.base import Ring
from cupilot.kernel.plan import Plan, ScratchSpec
from cupilot.types import Signature, TensorSpec

PAGE = 4096
HUGE_PAGE = 2 << 20


@dataclass(frozen=True)
class Place:
    """A tensor in slot 0 of its ring, as an offset in the arena; slot k lies `k * stride` further on."""

    name: str
    offset: int
    size: int
    stride: int
    slots: int


@dataclass(frozen=True)
class Guard:
    """Bytes that nobody may touch, between the end of one tensor and the start of the next."""

    offset: int
    size: int
    after: str | None  # the tensor that ends where the zone begins
    before: str | None  # the tensor that begins where it ends


@dataclass(frozen=True)
class Layout:
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    scratch: tuple[Place, ...]
    guards: tuple[Guard, ...]
    size: int

    def place(self, name: str) -> Place:
        return next(p for p in (*self.inputs, *self.outputs, *self.scratch) if p.name == name)


def lay_out(signature: Signature, plan: Plan, ring: Ring) -> Layout:
    guards: list[Guard] = []
    inputs, end = _ring(signature.tensors, ring.inputs, 0, guards)
    outputs, end = _ring(signature.outputs, ring.outputs, end, guards)
    scratch, end = _ring(plan.scratch, 1 if plan.scratch else 0, end, guards)
    size = -(-end // HUGE_PAGE) * HUGE_PAGE
    if guards:
        guards[-1] = replace(guards[-1], size=guards[-1].size + size - end)
    return Layout(inputs, outputs, scratch, tuple(guards), size)


def _ring(
    specs: Sequence[TensorSpec | ScratchSpec], slots: int, start: int, guards: list[Guard]
) -> tuple[tuple[Place, ...], int]:
    """Consecutive slots: guard, tensor, guard, tensor, ..., guard."""
    offsets = []
    at = 0
    for spec in specs:
        offsets.append(_page_after(at))
        at = offsets[-1] + spec.size_bytes
    stride = _page_after(at)
    places = tuple(
        Place(spec.name, start + offset, spec.size_bytes, stride, slots)
        for spec, offset in zip(specs, offsets, strict=True)
    )
    for slot in range(slots):
        guards.extend(_guards_of(places, start + slot * stride, slot, stride))
    return places, start + slots * stride


def _guards_of(places: Sequence[Place], start: int, slot: int, stride: int) -> Iterator[Guard]:
    previous: str | None = None
    at = start
    for place in places:
        here = place.offset + slot * stride
        yield Guard(at, here - at, previous, place.name)
        previous, at = place.name, here + place.size
    yield Guard(at, start + stride - at, previous, None)


def _page_after(offset: int) -> int:
    """The next page boundary with at least one page in between."""
    return -(-offset // PAGE) * PAGE + PAGE
