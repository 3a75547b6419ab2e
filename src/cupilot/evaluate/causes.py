"""Finds what costs a CPU kernel its time, from what can be known without hardware counters: its distance from
the roofline, its launch plan, the loops the compiler made, and how it scales.

Every cause is one function from `Observed` to advice. Expected gains are upper estimates, and never more than
the roofline leaves room for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from cupilot.device.assembly import Loop, main_loops
from cupilot.evaluate.advice import Action, Advice, Tactic
from cupilot.evaluate.loops import loop_advice
from cupilot.kernel.plan import Launch, Plan, ScratchSpec, TensorArg
from cupilot.roofline import DevicePeaks, Pattern, Placement, Work, Zone
from cupilot.types import Signature, TensorSpec

AT_THE_FLOOR = 0.05  # headroom below which a search can stop
_WORTH_NAMING = 1.03  # gains below this drown in noise
_MISSES = 1.3  # further than this from attainable there must be a reason
_SCALES_WELL = 0.7


@dataclass(frozen=True)
class Observed:
    """What is known about one kernel at one shape. `loops` is None where no disassembler could be asked."""

    time_s: float  # on one thread
    work: Work
    placement: Placement
    peaks: DevicePeaks  # of one thread
    plan: Plan
    signature: Signature
    loops: tuple[Loop, ...] | None = None
    threads: int = 1
    threaded_time_s: float | None = None  # on `threads` threads
    threaded_attainable_s: float | None = None

    @property
    def room(self) -> float:
        """How much faster the roofline lets it become."""
        return max(1.0, self.time_s / self.placement.attainable_s)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(step for step in self.plan.steps if isinstance(step, Launch))


def advise(observed: Observed) -> tuple[Advice, ...]:
    """Causes in order of expected gain; one that says so when nothing is left."""
    found = [advice for cause in _CAUSES for advice in cause(observed)]
    found += loop_advice(main_loops(observed.loops or ()), observed.placement.zone)
    if observed.placement.headroom(observed.time_s) < AT_THE_FLOOR and not any(map(_threads_only, found)):
        return (Advice(f"within {AT_THE_FLOOR:.0%} of what {observed.placement.binds} allows"),)
    capped = [_cap(advice, observed.room) for advice in found]
    worth = [advice for advice in capped if advice.expected_gain >= _WORTH_NAMING]
    if not worth and observed.room > _MISSES:
        worth = [_unexplained(observed)]
    return tuple(sorted(worth, key=lambda advice: -advice.expected_gain))


def _threads_only(advice: Advice) -> bool:
    return any(action.tactic is Tactic.PARALLEL_GRID for action in advice.actions)


def _cap(advice: Advice, room: float) -> Advice:
    """The roofline limits what one thread can win; it says nothing about using more of them."""
    if _threads_only(advice):
        return advice
    return replace(
        advice, actions=tuple(replace(a, expected_gain=min(a.expected_gain, room)) for a in advice.actions)
    )


def _traffic(o: Observed) -> Iterator[Advice]:
    """Tensors that do not stay in the inner caches and are walked more often than needed."""
    inner_bytes = o.peaks.levels[min(1, len(o.peaks.levels) - 1)].capacity_bytes or 0
    tensors: tuple[TensorSpec | ScratchSpec, ...] = (
        *o.signature.tensors,
        *o.signature.outputs,
        *o.plan.scratch,
    )
    walks = {tensor.name: 0 for tensor in tensors}
    for step in o.plan.steps:
        args = step.args if isinstance(step, Launch) else (TensorArg(step.name),)
        for name in {arg.name for arg in args if isinstance(arg, TensorArg)}:
            walks[name] += 1
    needed = {tensor.name: int(not isinstance(tensor, ScratchSpec)) for tensor in tensors}
    extra = {
        tensor.name: tensor.size_bytes * (walks[tensor.name] - needed[tensor.name])
        for tensor in tensors
        if tensor.size_bytes > inner_bytes and walks[tensor.name] > needed[tensor.name]
    }
    if not extra or o.placement.zone not in (Zone.MEMORY, Zone.MIDDLE):
        return
    gain = 1 + sum(extra.values()) / o.work.bytes_total
    names = ", ".join(sorted(extra))
    yield Advice(
        f"moves {gain:.1f}x the bytes it must: {len(o.plan.steps)} steps walk {names} again",
        (
            Action(
                Tactic.FUSE_PASSES, "do all of it in one launch while the data is in registers or cache", gain
            ),
            Action(
                Tactic.ONLINE_REDUCTION, "update the statistics while reading, instead of reading first", gain
            ),
        ),
    )


def _launches(o: Observed) -> Iterator[Advice]:
    if o.placement.zone is Zone.LATENCY and len(o.plan.steps) > 1:
        gain = float(len(o.plan.steps))
        yield Advice(
            f"{len(o.plan.steps)} launches for work that is shorter than a launch",
            (Action(Tactic.FUSE_PASSES, "one launch with fewer, larger blocks", gain),),
        )


def _stores(o: Observed) -> Iterator[Advice]:
    if o.loops is None or o.placement.zone is not Zone.MEMORY or any(x.streaming_stores for x in o.loops):
        return
    level = next(level for level in o.peaks.levels if level.name == o.placement.level)
    plain, stream = (level.bytes_per_s.get(p, 0.0) for p in (Pattern.COPY, Pattern.STREAM_COPY))
    copied = 2 * min(o.work.bytes_read, o.work.bytes_written) / o.work.bytes_total
    if plain and stream > plain and copied > 0:
        gain = 1 / (1 - copied * (1 - plain / stream))
        yield Advice(
            f"stores to {level.name} first read what they overwrite",
            (
                Action(
                    Tactic.NON_TEMPORAL_STORES,
                    "write around the caches where the output is not read again",
                    gain,
                ),
            ),
        )


def _scaling(o: Observed) -> Iterator[Advice]:
    if o.threads < 2:
        return
    blocks = max((prod(launch.grid) for launch in o.launches), default=1)
    why = "split the work into several blocks per thread"
    if blocks < o.threads:
        yield Advice(
            f"{blocks} blocks for {o.threads} threads",
            (Action(Tactic.PARALLEL_GRID, why, o.threads / blocks),),
        )
    elif o.threaded_time_s and o.threaded_attainable_s:
        ideal = min(float(o.threads), o.time_s / o.threaded_attainable_s)
        reached = o.time_s / o.threaded_time_s
        if reached < _SCALES_WELL * ideal:
            yield Advice(
                f"{o.threads} threads are {reached:.1f}x as fast as one, where {ideal:.1f}x is possible",
                (Action(Tactic.PARALLEL_GRID, f"{why}, of equal size", ideal / reached),),
            )


_CAUSES: tuple[Callable[[Observed], Iterator[Advice]], ...] = (_traffic, _launches, _stores, _scaling)


def _unexplained(o: Observed) -> Advice:
    by_zone = {
        Zone.MEMORY: (
            Tactic.WHOLE_LINES,
            "touch every line once, in order; reuse it while it is in the cache",
        ),
        Zone.MIDDLE: (Tactic.MATRIX_UNITS, "matrix units: on plain cores this is arithmetic-bound"),
        Zone.COMPUTE: (Tactic.REGISTER_TILE, "more arithmetic for every value loaded"),
        Zone.LATENCY: (Tactic.FUSE_PASSES, "fewer, larger launches"),
    }
    tactic, why = by_zone[o.placement.zone]
    structure = "zeros, symmetry or repetition in the problem may make part of the work needless"
    return Advice(
        f"{o.room:.1f}x slower than {o.placement.binds} allows, for no reason that shows in the code",
        (Action(tactic, why, o.room), Action(Tactic.EXPLOIT_STRUCTURE, structure, o.room)),
    )
