"""Runs search policies against recorded tables: seconds instead of hours, many seeds."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined, Parent
from cupilot.budget import UNLIMITED, Amounts, Budget
from cupilot.device.peaks import cpu_peaks
from cupilot.evaluate.result import Evaluation, Interval, Verdict
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.heritage import Heritage, kin
from cupilot.evolve.loop import Search, Settings
from cupilot.evolve.policies import POLICIES
from cupilot.evolve.structure import structure_of
from cupilot.evolve.watching import Silent
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kinship import KIN, Structure
from cupilot.ledger import NOTHING, Cell
from cupilot.pool import Lesson, Pool, Record
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Work, place
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook, load_cookbook
from cupilot.types import Stage
from policies.tables import Table

NEAR = 0.95  # of the best known ratio
EARLY = (2, 4, 8)  # kernels after which it is told what was reached
SEEDS = 50
EARLIER = 1000  # where the random seeds of the runs begin that fill the pool


@dataclass(frozen=True)
class Setting:
    """One way to search."""

    name: str
    policy: str = "sce"
    roofline: bool = True
    doubt: bool = True  # the roofline may also weigh a tactic less than without it
    population: int = 8
    seeds: bool = False  # kin's strategies open the first generation
    credit: bool = False  # what kin's trials taught is the prior
    least: float = KIN  # how alike kin have to be


SETTINGS = (
    Setting("sce"),
    Setting("sce without roofline", roofline=False),
    Setting("roofline only encourages", doubt=False),
    Setting("generations of four", population=4),
    Setting("sce with pool", seeds=True, credit=True),
    Setting("pool: credit only", credit=True),
    Setting("pool: strangers too", seeds=True, credit=True, least=0.0),
    Setting("best-of-n", "best-of-n"),
    Setting("random", "random"),
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

    @property
    def fingerprint(self) -> str:
        return self.problem.graph.fingerprint(shapes=False)


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


_UNKNOWN = Evaluation(Verdict.UNDECIDED, Stage.TIME, "the table lacks this kernel")


class TableEvaluator:
    """Answers from the table; notes how good the best is after each kernel that was new."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._seen: set[str] = set()
        self.best_after: list[float] = []

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        name = kernel.summary
        found = self._table.evaluations.get(name, _UNKNOWN)
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


@dataclass(frozen=True)
class Trace:
    """How good the best kernel was after each, as a share of the best known."""

    shares: tuple[float, ...]
    kernels: int  # in the table

    @property
    def needed(self) -> int:
        """Kernels until one is near the best known; one more than there are where none was."""
        return next((i for i, share in enumerate(self.shares, 1) if share >= NEAR), self.kernels + 1)

    def after(self, count: int) -> float:
        return self.shares[min(count, len(self.shares)) - 1]


def searched(world: World, setting: Setting, seed: int, heritage: Heritage) -> Trace:
    evaluator = TableEvaluator(world.table)
    settings = Settings(seed=seed, population=setting.population, epochs=16, patience=99)
    search = _search(world, setting, evaluator, settings, heritage)
    search.search()
    best = world.table.ratio(world.table.best)
    return Trace(
        tuple(ratio / best for ratio in evaluator.best_after), len(set(world.table.kernels.values()))
    )


def _search(
    world: World, setting: Setting, evaluator: TableEvaluator, settings: Settings, heritage: Heritage
) -> Search:
    brief = Brief(
        world.problem,
        "cpu",
        "cpp",
        world.cookbook if setting.doubt else _undoubted(world),
        world.placement if setting.roofline else None,
        similar=heritage.seeds(world.cookbook, words=False) if setting.seeds else (),
    )
    prior = heritage.prior(world.structure) if setting.credit else NOTHING
    author, policy = TableAuthor(world.table), POLICIES[setting.policy]
    cell = Cell(world.placement.zone, world.family, "cpu")
    return Search(brief, author, evaluator, policy, settings, Budget(UNLIMITED), Silent(), cell, prior)


def _undoubted(world: World) -> Cookbook:
    """Every tactic in the problem's zone, so that none is held against it."""
    return Cookbook(replace(t, zones=t.zones | {world.placement.zone}) for t in world.cookbook)


def left_behind(world: World, seed: int) -> tuple[Record, Lesson]:
    """What a run on this problem leaves to the pool: the search as it is by default, without a pool."""
    search = _search(world, SETTINGS[0], TableEvaluator(world.table), Settings(seed=seed), Heritage())
    search.search()
    champion = search.champion
    assert champion is not None
    name, ratio = world.table.problem, champion.speedup.ratio
    record = Record(name, world.fingerprint, world.structure, "cpu", champion.strategy, "", "", ratio, {})
    return record, Lesson(world.fingerprint, world.structure, tuple(search.trials()))


def heritage_of(world: World, left: Mapping[str, tuple[Record, Lesson]], least: float) -> Heritage:
    """What a pool with the other problems' runs offers; the problem itself is held out."""
    with tempfile.TemporaryDirectory() as folder, closing(Pool(Path(folder) / "pool.db")) as pool:
        for name, (record, lesson) in left.items():
            pool.add(record)
            pool.learn(name, lesson)
        return kin(pool, world.structure, "cpu", hold_out=world.fingerprint, least=least)


def interval(values: Sequence[float], of: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """95 % by bootstrap."""
    rng = random.Random(0)
    means = sorted(of(rng.choices(values, k=len(values))) for _ in range(1000))
    return means[25], means[975]


def page(worlds: Sequence[World], seeds: int) -> str:
    left = [{w.table.problem: left_behind(w, EARLIER + seed) for w in worlds} for seed in range(seeds)]
    traces: dict[Setting, list[list[Trace]]] = {setting: [] for setting in SETTINGS}
    related = []
    for number, world in enumerate(worlds):
        by_least = {
            least: [heritage_of(world, runs, least) for runs in left]
            for least in {setting.least for setting in SETTINGS}
        }
        if any(heritage.matches for heritage in by_least[KIN]):
            related.append(number)
        for setting in SETTINGS:
            offered = by_least[setting.least] if setting.seeds or setting.credit else [Heritage()] * seeds
            found = [searched(world, setting, seed, offered[seed]) for seed in range(seeds)]
            traces[setting].append(found)
    names = ", ".join(worlds[number].table.problem for number in related)
    lines = [*_by_problem(worlds, traces), "", *_overall(traces, seeds), ""]
    lines += [*_reached("all problems", traces, range(len(worlds))), ""]
    lines += _reached(f"problems with kin: {names}", traces, related) if related else []
    return "\n".join(lines)


Traces = Mapping[Setting, Sequence[Sequence[Trace]]]


def _by_problem(worlds: Sequence[World], traces: Traces) -> Iterator[str]:
    names = " | ".join(setting.name for setting in traces)
    yield f"| problem | strategies | kernels | near the best | best | {names} |"
    yield "|---" * (5 + len(traces)) + "|"
    for number, world in enumerate(worlds):
        table = world.table
        kernels, best = set(table.kernels.values()), table.ratio(table.best)
        near = {table.kernels[s.hash] for s in table.strategies.values() if table.ratio(s) >= NEAR * best}
        measured = str(len(kernels)) + (f" ({len(table.missing)} not measured)" if table.missing else "")
        space = f"{len(table.strategies)}{'' if table.whole else ' sampled'}"
        cells = [table.problem, space, measured, str(len(near)), f"{best:.2f}x"]
        for found in traces.values():
            needed = [float(trace.needed) for trace in found[number]]
            low, high = interval(needed, statistics.fmean)
            cells.append(f"{statistics.fmean(needed):.1f} [{low:.1f}, {high:.1f}]")
        yield f"| {' | '.join(cells)} |"


def _overall(traces: Traces, seeds: int) -> Iterator[str]:
    yield f"Evaluations to {NEAR:.0%} of the best known; means over {seeds} seeds with 95 % intervals."
    yield "As a share of the kernels, averaged over the problems; then the searches that eight plans decide:"
    for setting, found in traces.items():
        by_seed = [statistics.fmean(t[seed].needed / t[seed].kernels for t in found) for seed in range(seeds)]
        low, high = interval(by_seed, statistics.fmean)
        early = statistics.fmean(trace.needed <= 9 for of_problem in found for trace in of_problem)
        yield f"- {setting.name}: {statistics.fmean(by_seed):.3f} [{low:.3f}, {high:.3f}], {early:.0%}"


def _reached(of_what: str, traces: Traces, places: Iterable[int]) -> Iterator[str]:
    """What share of the best known was reached, early on; the plain kernel is the first."""
    heads = " | ".join(f"after {count}" for count in EARLY)
    yield f"| reached of the best, geometric mean over {of_what} | {heads} |"
    yield "|---" * (1 + len(EARLY)) + "|"
    places = list(places)
    for setting, found in traces.items():
        everything = [trace for number in places for trace in found[number]]
        shares = [statistics.geometric_mean([t.after(count) for t in everything]) for count in EARLY]
        yield f"| {setting.name} | {' | '.join(f'{share:.2f}' for share in shares)} |"
