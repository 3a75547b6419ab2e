"""Tunes a kernel at one target: compiles points side by side, then times each in a process of its own.

Such times rank the points of one kernel; they are not compared with anything else. Outputs are not looked at:
whoever promotes a point has it verified.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from cupilot.device.base import Ring
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import BuiltKernel, build
from cupilot.evaluate.clock import Fault, KernelSeat
from cupilot.evaluate.contestant import KernelContestant
from cupilot.evaluate.quiet import one_core
from cupilot.evaluate.race import ring_for
from cupilot.evaluate.tuner import Point, Tuned, tune
from cupilot.kernel.file import KernelFile
from cupilot.problem.cases import ShapeCase
from cupilot.types import Failed, Stage, Undecided

_ROUNDS = 5
# After so many rounds: times as slow as the best point. Further rounds would not change the ranking.
_HOPELESS = {2: 1.5, 3: 1.2, 4: 1.2}
_BATCH_S = 0.002


def tune_at(
    bench: Bench,
    kernel: KernelFile,
    start: Point,
    case: ShapeCase,
    tries: int,
    progress: Callable[[str], None],
) -> Tuned | Failed | Undecided:
    """Failed only when the point to start from is; other failing points are dropped and named."""
    started = build(kernel, start, case.signature, bench.device)
    if isinstance(started, Failed):
        return started
    with one_core() as core:
        first = KernelContestant("kernel", started)
        ring = ring_for(first, case.signature, 1, bench.fresh(case), _BATCH_S, core)
    if not isinstance(ring, Ring):
        return ring
    done, best_s = 0, math.inf

    def costs(points: Sequence[Point]) -> list[float | Failed]:
        nonlocal done, best_s
        done += len(points)
        outcomes: list[float | Failed] = []
        progress(f"tuning at {case.name}: point {done} of at most {tries}")
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            built = list(pool.map(lambda p: build(kernel, p, case.signature, bench.device), points))
        with one_core() as core:
            bench.sentinel.pin(core)
            for each in built:
                found = each if isinstance(each, Failed) else _alone_s(bench, each, case, ring, core, best_s)
                best_s = best_s if isinstance(found, Failed) else min(best_s, found)
                outcomes.append(found)
        return outcomes

    return tune(kernel, start, costs, tries, Random(0))


def _alone_s(
    bench: Bench, built: BuiltKernel, case: ShapeCase, ring: Ring, core: int, best_s: float
) -> float | Failed:
    """Seconds a call; a point that is far slower than `best_s` is left early."""
    session = built.open(case.signature, ring)
    if isinstance(session, Failed):
        return session
    fresh = bench.fresh(case)
    with session:
        session.pin(core)
        seat = KernelSeat(session, ring)
        contents = fresh.blank()
        fresh.refill(contents)
        fault: Fault | None = seat.warm_up(contents, _BATCH_S)
        sets = [fresh.blank() for _ in range(seat.calls)]
        for done in range(_ROUNDS):
            fastest_s = seat.fastest_s()
            if fault or (fastest_s and fastest_s > _HOPELESS.get(done, math.inf) * best_s):
                break
            for tensors in sets:
                fresh.refill(tensors)
            fault = seat.turn(sets, bench.sentinel.turn)
        fault = fault or seat.check_guards()
        if fault is not None:
            return Failed(Stage.TIME, f"the kernel {fault.what}")
        seat.settle()
        return seat.time_s()
