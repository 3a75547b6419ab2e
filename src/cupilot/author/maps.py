"""Kernels of stages without reductions: every element by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cupilot.author.bodies import Known
from cupilot.author.layout import Place
from cupilot.author.program import Output
from cupilot.author.walks import BLOCK, Walk, Written


def write_map(walk: Walk) -> Written:
    frame, stores = walk.frame, walk.stage.stores
    if not frame.fine:
        store_all(walk, stores, {}, [], None)
        return walk.written(["block"], ("1",))
    *outer, lane = frame.fine
    extent = frame.extent(lane)
    if outer:
        with walk.items(outer, extent) as (places, grid):
            sweep(walk, stores, {}, places, lane, "0", extent)
        finish(walk)
        return walk.written(["block"], grid)
    block = walk.tune(BLOCK)
    frame.line(f"const long last = (block + 1) * {block} < {extent} ? (block + 1) * {block} : {extent};")
    sweep(walk, stores, {}, [], lane, f"block * {block}", "last")
    finish(walk)
    return walk.written(["block"], (f"cdiv({extent}, {block})",))


def sweep(
    walk: Walk,
    stores: Sequence[Output],
    known: Known,
    places: Sequence[Place],
    lane: tuple[int, ...],
    begin: str,
    end: str,
    held: Callable[[Place], Known] = lambda place: {},
) -> None:
    """All stores along one group. `held`: what need not be computed, at a place."""
    inside = dict(known)
    walk.bodies.ahead([s.node for s in stores], lane, inside, places)
    walk.lanes(
        lane,
        begin,
        end,
        lambda place: store_all(walk, stores, inside | held(place), places, place),
        aligned=to_align(walk, stores, places, lane, begin),
    )


def to_align(
    walk: Walk, stores: Sequence[Output], places: Sequence[Place], lane: tuple[int, ...], begin: str
) -> str:
    """What streaming wants aligned: the first tensor that is written along the lane."""
    frame = walk.frame
    if not (walk.style.stream and walk.style.vector):
        return ""
    for want in stores:
        if lane[-1] in want.order and frame.stride(want.order, lane) == "1":
            at = frame.offset(want.order, places)
            frame.needs.add("stream")
            return " + ".join(p for p in (frame.pointer(want.name), at, begin if begin != "0" else "") if p)
    return ""


def store_all(
    walk: Walk, stores: Sequence[Output], known: Known, places: Sequence[Place], lane: Place | None
) -> None:
    values = walk.bodies.values([s.node for s in stores], known, places, lane)
    for want, value in zip(stores, values, strict=True):
        walk.bodies.store(want, value, places, lane)


def finish(walk: Walk) -> None:
    """Streamed stores become visible before the kernel ends."""
    if "stream" in walk.frame.needs and walk.style.vector:
        walk.frame.line("drain();")
