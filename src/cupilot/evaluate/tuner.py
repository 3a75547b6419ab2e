"""Tuning: finds good values for a kernel's tunables by measuring. Only valid points are ever tried.

Small spaces are measured whole. In larger ones a neighbour search climbs from the first point (the author's
guess) and restarts from a random point at each local optimum, while tries are left. Points are measured
several at a time, so that they can be compiled side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from cupilot.kernel.file import KernelFile
from cupilot.kernel.tunables import count_points, neighbours, points
from cupilot.types import Failed

_POOL = 4096  # points considered for random restarts

Point = Mapping[str, int]
Costs = Callable[[Sequence[Point]], Sequence[float | Failed]]  # seconds a call, of each point


@dataclass(frozen=True)
class Tuned:
    """The fastest point found, what every tried point cost, and which were dropped and why."""

    point: Point
    costs: tuple[tuple[Point, float], ...]
    dropped: tuple[tuple[Point, str], ...] = ()

    @property
    def ranking(self) -> list[Point]:
        """Best first."""
        return [point for point, _ in sorted(self.costs, key=lambda each: each[1])]

    @property
    def gain(self) -> float:
        """Over the first point."""
        return self.costs[0][1] / min(cost for _, cost in self.costs)


def tune(kernel: KernelFile, start: Point, costs: Costs, tries: int, rng: Random) -> Tuned | Failed:
    """Failed only when the point to start from is; any other failing point is dropped and named."""
    search = _Tuning(costs, tries)
    failed = search.measure([start])
    if failed is not None:
        return failed
    if count_points(kernel, tries + 1) <= tries:
        search.measure(list(points(kernel, tries)))
        return search.outcome()
    restarts = list(points(kernel, _POOL))
    rng.shuffle(restarts)
    while search.tries_left and restarts:
        _climb(kernel, start, search)
        start = restarts.pop()
        search.measure([start])
    return search.outcome()


def _climb(kernel: KernelFile, start: Point, search: _Tuning) -> None:
    """Move to the best neighbour until there is none better."""
    here = start
    while search.tries_left and _key(here) in search.costs:
        near = neighbours(kernel, dict(here))
        search.measure(near)
        known = [p for p in near if _key(p) in search.costs]
        best = min(known, key=lambda p: search.costs[_key(p)], default=here)
        if search.costs[_key(best)] >= search.costs[_key(here)]:
            return
        here = best


Key = tuple[tuple[str, int], ...]


def _key(point: Point) -> Key:
    return tuple(sorted(point.items()))


@dataclass
class _Tuning:
    """What has been measured so far."""

    ask: Costs
    tries_left: int
    costs: dict[Key, float] = field(default_factory=dict)
    dropped: dict[Key, str] = field(default_factory=dict)

    def measure(self, wanted: Sequence[Point]) -> Failed | None:
        """Those that are new, as tries allow; why the last one failed, if it did."""
        unknown = {_key(p): p for p in wanted if _key(p) not in self.costs and _key(p) not in self.dropped}
        asked = dict(list(unknown.items())[: self.tries_left])
        self.tries_left -= len(asked)
        failed = None
        for key, outcome in zip(asked, self.ask(list(asked.values())) if asked else (), strict=True):
            failed = outcome if isinstance(outcome, Failed) else None
            if isinstance(outcome, Failed):
                self.dropped[key] = outcome.reason
            else:
                self.costs[key] = outcome
        return failed

    def outcome(self) -> Tuned:
        best = min(self.costs, key=lambda key: self.costs[key])
        return Tuned(
            dict(best),
            tuple((dict(key), cost) for key, cost in self.costs.items()),
            tuple((dict(key), reason) for key, reason in self.dropped.items()),
        )
