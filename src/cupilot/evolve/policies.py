"""Search policies: which strategy to try next. Pure functions of the records so far and a given `rng`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from cupilot.brief import Author, Brief, Declined, Parent
from cupilot.errors import UsageError
from cupilot.evolve.candidate import Candidate, elites, fitter
from cupilot.strategy.algebra import mutate, random_strategy, settle
from cupilot.strategy.guidance import weights
from cupilot.strategy.strategy import Strategy

ELITES = 8
TOURNAMENT = 3
CROSSOVER_SHARE = 0.6
EPOCH_PLANS = 2  # fresh plans on the best kernel so far, at the beginning of a later epoch


@dataclass(frozen=True)
class View:
    """All that a policy may look at."""

    brief: Brief
    author: Author
    records: tuple[Candidate, ...]
    base: Candidate  # what plans are written on: the first kernel, later the best of the last epoch
    generation: int
    index: int
    opens_epoch: bool = False


@dataclass(frozen=True)
class Proposal:
    strategy: Strategy
    origin: str
    base: Candidate
    parents: tuple[Candidate, ...] = ()


Policy = Callable[[View, Random], Proposal | Declined]


def sce(view: View, rng: Random) -> Proposal | Declined:
    """Strategy-coordinated evolution: seed from the pool, then cross and mutate strategies of the elite."""
    pool = elites(view.records, ELITES)
    if view.generation == 0 and view.index < len(view.brief.similar):
        return Proposal(view.brief.similar[view.index], "pool", view.base)
    if view.generation == 0 or not pool or (view.opens_epoch and view.index < EPOCH_PLANS):
        return _proposal(view.author.plan(view.brief, rng), "plan", view.base)
    a, b = _tournament(pool, rng), _tournament(pool, rng)
    if a.strategy.hash != b.strategy.hash and rng.random() < CROSSOVER_SHARE:
        base = fitter(a, b)
        child = view.author.cross(view.brief, (as_parent(a), as_parent(b)), rng)
        if isinstance(child, Declined) or child.hash not in (a.strategy.hash, b.strategy.hash):
            return child if isinstance(child, Declined) else Proposal(child, "cross", base, (a, b))
    brief = view.brief
    favour = weights(brief.cookbook, brief.placement, brief.credit)
    return Proposal(mutate(a.strategy, brief.cookbook, rng, favour), "mutation", a)


def code_crossover(view: View, rng: Random) -> Proposal | Declined:
    """The usual design: the author gets two kernels and writes one, without a strategy in between.

    What both parents claim is the child's claim, until alignment has looked.
    """
    pool = elites(view.records, ELITES) if view.generation else []
    if len(pool) < 2:
        return sce(replace(view, generation=0), rng)
    a, b = _tournament(pool, rng), _tournament(pool, rng)
    if a.slot == b.slot:
        b = rng.choice([c for c in pool if c.slot != a.slot])
    uses = settle((*a.strategy.uses, *b.strategy.uses), view.brief.cookbook)
    steps = tuple(dict.fromkeys((*a.strategy.free_steps, *b.strategy.free_steps)))
    claims = Strategy(tuple(sorted(uses)), steps, parents=(a.strategy.hash, b.strategy.hash))
    return Proposal(claims, "merge", fitter(a, b), (a, b))


def best_of_n(view: View, rng: Random) -> Proposal | Declined:
    """Independent plans: the author knows the problem but nothing of earlier attempts."""
    blind = replace(view.brief, credit={}, similar=(), refuted=())
    return _proposal(view.author.plan(blind, rng), "plan", view.records[0])


def random_search(view: View, rng: Random) -> Proposal | Declined:
    """Valid strategies drawn without regard to anything."""
    return Proposal(random_strategy(view.brief.cookbook, rng), "random", view.records[0])


POLICIES: Mapping[str, Policy] = {
    "sce": sce,
    "code-crossover": code_crossover,
    "best-of-n": best_of_n,
    "random": random_search,
}


def policy_named(name: str) -> Policy:
    if name not in POLICIES:
        raise UsageError(f"unknown policy {name!r}", hint=f"policies: {', '.join(POLICIES)}")
    return POLICIES[name]


def as_parent(candidate: Candidate) -> Parent:
    evaluation = candidate.evaluation
    return Parent(
        candidate.strategy, candidate.kernel, candidate.speedup.ratio, evaluation.time_s, evaluation.advice
    )


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
