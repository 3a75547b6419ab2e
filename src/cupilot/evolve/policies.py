"""Search policies: which strategy to try next. Pure functions of the records so far and a given `rng`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from cupilot.brief import Author, Brief, Declined, Parent
from cupilot.evolve.candidate import Candidate, elites, fitter
from cupilot.roofline import Placement, Zone
from cupilot.strategy.algebra import mutate, random_strategy
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Resource, Tactic

ELITES = 8
TOURNAMENT = 3
CROSSOVER_SHARE = 0.6


@dataclass(frozen=True)
class View:
    """All that a policy may look at."""

    brief: Brief
    author: Author
    records: tuple[Candidate, ...]
    generation: int
    index: int


@dataclass(frozen=True)
class Proposal:
    strategy: Strategy
    origin: str
    base: Candidate


Policy = Callable[[View, Random], Proposal | Declined]


def sce(view: View, rng: Random) -> Proposal | Declined:
    """Strategy-coordinated evolution: seed from the pool, then cross and mutate strategies of the elite."""
    first = view.records[0]
    if view.generation == 0:
        if view.index < len(view.brief.similar):
            return Proposal(view.brief.similar[view.index], "pool", first)
        return _proposal(view.author.plan(view.brief, rng), "plan", first)
    pool = elites(view.records, ELITES)
    if not pool:
        return _proposal(view.author.plan(view.brief, rng), "plan", first)
    a, b = _tournament(pool, rng), _tournament(pool, rng)
    if a.strategy.hash != b.strategy.hash and rng.random() < CROSSOVER_SHARE:
        base = fitter(a, b)
        child = view.author.cross(view.brief, (as_parent(a), as_parent(b)), rng)
        if isinstance(child, Declined) or child.hash not in (a.strategy.hash, b.strategy.hash):
            return _proposal(child, "cross", base)
    weights = {t.id: tactic_weight(t, view.brief) for t in view.brief.cookbook}
    return Proposal(mutate(a.strategy, view.brief.cookbook, rng, weights), "mutation", a)


def best_of_n(view: View, rng: Random) -> Proposal | Declined:
    """Independent plans: the author knows the problem but nothing of earlier attempts."""
    blind = replace(view.brief, credit={}, similar=(), refuted=())
    return _proposal(view.author.plan(blind, rng), "plan", view.records[0])


def random_search(view: View, rng: Random) -> Proposal | Declined:
    """Valid strategies drawn without regard to anything."""
    return Proposal(random_strategy(view.brief.cookbook, rng), "random", view.records[0])


POLICIES: Mapping[str, Policy] = {"sce": sce, "best-of-n": best_of_n, "random": random_search}


def tactic_weight(tactic: Tactic, brief: Brief) -> float:
    """How much a mutation should favour adding the tactic: does it move what binds, and has it paid?

    Credit enters optimistically (mean plus one standard deviation), so what is untried stays attractive.
    """
    weight = 1.0
    if brief.placement is not None:
        weight *= relevance(tactic, brief.placement)
    credit = brief.credit.get(tactic.id)
    if credit is not None:
        weight *= math.exp(2 * (credit.log_gain + credit.sd) - 2 * 0.35)
        weight *= 0.7**credit.failures
    return max(weight, 0.02)


_RELIEVES = {
    Zone.MEMORY: {Resource.BYTES, Resource.PARALLELISM},
    Zone.MIDDLE: {Resource.BYTES, Resource.OPERATIONS, Resource.PARALLELISM},
    Zone.COMPUTE: {Resource.OPERATIONS, Resource.PARALLELISM, Resource.PRECISION},
    Zone.LATENCY: {Resource.LATENCY, Resource.LAUNCHES},
}


def relevance(tactic: Tactic, placement: Placement) -> float:
    """3 where the tactic pays in this zone and moves what binds, 1 for one of the two, 1/3 for neither."""
    in_zone = placement.zone in tactic.zones
    moves = tactic.moves in _RELIEVES[placement.zone]
    return 3.0 if in_zone and moves else 1.0 if in_zone or moves else 1 / 3


def as_parent(candidate: Candidate) -> Parent:
    return Parent(candidate.strategy, candidate.kernel, candidate.speedup.ratio, candidate.evaluation.advice)


def _tournament(pool: list[Candidate], rng: Random) -> Candidate:
    """The fittest of a few; every third tournament is decided by utilisation instead of speed."""
    entrants = [rng.choice(pool) for _ in range(TOURNAMENT)]
    if rng.random() < 1 / 3:
        return max(entrants, key=lambda c: (c.utilisation, c.speedup.ratio))
    best = entrants[0]
    for other in entrants[1:]:
        best = fitter(best, other)
    return best


def _proposal(strategy: Strategy | Declined, origin: str, base: Candidate) -> Proposal | Declined:
    return strategy if isinstance(strategy, Declined) else Proposal(strategy, origin, base)
