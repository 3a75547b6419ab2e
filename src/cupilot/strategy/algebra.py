"""The algebra of strategies: crossover, mutation, difference, distance. Pure functions over a given `rng`.

Every operator returns a valid strategy when its arguments are valid. Crossover keeps only what a parent
had; whatever does not conflict can survive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.strategy.tactics import Cookbook, Tactic

Credit = Mapping[str, float]  # by tactic id: expected log gain


def crossover(a: Strategy, b: Strategy, cookbook: Cookbook, rng: Random) -> Strategy:
    """Uniform: each tactic of either parent survives unless a coin or an earlier choice forbids it.

    What both parents have always competes first, so that agreement is never lost to chance.
    """
    shared = [use for use in a.uses if use.tactic in b]
    single = [use for use in (*a.uses, *b.uses) if not (use.tactic in a and use.tactic in b)]
    rng.shuffle(single)
    chosen = [rng.choice((use, b.use(use.tactic) or use)) for use in shared]
    chosen += [use for use in single if rng.random() < 0.75]
    return _child(chosen, _merge_steps(a, b, rng), (a, b), cookbook)


def best_of_both(a: Strategy, b: Strategy, credit: Credit, cookbook: Cookbook) -> Strategy:
    """All tactics of both parents that do not cost; of two that exclude each other, the better credited."""
    by_worth = sorted((*a.uses, *b.uses), key=lambda use: -credit.get(use.tactic, 0.0))
    worth_having = [
        u for u in by_worth if credit.get(u.tactic, 0.0) >= 0 or (u.tactic in a and u.tactic in b)
    ]
    steps = tuple(dict.fromkeys((*a.free_steps, *b.free_steps)))
    return _child(worth_having, steps, (a, b), cookbook)


def _merge_steps(a: Strategy, b: Strategy, rng: Random) -> tuple[str, ...]:
    steps = dict.fromkeys((*a.free_steps, *b.free_steps))
    return tuple(s for s in steps if (s in a.free_steps and s in b.free_steps) or rng.random() < 0.75)


def _child(
    wanted: Iterable[TacticUse], steps: tuple[str, ...], parents: Sequence[Strategy], cookbook: Cookbook
) -> Strategy:
    uses = settle(wanted, cookbook)
    order = {use.tactic: i for i, use in enumerate(u for p in parents for u in reversed(p.uses))}
    uses.sort(key=lambda use: order[use.tactic])
    return Strategy(tuple(uses), steps, parents=tuple(p.hash for p in parents))


def settle(wanted: Iterable[TacticUse], cookbook: Cookbook) -> list[TacticUse]:
    """The longest prefix-greedy selection without conflicts, less what lacks a requirement."""
    chosen: dict[str, TacticUse] = {}
    for use in wanted:
        if use.tactic not in chosen and not any(cookbook.conflict(use.tactic, other) for other in chosen):
            chosen[use.tactic] = use
    while lacking := [t for t in chosen if not cookbook[t].requires <= chosen.keys()]:
        for tactic in lacking:
            del chosen[tactic]
    return list(chosen.values())


# -- mutation ------------------------------------------------------------------------------------------


def mutate(strategy: Strategy, cookbook: Cookbook, rng: Random, weights: Mapping[str, float]) -> Strategy:
    """One random neighbour; `weights` says which tactics are worth adding (what binds, what has paid).

    Returns the strategy itself only where the cookbook leaves no neighbour at all.
    """
    moves = neighbours(strategy, cookbook)
    if not moves:
        return strategy
    worth = [_weight(strategy, move, weights) for move in moves]
    return rng.choices(moves, worth)[0]


def _weight(before: Strategy, after: Strategy, weights: Mapping[str, float]) -> float:
    """Adding is worth what the added tactics are worth, dropping the inverse, re-parameterising one half."""
    change = diff(before, after)
    gain = 1.0
    for use in change.added:
        gain *= weights.get(use.tactic, 1.0)
    for use in change.dropped:
        gain /= 2 * max(weights.get(use.tactic, 1.0), 0.25)
    return gain if change.added or change.dropped else 0.5


def neighbours(strategy: Strategy, cookbook: Cookbook) -> list[Strategy]:
    """Every strategy one step away: add, drop, swap for a conflicting tactic, re-parameterise."""
    found: dict[str, Strategy] = {}
    for candidate in (
        *_added(strategy, cookbook),
        *_dropped(strategy, cookbook),
        *_changed(strategy, cookbook),
    ):
        if candidate.hash != strategy.hash:
            found.setdefault(candidate.hash, candidate)
    return list(found.values())


def _added(strategy: Strategy, cookbook: Cookbook) -> Iterable[Strategy]:
    """Adding brings requirements along and pushes out what conflicts (a swap)."""
    for tactic in cookbook:
        if tactic.id in strategy:
            continue
        needed = [cookbook[t] for t in closure(tactic, cookbook) if t not in strategy]
        for use in default_and_other_uses(tactic):
            newcomers = [use if t.id == tactic.id else default_use(t) for t in needed]
            yield _derived(strategy, settle((*newcomers, *strategy.uses), cookbook))


def closure(tactic: Tactic, cookbook: Cookbook) -> list[str]:
    """The tactic with everything that it requires, directly or not."""
    closure = [tactic.id]
    for tactic_id in closure:
        closure += sorted(cookbook[tactic_id].requires - set(closure))
    return closure


def _dropped(strategy: Strategy, cookbook: Cookbook) -> Iterable[Strategy]:
    for use in strategy.uses:
        yield _derived(strategy, settle((u for u in strategy.uses if u != use), cookbook))
    for step in strategy.free_steps:
        yield replace(
            strategy, free_steps=tuple(s for s in strategy.free_steps if s != step), parents=(strategy.hash,)
        )


def _changed(strategy: Strategy, cookbook: Cookbook) -> Iterable[Strategy]:
    for i, use in enumerate(strategy.uses):
        for other in default_and_other_uses(cookbook[use.tactic]):
            yield _derived(strategy, [*strategy.uses[:i], other, *strategy.uses[i + 1 :]])


def _derived(strategy: Strategy, uses: Iterable[TacticUse]) -> Strategy:
    return Strategy(tuple(uses), strategy.free_steps, parents=(strategy.hash,))


def default_use(tactic: Tactic) -> TacticUse:
    return TacticUse.of(tactic.id, **{p.name: p.values[0] for p in tactic.parameters})


def default_and_other_uses(tactic: Tactic) -> list[TacticUse]:
    """The default, then every use that differs from it in one parameter."""
    base = {p.name: p.values[0] for p in tactic.parameters}
    uses = [TacticUse.of(tactic.id, **base)]
    for parameter in tactic.parameters:
        uses += [TacticUse.of(tactic.id, **{**base, parameter.name: v}) for v in parameter.values[1:]]
    return uses


def random_strategy(cookbook: Cookbook, rng: Random) -> Strategy:
    """A valid strategy drawn without regard to merit: each tactic with probability one half."""
    tactics = list(cookbook)
    rng.shuffle(tactics)
    wanted = [
        TacticUse.of(t.id, **{p.name: rng.choice(p.values) for p in t.parameters})
        for t in tactics
        if rng.random() < 0.5
    ]
    return Strategy(tuple(sorted(settle(wanted, cookbook))))


# -- comparison ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diff:
    added: tuple[TacticUse, ...]
    dropped: tuple[TacticUse, ...]
    changed: tuple[tuple[TacticUse, TacticUse], ...]

    def __str__(self) -> str:
        parts = [f"+{use}" for use in self.added] + [f"-{use}" for use in self.dropped]
        parts += [f"{old} -> {new}" for old, new in self.changed]
        return ", ".join(parts) or "nothing"


def diff(before: Strategy, after: Strategy) -> Diff:
    pairs = [(use, after.use(use.tactic)) for use in before.uses]
    return Diff(
        added=tuple(use for use in after.uses if use.tactic not in before),
        dropped=tuple(use for use, new in pairs if new is None),
        changed=tuple((use, new) for use, new in pairs if new is not None and new != use),
    )


def distance(a: Strategy, b: Strategy) -> float:
    """0 for the same, 1 for nothing in common; a differing parameter counts half."""
    change = diff(a, b)
    steps = set(a.free_steps) ^ set(b.free_steps)
    apart = len(change.added) + len(change.dropped) + 0.5 * len(change.changed) + len(steps)
    total = len(a.tactics | b.tactics) + len({*a.free_steps, *b.free_steps})
    return apart / total if total else 0.0


def clusters(strategies: Sequence[Strategy], radius: float) -> list[int]:
    """A cluster number per strategy: each joins the first cluster whose founder is within `radius`."""
    founders: list[Strategy] = []
    labels = []
    for strategy in strategies:
        near = [i for i, founder in enumerate(founders) if distance(founder, strategy) <= radius]
        if not near:
            founders.append(strategy)
        labels.append(near[0] if near else len(founders) - 1)
    return labels
