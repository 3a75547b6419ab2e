"""Times a right kernel at one target against its baselines, and judges the time against the roofline.

A time that cannot be is looked at again before anybody is accused: with peaks measured anew, in another race.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cupilot.device.assembly import Loop, facts, innermost_loops
from cupilot.evaluate import advice
from cupilot.evaluate.baseline import BaselineKind, Unavailable
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import BuiltKernel
from cupilot.evaluate.causes import Observed, advise
from cupilot.evaluate.contestant import BaselineContestant, Contestant, KernelContestant
from cupilot.evaluate.effort import Effort
from cupilot.evaluate.floor import FloorVerdict, check_floor
from cupilot.evaluate.library_route import ROUTE
from cupilot.evaluate.quiet import WASHED_BYTES
from cupilot.evaluate.race import RaceResult, race
from cupilot.evaluate.result import Interval
from cupilot.evaluate.scaling import AllThreads, on_all_threads
from cupilot.kernel.plan import Launch, Plan
from cupilot.problem.cases import ShapeCase
from cupilot.roofline import Placement
from cupilot.types import Failed, Stage, Undecided

_KERNEL, _TWIN = "kernel", "eager again"
_WEAK = 1.1  # a library route this much faster than eager is worth naming
_DISPATCH_S = 100e-6  # below this the framework's own overhead counts


@dataclass(frozen=True)
class Timed:
    """A kernel at one target: what was measured, and where that stands on the roofline."""

    built: BuiltKernel
    case: ShapeCase
    race: RaceResult
    placement: Placement
    all_threads: AllThreads | Unavailable | None = None

    @property
    def time_s(self) -> float:
        return self.race.times_s[_KERNEL]

    @property
    def speedup(self) -> Mapping[str, Interval]:
        return self.race.ratios

    @property
    def notes(self) -> tuple[str, ...]:
        found = [f"no {name} baseline: {reason}" for name, reason in self.race.unavailable.items()]
        times_s = self.race.times_s
        eager_s, library_s = times_s.get(BaselineKind.EAGER), times_s.get(BaselineKind.LIBRARY)
        if eager_s and library_s and eager_s > _WEAK * library_s:
            found.append(
                f"eager is a weak baseline here: {ROUTE} takes 1/{eager_s / library_s:.1f} of its time"
            )
        if self.time_s < _DISPATCH_S:
            found.append("a call is so short that much of eager's time is the framework's own overhead")
        if self.all_threads is not None:
            found.append(_words(self.all_threads))
        return tuple(found)

    @cached_property
    def loops(self) -> tuple[Loop, ...] | None:
        with tempfile.TemporaryDirectory() as folder:
            return innermost_loops(self.built.compiled.library, Path(folder))


def time_at(bench: Bench, built: BuiltKernel, case: ShapeCase, effort: Effort) -> Timed | Failed | Undecided:
    remeasured = rerun = False
    found = _race(bench, built, case, effort)
    while True:
        if not isinstance(found, RaceResult):
            return found
        placement = bench.placement(case, found.footprint_bytes + WASHED_BYTES)
        check = check_floor(found.slowest_s, placement, remeasured=remeasured, rerun=rerun)
        match check.verdict:
            case FloorVerdict.OK:
                return Timed(built, case, found, placement, _all_threads(bench, built, case, effort))
            case FloorVerdict.REMEASURE:
                bench.measure_peaks_again()
                remeasured = True
            case FloorVerdict.QUARANTINED:
                found = _race(bench, built, case, effort)
                rerun = True
            case FloorVerdict.REJECTED if bench.peaks.contention:
                reason = f"{check.reason}; but the machine's own peaks are in doubt: {bench.peaks.contention}"
                return Undecided(reason)
            case FloorVerdict.REJECTED:
                return Failed(Stage.FLOOR, check.reason)


def _race(
    bench: Bench, built: BuiltKernel, case: ShapeCase, effort: Effort
) -> RaceResult | Failed | Undecided:
    contestants: list[Contestant] = [KernelContestant(_KERNEL, built)]
    contestants += [BaselineContestant(kind.value, kind, bench.host) for kind in effort.baselines]
    if effort.null_pair:
        contestants.append(BaselineContestant(_TWIN, BaselineKind.EAGER, bench.host))
    return race(
        contestants,
        case.signature,
        bench.fresh(case),
        bench.look(case, closely=effort.checked),
        bench.sentinel,
        effort.race,
        bench.gate,
    )


def _words(found: AllThreads | Unavailable) -> str:
    if isinstance(found, Unavailable):
        return f"not confirmed on all threads: {found.reason}"
    if found.over_eager < 1:
        return f"on all {found.threads} threads eager is faster: {found.over_eager:.2f}x"
    return f"on all {found.threads} threads {found.over_eager:.2f}x over eager on as many"


def _all_threads(
    bench: Bench, built: BuiltKernel, case: ShapeCase, effort: Effort
) -> AllThreads | Unavailable | None:
    if not effort.all_threads:
        return None
    eager = BaselineContestant(BaselineKind.EAGER.value, BaselineKind.EAGER, bench.host)
    return on_all_threads(built, case, bench.fresh(case), eager)


def facts_of(timed: Timed) -> Mapping[str, float | str]:
    """What the compiled code looks like, and what the race saw besides times."""
    plan = _plan(timed)
    found: dict[str, float | str] = dict(facts(timed.loops or ()))
    found["launches"] = sum(isinstance(step, Launch) for step in plan.steps)
    found["scratch_bytes"] = sum(spec.size_bytes for spec in plan.scratch)
    found["timed_calls_checked"] = timed.race.checked
    if timed.race.null is not None:
        found["null_ratio"] = timed.race.null.ratio
    if isinstance(timed.all_threads, AllThreads):
        found["gain_of_all_threads"] = timed.all_threads.over_one
        found["over_eager_on_all_threads"] = timed.all_threads.over_eager
    return found


def advice_for(bench: Bench, timed: Timed) -> tuple[Mapping[str, Any], ...]:
    observed = Observed(
        time_s=timed.time_s,
        work=bench.work(timed.case),
        placement=timed.placement,
        peaks=bench.peaks.one_thread,
        plan=_plan(timed),
        signature=timed.case.signature,
        loops=timed.loops,
    )
    if isinstance(timed.all_threads, AllThreads):
        footprint_bytes = timed.race.footprint_bytes + WASHED_BYTES
        together = bench.placement(timed.case, footprint_bytes, all_threads=True)
        observed = replace(
            observed,
            threads=bench.peaks.all_threads.threads,
            threaded_time_s=timed.time_s / timed.all_threads.over_one,
            threaded_attainable_s=together.attainable_s,
        )
    return tuple(advice.to_json(each) for each in advise(observed))


def _plan(timed: Timed) -> Plan:
    plan = timed.built.plan(timed.case.signature)
    assert isinstance(plan, Plan), "what has been timed has a plan"
    return plan
