"""A candidate: one strategy, the kernel that realises it, and what was measured of that kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cupilot.evaluate.result import Evaluation, Interval
from cupilot.kernel.file import KernelFile
from cupilot.ledger import Cell, Trial, changes
from cupilot.strategy.algebra import clusters
from cupilot.strategy.strategy import Strategy

CLUSTER_RADIUS = 0.34  # strategies closer than this are variations of one idea
BASELINE = "eager"  # what fitness is measured against inside a run


@dataclass(frozen=True)
class Slot:
    """A place in the run: decisions draw their randomness from it, so they are the same when resumed."""

    generation: int
    index: int

    def __str__(self) -> str:
        return f"g{self.generation}.{self.index}"


@dataclass(frozen=True)
class Candidate:
    slot: Slot
    origin: str  # "first", "pool", "plan", "cross", "merge", "mutation", "random"
    intended: Strategy  # what the author was asked for
    strategy: Strategy  # what the kernel does, after alignment
    kernel: KernelFile
    evaluation: Evaluation
    base: Slot | None = None  # the candidate it is compared with in the ledger
    repairs: int = 0
    parents: tuple[Slot, ...] = ()  # of a crossover, of strategies or of code

    @property
    def passed(self) -> bool:
        return self.evaluation.passed and BASELINE in self.evaluation.speedup

    @property
    def speedup(self) -> Interval:
        return self.evaluation.speedup[BASELINE]

    @property
    def utilisation(self) -> float:
        """The share of the machine in use: vector lanes in hot loops where known, else the roofline share."""
        share = self.evaluation.facts.get("vector_share")
        if isinstance(share, float):
            return share
        headroom = self.evaluation.headroom
        return 0.0 if headroom is None else 1 - headroom

    @property
    def complexity(self) -> int:
        return len(self.strategy.uses) + len(self.strategy.free_steps)


def tied(a: Candidate, b: Candidate) -> bool:
    """Neither stated interval excludes the other's ratio."""
    return (
        a.speedup.low <= b.speedup.ratio <= a.speedup.high
        or b.speedup.low <= a.speedup.ratio <= b.speedup.high
    )


def fitter(a: Candidate, b: Candidate) -> Candidate:
    """By speedup; ties within the noise by utilisation, then by simplicity, then the older one."""
    if not tied(a, b):
        return a if a.speedup.ratio > b.speedup.ratio else b
    key_a, key_b = ((round(c.utilisation, 2), -c.complexity) for c in (a, b))
    return b if key_b > key_a else a


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Passed candidates, best first by ratio; stable."""
    return sorted((c for c in candidates if c.passed), key=lambda c: -c.speedup.ratio)


def elites(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The best of each cluster of strategies first, then the best of the rest."""
    best_first = _one_per_strategy(ranked(candidates))
    labels = clusters([c.strategy for c in best_first], CLUSTER_RADIUS)
    leaders = [c for i, c in enumerate(best_first) if labels.index(labels[i]) == i]
    others = [c for c in best_first if c not in leaders]
    # Half of the places belong to diversity, and the fastest of all always has one.
    chosen = leaders[: max(1, count // 2)]
    return (chosen + [c for c in (*others, *leaders) if c not in chosen])[:count]


def _one_per_strategy(best_first: Sequence[Candidate]) -> list[Candidate]:
    return list({c.strategy.hash: c for c in reversed(best_first)}.values())[::-1]


def trial(child: Candidate, base: Candidate, cell: Cell) -> Trial:
    """The ledger's record of a child against its base."""
    change = changes(base.strategy, child.strategy if child.passed else child.intended)
    if not child.passed or not base.passed:
        return Trial(cell, change, None, stage=child.evaluation.stage)
    ratio = child.speedup.ratio / base.speedup.ratio
    return Trial(cell, change, math.log(ratio), sd=math.hypot(_sd(child.speedup), _sd(base.speedup)))


def _sd(interval: Interval) -> float:
    """Of the log ratio: the stated interval covers 95 %."""
    return math.log(interval.high / interval.low) / 3.92
