"""Times a kernel against others: how many times faster, with an interval to believe, or no number at all.

A race has several groups. In each everybody gets a fresh process, then come rounds, in which everybody has
one turn in random order. Where memory came to lie makes processes differ more than turns do, so the
interval comes from the spread between groups. Timed calls that nobody could foresee are repeated afterwards
in a process like those of verification and must give the same bits, and are shown to the caller's `look`.
The first call in such a process has everything still to do: a kernel that takes much longer there than when
it was timed keeps something between calls.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cupilot.device.base import Array, Died, Ring
from cupilot.evaluate.baseline import BaselineSession, Unavailable
from cupilot.evaluate.built import VERIFY_RING
from cupilot.evaluate.clock import BaselineSeat, Fault, KernelSeat, Sampled, Seat, repeat
from cupilot.evaluate.contestant import BaselineContestant, Contestant, KernelContestant
from cupilot.evaluate.fresh import Fresh
from cupilot.evaluate.quiet import STRICT, Gate, Pressure, Sentinel, memory_available_bytes, one_core
from cupilot.evaluate.result import Interval
from cupilot.evaluate.standings import ratio, time_s
from cupilot.types import Failed, Signature, Stage, Undecided

# Looks at inputs and outputs of a timed call, the first of a race more closely: what is wrong with it.
Look = Callable[[Mapping[str, Array], Mapping[str, Array], bool], str | None]

_FEWEST_SLOTS, _MOST_SLOTS = 3, 1024
_PROBE_CALLS = 64
_FEWEST_ROUNDS = 3
_FEWEST_SAMPLES = 2  # timed calls kept of each kernel and group; more, as memory allows
_MOST_SAMPLES = 2  # of a turn
_SAMPLED_BYTES = 256 << 20
_FIRST_SHARE, _FIRST_S = 1.2, 100e-6  # how much longer than a timed call a first one may take: cold code
_LOOK_SHARE = 0.25  # of a group's time, for looking at its samples
_PATIENCE_S, _PAUSE_S = 2.0, 0.1  # how long a group waits for a quiet moment, looking how often
_random = random.SystemRandom()


@dataclass(frozen=True)
class Settings:
    groups: int = 6  # of fresh processes; an even number lets both orders of starting count alike
    rounds: int = 5  # in a group; fewer where a round is long
    batch_s: float = 0.003  # timed at a time
    budget_s: float = 8.0  # for all rounds together
    retries: int = 5  # groups that may be put off or repeated because the machine was disturbed


@dataclass(frozen=True)
class RaceResult:
    """Times of one call in seconds, and how many times longer than the first contestant the others take."""

    times_s: Mapping[str, float]
    ratios: Mapping[str, Interval]
    null: Interval | None  # of a baseline against itself
    unavailable: Mapping[str, str]  # contestants that do not exist for this problem, and why
    slowest_s: float  # of the first contestant, in any group
    footprint_bytes: int  # what a batch of the first contestant touches
    checked: int  # timed calls whose outputs were looked at


def race(
    contestants: Sequence[Contestant],
    signature: Signature,
    fresh: Fresh,
    look: Look,
    sentinel: Sentinel,
    settings: Settings = Settings(),
    gate: Gate = STRICT,
) -> RaceResult | Failed | Undecided:
    """Time the first contestant, a kernel, against the others.

    Two baselines of the same kind are a null pair: they must take the same time, or nothing is decided.
    """
    first = contestants[0]
    assert isinstance(first, KernelContestant), "a kernel is timed against the others"
    with one_core() as core:
        ring = ring_for(first, signature, len(contestants), fresh, settings.batch_s, core)
        if not isinstance(ring, Ring):
            return ring
        sentinel.pin(core)
        return _Race(contestants, signature, fresh, look, sentinel, settings, gate, core, ring).run()


def ring_for(
    kernel: KernelContestant, signature: Signature, processes: int, fresh: Fresh, batch_s: float, core: int
) -> Ring | Failed | Undecided:
    """A slot for every call of a batch of the kernel and two more, as memory allows."""
    slot_bytes = sum(spec.size_bytes for spec in (*signature.tensors, *signature.outputs))
    affordable = memory_available_bytes() // 2 // max(slot_bytes * (processes + 1), 1)
    if affordable < _FEWEST_SLOTS:
        needed = 2 * _FEWEST_SLOTS * slot_bytes * (processes + 1) / 2**30
        return Undecided(f"timing needs {needed:.1f} GB of memory, more than is free")
    probe = Ring(_FEWEST_SLOTS, _FEWEST_SLOTS - 1)
    session = kernel.start(signature, probe)
    if isinstance(session, Failed):
        return session
    with session:
        session.pin(core)
        contents = fresh.blank()
        fresh.refill(contents)
        for slot in range(probe.inputs):
            session.write(slot, contents)
        calls, each_s = 1, batch_s
        for count in (probe.inputs, 1, _PROBE_CALLS):
            ran = session.run(0, count)
            if isinstance(ran, Died):
                return Failed(Stage.TIME, f"the kernel, while it was timed, {ran.reason}")
            each_s = max(ran.cpu_end_ns - ran.cpu_start_ns, 1) / count / 1e9
            calls = int(batch_s / each_s) + 1
            if count == 1 and calls < _PROBE_CALLS // 8:
                break
    slots = min(max(calls + 2, _FEWEST_SLOTS), _MOST_SLOTS, affordable)
    return Ring(slots, slots - 1)


@dataclass(frozen=True)
class _Group:
    times_s: Mapping[str, float]
    firsts_s: Mapping[str, float]  # of the kernels: the first call in a new process
    calls: int  # in a batch of the first contestant
    disturbance: str | None


@dataclass
class _Race:
    contestants: Sequence[Contestant]
    signature: Signature
    fresh: Fresh
    look: Look
    sentinel: Sentinel
    settings: Settings
    gate: Gate
    core: int
    ring: Ring
    unavailable: dict[str, str] = field(default_factory=dict)
    checked: int = 0

    def run(self) -> RaceResult | Failed | Undecided:
        groups: list[_Group] = []
        retries = self.settings.retries
        while len(groups) < self.settings.groups:
            disturbance = self._await_quiet()
            if disturbance is None:
                group = self._group(len(groups))
                if not isinstance(group, _Group):
                    return group
                disturbance = group.disturbance
                if disturbance is None:
                    groups.append(group)
                    continue
            if retries == 0:
                return Undecided(f"{disturbance}; try again when the machine is quiet")
            retries -= 1
        return self._conclude(groups)

    def _await_quiet(self) -> str | None:
        """Until memory is as fast as it can be; what is in the way, where that takes too long."""
        latest_s = time.monotonic() + _PATIENCE_S
        while True:
            disturbance = self.gate.disturbance(self.sentinel.glance(), pressure=0.0, stall=0.0)
            if disturbance is None or time.monotonic() > latest_s:
                return disturbance
            time.sleep(_PAUSE_S)

    def _group(self, index: int) -> _Group | Failed | Undecided:
        pressure = Pressure()
        with contextlib.ExitStack() as stack:
            seats = self._seats(index, stack)
            if not isinstance(seats, dict):
                return seats
            samples = self._rounds(seats)
            if not isinstance(samples, dict):
                return samples
            for name, seat in seats.items():
                seat.settle()
                if isinstance(seat, KernelSeat) and (fault := seat.check_guards()) is not None:
                    return self._blame(name, fault)
            stall = max(seat.stall() for seat in seats.values())
        disturbed = self.gate.disturbance(self.sentinel.slowdown(), pressure.share(), stall)
        firsts_s = {}
        for name, kept in samples.items():
            checked = self._check(name, kept, first_group=index == 0)
            if isinstance(checked, Fault):
                return self._blame(name, checked)
            if checked is not None:
                firsts_s[name] = checked
        times_s = {name: seat.time_s() for name, seat in seats.items()}
        return _Group(times_s, firsts_s, seats[self.contestants[0].name].calls, disturbed)

    def _seats(self, index: int, stack: contextlib.ExitStack) -> dict[str, Seat] | Failed | Undecided:
        """Everybody's process, started in the other order every second time, and warmed up."""
        seats: dict[str, Seat] = {}
        contents = self.fresh.blank()
        self.fresh.refill(contents)
        for contestant in self.contestants if index % 2 == 0 else reversed(self.contestants):
            if contestant.name in self.unavailable:
                continue
            session = contestant.start(self.signature, self.ring)
            if isinstance(session, Failed):
                return session
            if isinstance(session, Unavailable):
                self.unavailable[contestant.name] = session.reason
                continue
            stack.enter_context(contextlib.closing(session))
            session.pin(self.core)
            seat: Seat
            if isinstance(session, BaselineSession):
                seat = BaselineSeat(session, self.ring)
            else:
                seat = KernelSeat(session, self.ring)
            if (fault := seat.warm_up(contents, self.settings.batch_s)) is not None:
                return self._blame(contestant.name, fault)
            seats[contestant.name] = seat
        return seats

    def _rounds(self, seats: Mapping[str, Seat]) -> dict[str, list[Sampled]] | Failed | Undecided:
        """Turns in random order. Of each kernel some timed calls are kept, from rounds nobody can foresee."""
        sets = [self.fresh.blank() for _ in range(max(seat.calls for seat in seats.values()))]
        kept: dict[str, list[Sampled]] = {}
        samples = max(_FEWEST_SAMPLES, _SAMPLED_BYTES // max(self._slot_bytes, 1))
        began_s, rounds, done = time.monotonic(), self.settings.rounds, 0
        while done < rounds:
            for tensors in sets:
                self.fresh.refill(tensors)
            for name, seat in _random.sample(list(seats.items()), len(seats)):
                if (fault := seat.turn(sets, self.sentinel.turn)) is not None:
                    return self._blame(name, fault)
                share = (samples - len(kept.setdefault(name, []))) / (rounds - done)
                if isinstance(seat, KernelSeat) and _random.random() < share:
                    sampled = seat.sample(sets, max(1, min(int(share), _MOST_SAMPLES)))
                    if isinstance(sampled, Fault):
                        return self._blame(name, sampled)
                    kept[name] += sampled
            done += 1
            round_s = (time.monotonic() - began_s) / done
            affordable = int(self.settings.budget_s / self.settings.groups / round_s)
            rounds = max(_FEWEST_ROUNDS, min(self.settings.rounds, affordable))
        return kept

    def _check(self, name: str, kept: list[Sampled], *, first_group: bool) -> Fault | float | None:
        """Repeat the calls in a fresh process, where a kernel cannot tell that it was timed; look at them.

        Returns the seconds of the first call there.
        """
        if not kept:
            return None
        self.checked += len(kept)
        _random.shuffle(kept)
        session = self._contestant(name).start(self.signature, VERIFY_RING)
        if isinstance(session, Failed | Unavailable | BaselineSession):
            return Fault("did not start a second time")
        with session:
            repeated = repeat(session, VERIFY_RING, kept)
        deadline_s = time.monotonic() + _LOOK_SHARE * self.settings.budget_s / self.settings.groups
        for place, call in enumerate(kept):
            if isinstance(repeated, Fault) or (place and time.monotonic() > deadline_s):
                return repeated
            wrong = self.look(call.inputs, call.outputs, first_group and place == 0)
            if wrong is not None:
                return Fault(f"was wrong: {wrong}")
        return repeated

    @property
    def _slot_bytes(self) -> int:
        return sum(spec.size_bytes for spec in (*self.signature.tensors, *self.signature.outputs))

    def _blame(self, name: str, fault: Fault) -> Failed | Undecided:
        if isinstance(self._contestant(name), KernelContestant):
            return Failed(Stage.TIME, f"the kernel, while it was timed, {fault.what}")
        return Undecided(f"the baseline {name} {fault.what}")

    def _contestant(self, name: str) -> Contestant:
        return next(each for each in self.contestants if each.name == name)

    def _conclude(self, groups: Sequence[_Group]) -> RaceResult | Failed | Undecided:
        for name in groups[0].firsts_s:
            if (fault := _remembers(name, groups)) is not None:
                return self._blame(name, fault)
        times = [group.times_s for group in groups]
        present = [each for each in self.contestants if all(each.name in times_s for times_s in times)]
        first, twin = present[0].name, _twin(present)
        null = None if twin is None else ratio(times, *twin)
        if null is not None and abs(null.ratio - 1) > self.gate.null:
            return Undecided(f"a baseline against itself reads {null}: the machine is not quiet")
        others = [each.name for each in present[1:] if twin is None or each.name != twin[1]]
        return RaceResult(
            times_s={name: time_s(times, name) for name in (first, *others)},
            ratios={name: ratio(times, name, first) for name in others},
            null=null,
            unavailable=dict(self.unavailable),
            slowest_s=max(times_s[first] for times_s in times),
            footprint_bytes=self._slot_bytes * max(group.calls for group in groups),
            checked=self.checked,
        )


def _remembers(name: str, groups: Sequence[_Group]) -> Fault | None:
    """Whether a kernel's first call took much longer than its timed ones, in every group."""
    pairs = [(group.firsts_s.get(name, 0.0), group.times_s[name]) for group in groups]
    if not all(first_s > _FIRST_SHARE * timed_s + _FIRST_S for first_s, timed_s in pairs):
        return None
    first_s, timed_s = min(pairs)
    return Fault(
        f"took {timed_s * 1e6:.4g} us a call, but its first call in a new process takes "
        f"{first_s * 1e6:.4g} us: it keeps something between calls"
    )


def _twin(contestants: Sequence[Contestant]) -> tuple[str, str] | None:
    """The names of two baselines of the same kind."""
    seen: dict[object, str] = {}
    for each in contestants:
        if isinstance(each, BaselineContestant):
            if each.kind in seen:
                return seen[each.kind], each.name
            seen[each.kind] = each.name
    return None
