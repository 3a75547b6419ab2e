"""The built-in author: deterministic, needs no model, knows operator families and writes kernel files.

Tactics choose the skeleton; the tuner chooses the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from cupilot.author.families import FAMILIES
from cupilot.author.family import Recognised
from cupilot.brief import Brief, Complaint, Declined, Parent
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.algebra import best_of_both, closure, crossover, default_use, mutate, settle
from cupilot.strategy.align import align
from cupilot.strategy.evidence import Fact
from cupilot.strategy.guidance import weights
from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.strategy.tactics import Cookbook, load_cookbook

_MUTATION_AFTER_CROSSOVER = 0.3
_DOUBT = 1 / 2  # the weight of leaving a tactic out: most of what a family offers helps most kernels


class BuiltinAuthor:
    """See `brief.Author`. Remembers what it recognised, by problem."""

    name = "builtin"

    def __init__(self) -> None:
        self._known: dict[int, tuple[Problem, Recognised | Declined]] = {}

    def family(self, problem: Problem) -> str | Declined:
        found = self._recognise(problem)
        return found if isinstance(found, Declined) else found.family

    def cookbook(self, problem: Problem) -> Cookbook:
        found = self._recognise(problem)
        return load_cookbook().restricted(() if isinstance(found, Declined) else found.tactics)

    def generate(self, brief: Brief) -> KernelFile | Declined:
        return self._write(brief.problem, Strategy())

    def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
        """Each tactic by chance, likelier where it relieves what binds or has paid; with what it requires."""
        favour = weights(brief.cookbook, brief.placement, brief.credit)
        tactics = list(brief.cookbook)
        rng.shuffle(tactics)
        tactics.sort(key=lambda t: -favour[t.id])  # the favoured first, where they exclude each other
        drawn = [t for t in tactics if rng.random() < favour[t.id] / (_DOUBT + favour[t.id])]
        wanted = [TacticUse.of(t.id, **{p.name: rng.choice(p.values) for p in t.parameters}) for t in drawn]
        needed = [r for t in drawn for r in closure(t, brief.cookbook)]
        wanted += [default_use(brief.cookbook[r]) for r in needed]
        return Strategy(tuple(sorted(settle(wanted, brief.cookbook))))

    def cross(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> Strategy | Declined:
        a, b = (parent.strategy for parent in parents)
        if rng.random() < 0.5:
            child = best_of_both(a, b, {k: c.log_gain for k, c in brief.credit.items()}, brief.cookbook)
        else:
            child = crossover(a, b, brief.cookbook, rng)
        if rng.random() < _MUTATION_AFTER_CROSSOVER:
            favour = weights(brief.cookbook, brief.placement, brief.credit)
            child = mutate(child, brief.cookbook, rng, favour)
        return child

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        return self._write(brief.problem, strategy)

    def repair(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint
    ) -> KernelFile | Declined:
        return Declined("the built-in author writes each strategy in one way only")

    def refine(self, brief: Brief, current: Parent) -> KernelFile | Declined:
        return Declined("the built-in author writes each strategy in one way only")

    def merge(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> KernelFile | Declined:
        return Declined("the built-in author crosses strategies, not code: use --policy sce")

    def align(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, facts: Mapping[str, Fact]
    ) -> Strategy:
        return align(strategy, brief.cookbook, facts, brief.language)

    def _write(self, problem: Problem, strategy: Strategy) -> KernelFile | Declined:
        found = self._recognise(problem)
        if isinstance(found, Declined):
            return found
        if strategy.free_steps:
            return Declined("the built-in author realises tactics, not steps in words")
        if unknown := strategy.tactics - found.tactics:
            return Declined(f"the {found.family} family has no use for {', '.join(sorted(unknown))}")
        return found.write(strategy)

    def _recognise(self, problem: Problem) -> Recognised | Declined:
        known = self._known.get(id(problem))
        if known is None or known[0] is not problem:
            known = self._known[id(problem)] = (problem, _first_match(problem))
        return known[1]


def _first_match(problem: Problem) -> Recognised | Declined:
    for family in FAMILIES.values():
        found = family.recognise(problem)
        if found is not None:
            return found
    operators = sorted({node.op for node in problem.graph.nodes if not node.is_leaf})
    return Declined(
        f"the built-in author has no family for {problem.name} ({', '.join(operators)}); "
        "bring a language model with --model, or a kernel of your own to `cupilot eval`"
    )
