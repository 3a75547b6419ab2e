"""Runs search policies against recorded tables: seconds instead of hours, many seeds."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined, Parent
from cupilot.budget import UNLIMITED, Amounts, Budget
from cupilot.device.peaks import cpu_peaks
from cupilot.evaluate.result import Evaluation, Interval
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.loop import Search, Settings
from cupilot.evolve.policies import POLICIES
from cupilot.evolve.structure import structure_of
from cupilot.evolve.watching import Silent
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.ledger import Cell
from cupilot.pool import Pool, Record, Structure, strategies
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Work, place
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook, load_cookbook
from policies.tables import Table

NEAR = 0.95  # of the best known ratio
SEEDS = 50


@dataclass(frozen=True)
class Setting:
    """One way to search."""

    policy: str
    roofline: bool = True
    pool: bool = False

    def __str__(self) -> str:
        words = [self.policy]
        if self.policy == "sce":
            words += ["" if self.roofline else "without roofline", "with pool" if self.pool else ""]
        return " ".join(filter(None, words))


SETTINGS = (
    Setting("sce"),
    Setting("sce", roofline=False),
    Setting("sce", pool=True),
    Setting("best-of-n"),
    Setting("random"),
)


@dataclass(frozen=True)
class World:
    """A table with what a search has to know of its problem."""

    table: Table
    problem: Problem
    family: str
    placement: Placement
    structure: Structure
    cookbook: Cookbook


def world_of(table: Table) -> World:
    problem = load(f"suite:{table.problem}")
    family = BuiltinAuthor().family(problem)
    assert isinstance(family, str)
    peaks = cpu_peaks().one_thread
    placement = place(Work.of(problem.counts), peaks, problem.precision.arithmetic, 512 << 20)
    structure = structure_of(problem, family, placement)
    return World(table, problem, family, placement, structure, load_cookbook().restricted(table.tactics))


class TableAuthor(BuiltinAuthor):
    """Plans and crosses as the built-in author does; "writes" the name of the recorded kernel."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table
        self._files: dict[str, KernelFile] = {}

    def generate(self, brief: Brief) -> KernelFile | Declined:
        return self._named(Strategy())

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        if strategy.hash not in self._table.kernels:
            return Declined("the table was sampled without this strategy")
        return self._named(strategy)

    def align(self, brief: Brief, strategy: Strategy, kernel: KernelFile, facts: object) -> Strategy:
        return self._table.aligned.get(strategy.hash, strategy)

    def _named(self, strategy: Strategy) -> KernelFile:
        name = self._table.kernels[strategy.hash]
        if name not in self._files:
            text = f"/* cupilot 1\n{name}\nlaunch:\n    k[1](x, out)\n*/\n// {name}\n"
            self._files[name] = parse_kernel(text)
        return self._files[name]


class TableEvaluator:
    """Answers from the table; notes how good the best is after each kernel that was new."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._seen: set[str] = set()
        self.best_after: list[float] = []

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        name = kernel.summary
        found = self._table.evaluations[name]
        if name in self._seen:
            return found, Amounts()
        self._seen.add(name)
        ratio = found.speedup["eager"].ratio if found.passed and found.speedup else 0.0
        self.best_after.append(max(ratio, *self.best_after[-1:], 0.0))
        return found, Amounts(evaluations=1)

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        a, b = challenger.speedup, champion.speedup
        return Interval(a.ratio / b.ratio, a.low / b.high, a.high / b.low), Amounts()

    def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
        return champion.evaluation, Amounts()


def evaluations_needed(world: World, setting: Setting, seed: int, similar: Sequence[Strategy]) -> int:
    """Until a kernel is within 95 % of the best known; one more than there are where it never is."""
    evaluator, author = TableEvaluator(world.table), TableAuthor(world.table)
    brief = Brief(
        world.problem,
        "cpu",
        "cpp",
        world.cookbook,
        world.placement if setting.roofline else None,
        similar=tuple(similar) if setting.pool else (),
    )
    settings = Settings(seed=seed, epochs=8, patience=99)
    cell = Cell(world.placement.zone, world.family, "cpu")
    search = Search(
        brief, author, evaluator, POLICIES[setting.policy], settings, Budget(UNLIMITED), Silent(), cell
    )
    search.search()
    goal = NEAR * world.table.ratio(world.table.best)
    reached = [i for i, best in enumerate(evaluator.best_after, 1) if best >= goal]
    return reached[0] if reached else len(set(world.table.kernels.values())) + 1


def seeds_from_pool(world: World, worlds: Sequence[World]) -> list[Strategy]:
    """What a pool of the other problems' best strategies offers; the problem itself is held out."""
    with tempfile.TemporaryDirectory() as folder, closing(Pool(Path(folder) / "pool.db")) as pool:
        for other in worlds:
            best = other.table.best
            fingerprint = other.problem.graph.fingerprint(shapes=False)
            ratio = other.table.ratio(best)
            name = other.table.problem
            pool.add(Record(name, fingerprint, other.structure, "cpu", best, "", "", ratio, {}))
        own = world.problem.graph.fingerprint(shapes=False)
        found = strategies(pool.similar(world.structure, "cpu", 4, hold_out=own))
    allowed = set(world.table.tactics)
    fitted = [Strategy(tuple(u for u in s.uses if u.tactic in allowed)) for s in found]
    return [s for s in fitted if s.hash in world.table.kernels and s.uses]


def interval(values: Sequence[float], of: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """95 % by bootstrap."""
    rng = random.Random(0)
    means = sorted(of(rng.choices(values, k=len(values))) for _ in range(1000))
    return means[25], means[975]


def page(worlds: Sequence[World], seeds: int) -> str:
    head = (
        "| problem | strategies | kernels | near the best | best | " + " | ".join(map(str, SETTINGS)) + " |"
    )
    lines = [head, "|---" * (5 + len(SETTINGS)) + "|"]
    per_setting: dict[Setting, list[list[float]]] = {setting: [] for setting in SETTINGS}
    for world in worlds:
        table, similar = world.table, seeds_from_pool(world, worlds)
        kernels = len(set(table.kernels.values()))
        space = f"{len(table.strategies)}{'' if table.whole else ' sampled'}"
        best = table.ratio(table.best)
        near = len(
            {table.kernels[s.hash] for s in table.strategies.values() if table.ratio(s) >= NEAR * best}
        )
        cells = [table.problem, space, str(kernels), str(near), f"{best:.2f}x"]
        for setting in SETTINGS:
            needed = [float(evaluations_needed(world, setting, seed, similar)) for seed in range(seeds)]
            per_setting[setting].append([n / kernels for n in needed])
            low, high = interval(needed, statistics.fmean)
            cells.append(f"{statistics.fmean(needed):.1f} [{low:.1f}, {high:.1f}]")
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        f"Evaluations to {NEAR:.0%} of the best known; means over {seeds} seeds with 95 % intervals.",
    ]
    lines.append("As a share of the kernels, averaged over the problems:")
    for setting, shares in per_setting.items():
        by_seed = [statistics.fmean(share[seed] for share in shares) for seed in range(seeds)]
        low, high = interval(by_seed, statistics.fmean)
        lines.append(f"- {setting}: {statistics.fmean(by_seed):.3f} [{low:.3f}, {high:.3f}]")
    return "\n".join(lines)
