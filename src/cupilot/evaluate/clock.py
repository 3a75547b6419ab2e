"""The clock: contestants take turns on one core, and the parent reads from outside what each has used.

A turn is one call that is not timed and a batch of calls that is, all on contents that are new. A kernel
gets them only after the untimed call, and is charged from then until its next turn begins: it can work out
nothing beforehand, and pays for what it leaves until later. A baseline gets them before the untimed call,
and so finds its code still in the caches: where that matters it is to the advantage of the baseline.
Between the new contents and the next call the caches are washed, so that nobody finds data in them.

Only takes times. Whether they can be believed is for `race` to say.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import SystemRandom

import numpy as np

from cupilot.device.base import Array, Died, Ran, Ring, Session
from cupilot.device.memory import SessionOverError
from cupilot.evaluate.baseline import BaselineSession

Tensors = Mapping[str, Array]
Wash = Callable[[], None]  # leaves the caches without anything of the contestants
_random = SystemRandom()


@dataclass(frozen=True)
class Sampled:
    """A timed call, kept to be checked: what it was given and what it returned."""

    inputs: Tensors
    outputs: Tensors


@dataclass(frozen=True)
class Fault:
    """What a contestant did wrong, completing the sentence "the kernel ..."."""

    what: str


_GONE = Fault("answered, and then ended its process")


class Seat(ABC):
    """A contestant's process for the length of one series of turns."""

    untouched = True  # slots that no call has used yet

    def __init__(self, session: Session | BaselineSession, ring: Ring) -> None:
        self.ring = ring
        self.calls = 1  # in a batch
        self._process = session
        self._next = 0  # number of the next call
        self._charged_since_ns: int | None = None  # where the charge of the last batch began
        self._times_s: list[float] = []
        self._stalls: list[float] = []

    @abstractmethod
    def turn(self, sets: Sequence[Tensors], wash: Wash) -> Fault | None:
        """One turn on the contents of `sets`, one for each call of the batch."""

    def warm_up(self, contents: Tensors, batch_s: float) -> Fault | None:
        """Touch the whole ring, by count, and find how many calls make a batch."""
        for slot in range(self.ring.inputs):
            self._process.write(slot, contents)
        outcome = self._run(self.ring.outputs if self.untouched else 1)
        for _ in range(3):
            if isinstance(outcome, Fault):
                return outcome
            start_ns, before = self._process.cpu_time_ns(), self.calls
            if isinstance(outcome := self._run(self.calls), Fault):
                return outcome
            each_ns = max((outcome.cpu_end_ns - start_ns) / self.calls, 1.0)
            self.calls = max(1, min(int(batch_s * 1e9 / each_ns) + 1, self.ring.outputs))
            if self.calls <= before:
                break
        return None

    def settle(self) -> None:
        """Close the charge of the last batch: everything used since it began belongs to it."""
        if self._charged_since_ns is not None:
            used_ns = self._process.cpu_time_ns() - self._charged_since_ns
            self._times_s.append(used_ns / self.calls / 1e9)
            self._charged_since_ns = None

    def time_s(self) -> float:
        """The median time of a call, over all batches."""
        return statistics.median(self._times_s)

    def fastest_s(self) -> float | None:
        """The least time of a call in any batch whose charge is closed."""
        return min(self._times_s, default=None)

    def stall(self) -> float:
        """The median of wall over CPU time: over 1.1 the core was not ours alone."""
        return statistics.median(self._stalls)

    def _skip(self) -> None:
        """Start somewhere in the rings that nobody could foresee."""
        self._next += _random.randrange(self.ring.inputs)

    def _fill(self, first: int, sets: Sequence[Tensors]) -> None:
        for index in range(self.calls):
            self._process.write((first + index) % self.ring.inputs, sets[index])

    def _batch(self, since_ns: int) -> Fault | None:
        ran = self._run(self.calls)
        if isinstance(ran, Fault):
            return ran
        self._charged_since_ns = since_ns
        self._stalls.append(ran.wall_ns / max(ran.cpu_end_ns - ran.cpu_start_ns, 1))
        return None

    def _run(self, count: int) -> Ran | Fault:
        outcome = self._process.run(self._next, count)
        self._next += count
        return Fault(outcome.reason) if isinstance(outcome, Died) else outcome


class BaselineSeat(Seat):
    untouched = False  # the process has filled its ring before it says that it is ready

    def turn(self, sets: Sequence[Tensors], wash: Wash) -> Fault | None:
        self.settle()
        self._skip()
        self._fill(self._next + 1, sets)
        wash()
        opening = self._run(1)
        if isinstance(opening, Fault):
            return opening
        return self._batch(self._process.cpu_time_ns())


class KernelSeat(Seat):
    def __init__(self, session: Session, ring: Ring) -> None:
        super().__init__(session, ring)
        self._session = session

    def turn(self, sets: Sequence[Tensors], wash: Wash) -> Fault | None:
        try:
            return self._turn(sets, wash)
        except (SessionOverError, ProcessLookupError):
            return _GONE

    def _turn(self, sets: Sequence[Tensors], wash: Wash) -> Fault | None:
        self.settle()
        self._skip()
        opening = self._run(1)
        if isinstance(opening, Fault):
            return opening
        since_ns = self._session.cpu_time_ns()
        self._fill(self._next, sets)
        for index in range(self.calls):
            self._session.poison((self._next + index) % self.ring.outputs)
        wash()
        return self._batch(since_ns)

    def sample(self, sets: Sequence[Tensors], count: int) -> list[Sampled] | Fault:
        """Calls of the last batch, chosen at random only now."""
        samples = []
        for index in _random.sample(range(self.calls), min(count, self.calls)):
            try:
                sampled = self._sample(sets, index)
            except SessionOverError:
                return _GONE
            if isinstance(sampled, Fault):
                return sampled
            samples.append(sampled)
        return samples

    def _sample(self, sets: Sequence[Tensors], index: int) -> Sampled | Fault:
        number = self._next - self.calls + index
        found = self._session.read_inputs(number % self.ring.inputs)
        for name, given in sets[index].items():
            if not np.array_equal(bits_of(given), bits_of(found[name])):
                return Fault(f"changes its input `{name}`")
        return Sampled(found, self._session.read(number % self.ring.outputs))

    def check_guards(self) -> Fault | None:
        try:
            outside = self._session.check_guards()
        except SessionOverError:
            return _GONE
        return None if outside is None else Fault(outside)


def bits_of(array: Array) -> Array:
    """The raw bits, in pieces as large as fit: NaN equals itself, and 0 differs from -0."""
    return array.reshape(-1).view(np.uint8 if array.nbytes % 8 else np.uint64)


def repeat(session: Session, ring: Ring, calls: Sequence[Sampled]) -> Fault | float:
    """Give the inputs of timed calls to another process: the outputs must come out the same, bit by bit.

    Returns the seconds that the first of them took, a call before which nothing can have been kept.
    """
    first_s = 0.0
    for call in calls:
        number = _random.randrange(1 << 16)
        session.write(number % ring.inputs, call.inputs)
        session.poison(number % ring.outputs)
        ran = session.run(number, 1)
        if isinstance(ran, Died):
            return Fault(ran.reason)
        first_s = first_s or (ran.cpu_end_ns - ran.cpu_start_ns) / 1e9
        again = session.read(number % ring.outputs)
        for name, array in call.outputs.items():
            if not np.array_equal(bits_of(array), bits_of(again[name])):
                return Fault(f"gave another `{name}` than it gives for the same inputs in a new process")
    return first_s
