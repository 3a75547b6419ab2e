"""A world without compilers: a scripted author, an evaluator that computes speed from a known law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from cupilot.brief import Brief, Complaint, Declined, Parent
from cupilot.budget import UNLIMITED, Amounts, Budget
from cupilot.evaluate.result import Evaluation, Interval, Kind, Verdict
from cupilot.evolve.candidate import Candidate, Slot
from cupilot.evolve.loop import Search, Settings
from cupilot.evolve.policies import POLICIES
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.ledger import Cell
from cupilot.problem.problem import Problem
from cupilot.roofline import Zone
from cupilot.strategy.algebra import crossover, random_strategy
from cupilot.strategy.align import align
from cupilot.strategy.evidence import Fact
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook, Parameter, Resource, Tactic
from cupilot.types import Stage

COST = Amounts(time_s=1.0, evaluations=1)
GAINS = {"vectorize": 2.0, "unroll": 1.2, "stream": 0.9, "tile": 1.5, "fuse": 1.3}


def tactic(name: str) -> Tactic:
    conflicts = frozenset({"stream"}) if name == "tile" else frozenset[str]()
    parameters = (Parameter("size", (4, 8)),) if name == "tile" else ()
    return Tactic(
        name,
        name,
        name,
        Resource.BYTES,
        frozenset({Zone.MEMORY}),
        frozenset(),
        conflicts,
        parameters,
        {},
        {},
        "",
    )


COOKBOOK = Cookbook(tactic(name) for name in GAINS)


def kernel_for(strategy: Strategy, broken: bool = False) -> KernelFile:
    names = " ".join(sorted(map(str, strategy.uses))) or "plain"
    flaw = " broken" if broken else ""
    return parse_kernel(f"/* cupilot 1\n{names}{flaw}\nlaunch:\n    k[1](x, out)\n*/\n// code\n")


@dataclass
class ScriptedAuthor:
    """Writes a kernel whose summary names its tactics; strategies with one of `clumsy` break at first."""

    name: str = "scripted"
    clumsy: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    def family(self, problem: Problem) -> str | Declined:
        return "any"

    def cookbook(self, problem: Problem) -> Cookbook:
        return COOKBOOK

    def generate(self, brief: Brief) -> KernelFile | Declined:
        return kernel_for(Strategy())

    def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
        return random_strategy(brief.cookbook, rng)

    def cross(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> Strategy | Declined:
        return crossover(parents[0].strategy, parents[1].strategy, brief.cookbook, rng)

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        self.asked.append(strategy.hash)
        return kernel_for(strategy, broken=bool(strategy.tactics & self.clumsy))

    def repair(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint
    ) -> KernelFile | Declined:
        return kernel_for(strategy)

    def refine(self, brief: Brief, current: Parent) -> KernelFile | Declined:
        return Declined("never")

    def merge(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> KernelFile | Declined:
        return kernel_for(crossover(parents[0].strategy, parents[1].strategy, brief.cookbook, rng))

    def align(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, facts: Mapping[str, Fact]
    ) -> Strategy:
        return align(strategy, brief.cookbook, facts, brief.language)


@dataclass
class LawfulEvaluator:
    """Speed is the product of the tactics' gains; "broken" kernels fail verification."""

    gains: dict[str, float] = field(default_factory=lambda: dict(GAINS))
    evaluated: list[str] = field(default_factory=list)

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        self.evaluated.append(kernel.summary)
        if "broken" in kernel.summary:
            return Evaluation(Verdict.FAILED, Stage.VERIFY, "wrong at out[3]"), COST
        ratio = math.prod(gain for name, gain in self.gains.items() if name in kernel.summary)
        ratio *= 0.8 * (1.1 if "size=8" in kernel.summary else 1.0)
        interval = Interval(ratio, ratio * 0.99, ratio * 1.01)
        passed = Evaluation(
            Verdict.PASSED, Stage.TIME, "", speedup={"eager": interval},
            time_s=1 / ratio, floor_s=0.05, attainable_s=0.05,
            kind=Kind.MEASURED,
        )  # fmt: skip
        return passed, COST

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        ratio = challenger.speedup.ratio / champion.speedup.ratio
        return Interval(ratio, ratio * 0.99, ratio * 1.01), Amounts(time_s=1.0)

    def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
        proof, _ = self.evaluate(champion.kernel)
        return proof, Amounts(time_s=1.0)


@dataclass
class Onlooker:
    stop_after: int | None = None
    recorded_slots: list[Slot] = field(default_factory=list)

    def trying(self, slot: Slot, what: str) -> None: ...

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None:
        self.recorded_slots.append(candidate.slot)

    def notice(self, what: str) -> None: ...

    def stop_requested(self) -> bool:
        return self.stop_after is not None and len(self.recorded_slots) >= self.stop_after


def make_search(
    problem: Problem,
    policy: str = "sce",
    author: ScriptedAuthor | None = None,
    evaluator: LawfulEvaluator | None = None,
    watcher: Onlooker | None = None,
    limits: Amounts = UNLIMITED,
    settings: Settings | None = None,
) -> Search:
    brief = Brief(problem, "cpu", "cpp", COOKBOOK, placement=None)
    return Search(
        brief,
        author or ScriptedAuthor(),
        evaluator or LawfulEvaluator(),
        POLICIES[policy],
        settings or Settings(),
        Budget(limits),
        watcher or Onlooker(),
        Cell(Zone.MEMORY, "any", "cpu"),
    )
