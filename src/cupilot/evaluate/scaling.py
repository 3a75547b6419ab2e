"""A kernel on all threads: against itself on one, and against eager on all, by wall time, side by side.

Confirms a winner and feeds the advice; the score stays that of one thread. With two threads on two busy cores
a wall time means little, so a disturbed reading is none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from cupilot.device.base import Died, Ring, Session
from cupilot.device.contention import Watch
from cupilot.evaluate.baseline import BaselineSession, Unavailable
from cupilot.evaluate.built import BuiltKernel
from cupilot.evaluate.contestant import BaselineContestant
from cupilot.evaluate.fresh import Fresh
from cupilot.evaluate.quiet import memory_available_bytes
from cupilot.problem.cases import ShapeCase
from cupilot.types import Failed

_ROUNDS = 5
_BATCH_S = 0.005
_FEWEST_SLOTS, _MOST_SLOTS = 2, 64
_RING_BYTES = 128 << 20  # more than caches keep
_MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class AllThreads:
    """How many times as fast a kernel is on all threads."""

    threads: int
    over_one: float
    over_eager: float  # eager on all threads as well


def on_all_threads(
    built: BuiltKernel, case: ShapeCase, fresh: Fresh, eager: BaselineContestant
) -> AllThreads | Unavailable:
    threads = len(os.sched_getaffinity(0))
    slot_bytes = max(1, sum(spec.size_bytes for spec in (*case.signature.tensors, *case.signature.outputs)))
    slots = min(max(_RING_BYTES // slot_bytes, _FEWEST_SLOTS), _MOST_SLOTS)
    if threads < 2:
        return Unavailable("this process may use one CPU only")
    if 3 * slots * slot_bytes > _MEMORY_SHARE * memory_available_bytes():
        return Unavailable("three rings of inputs and outputs need more memory than is free")
    watch, ring = Watch(), Ring(slots, slots)
    with ExitStack() as stack:
        sessions: list[Session | BaselineSession] = []
        for start in (
            lambda: built.open(case.signature, ring, 1),
            lambda: built.open(case.signature, ring, threads),
            lambda: replace(eager, threads=threads).start(case.signature, ring),
        ):
            session = start()
            if isinstance(session, Failed | Unavailable):
                return Unavailable(session.reason)
            stack.enter_context(closing(session))
            sessions.append(session)
        contents = fresh.blank()
        for slot in range(slots):
            fresh.refill(contents)
            for session in sessions:
                session.write(slot, contents)
        best = _best(sessions, slots)
        host_s = sessions[-1].cpu_time_ns() / 1e9  # the one process that is no child of this one
    if isinstance(best, Died):
        return Unavailable(best.reason)
    if contention := watch.contention(host_s):
        return Unavailable(contention)
    one_s, all_s, eager_s = best
    return AllThreads(threads, one_s / all_s, eager_s / all_s)


def _best(sessions: Sequence[Session | BaselineSession], slots: int) -> list[float] | Died:
    """The shortest time of a call of each."""
    times: list[list[float]] = [[] for _ in sessions]
    calls = slots
    for _ in range(1 + _ROUNDS):
        for session, mine in zip(sessions, times, strict=True):
            ran = session.run(0, calls)
            if isinstance(ran, Died):
                return ran
            mine.append(ran.wall_ns / calls)
        calls = max(1, min(slots, int(_BATCH_S * 1e9 / min(each[-1] for each in times)) + 1))
    return [min(mine) for mine in times]
