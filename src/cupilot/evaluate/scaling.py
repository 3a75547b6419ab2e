"""How a kernel scales: all threads against one, by wall time, side by side on the same contents.

For advice only: with two threads on two busy cores a wall time means little, so a disturbed reading is none.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from cupilot.device.base import Died, Ring, Session
from cupilot.device.contention import Watch
from cupilot.evaluate.built import BuiltKernel
from cupilot.evaluate.fresh import Fresh
from cupilot.evaluate.quiet import memory_available_bytes
from cupilot.problem.cases import ShapeCase
from cupilot.types import Failed

_ROUNDS = 5
_BATCH_S = 0.005
_FEWEST_SLOTS, _MOST_SLOTS = 2, 64
_RING_BYTES = 256 << 20  # more than caches keep
_MEMORY_SHARE = 0.25


def gain_of_threads(built: BuiltKernel, case: ShapeCase, fresh: Fresh) -> float | None:
    """How many times as fast all threads are as one; None where that cannot be told."""
    threads = len(os.sched_getaffinity(0))
    slot_bytes = max(1, sum(spec.size_bytes for spec in (*case.signature.tensors, *case.signature.outputs)))
    slots = min(max(_RING_BYTES // slot_bytes, _FEWEST_SLOTS), _MOST_SLOTS)
    if threads < 2 or 2 * slots * slot_bytes > _MEMORY_SHARE * memory_available_bytes():
        return None
    watch, ring = Watch(), Ring(slots, slots)
    with ExitStack() as stack:
        one = built.open(case.signature, ring, 1)
        if isinstance(one, Failed):
            return None
        stack.enter_context(one)
        every = built.open(case.signature, ring, threads)
        if isinstance(every, Failed):
            return None
        stack.enter_context(every)
        contents = fresh.blank()
        for slot in range(slots):
            fresh.refill(contents)
            for session in (one, every):
                session.write(slot, contents)
        best = _best(one, every, slots)
    return None if best is None or watch.contention() else best[0] / best[1]


def _best(one: Session, every: Session, slots: int) -> tuple[float, float] | None:
    """The shortest time of a call of each; None where a process died."""
    times: tuple[list[float], list[float]] = ([], [])
    calls = slots
    for _ in range(1 + _ROUNDS):
        for session, mine in zip((one, every), times, strict=True):
            ran = session.run(0, calls)
            if isinstance(ran, Died):
                return None
            mine.append(ran.wall_ns / calls)
        calls = max(1, min(slots, int(_BATCH_S * 1e9 / times[0][-1]) + 1))
    return min(times[0]), min(times[1])
