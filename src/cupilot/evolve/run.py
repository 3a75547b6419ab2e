"""One run, put together from its folder: the problem, the author, the search over the table of answers.

The same code starts a run, resumes it and looks at it: `replay` goes through the recorded answers and stops
at the first question that nobody has answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cupilot.brief import Author, Brief, Declined
from cupilot.budget import Amounts, Budget, parse_budget
from cupilot.device.base import Device
from cupilot.device.registry import open_device
from cupilot.errors import UsageError
from cupilot.evolve.answers import Answers, Bench
from cupilot.evolve.authors import make_author, working_ahead
from cupilot.evolve.candidate import Candidate, Slot
from cupilot.evolve.ending import NOT_FINISHED
from cupilot.evolve.folder import Asked, RunFolder, Session
from cupilot.evolve.heritage import Heritage, inherit
from cupilot.evolve.loop import Outcome, Search, Settings, Watcher
from cupilot.evolve.policies import policy_named
from cupilot.evolve.standing import stand
from cupilot.evolve.structure import structure_of
from cupilot.ledger import Cell
from cupilot.pool import Pool
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Zone
from cupilot.store import UnansweredError

PROOF_RESERVE_S = 40.0  # for the final proof, but never more than a third of the time

MakeBench = Callable[[Problem, Device], Bench]


@dataclass
class Run:
    """A run that is ready to go. `placement` is known also where the search is not told."""

    folder: RunFolder
    asked: Asked
    problem: Problem
    placement: Placement | None
    heritage: Heritage
    search: Search

    def go(self) -> Outcome:
        """Search, prove, record why it ended."""
        reason = self.search.search()
        outcome = self.search.prove(reason)
        self.folder.end(outcome.reason)
        return outcome


@dataclass(frozen=True)
class Replay:
    """A run as its table tells it."""

    run: Run
    outcome: Outcome
    sessions: tuple[Session, ...]
    finished_s: dict[Slot, float]  # of search, when a candidate was recorded
    is_finished: bool


def prepare(
    folder: RunFolder,
    watcher: Callable[[Problem, Budget], Watcher],
    make_bench: MakeBench | None,
    pool: Pool | None,
) -> Run:
    """Load the problem and put the search together. Without a bench nothing can be asked anew."""
    asked = folder.asked
    problem = load(asked.problem, asked.size)
    _same_problem(folder, problem)
    limits = parse_budget(asked.budget)
    reserve = Amounts(time_s=min(PROOF_RESERVE_S, limits.time_s / 3) if limits.time_s < float("inf") else 0.0)
    budget = Budget(limits, reserve=reserve)
    onlooker = watcher(problem, budget)
    device = open_device(asked.device)
    author = make_author(asked, folder.store, budget, offline=make_bench is None, notice=onlooker.notice)
    placement = stand(folder.store, problem, asked.device, offline=make_bench is None)
    cell = Cell(placement.zone if placement else Zone.MEMORY, _family(author, problem), asked.device)
    structure = structure_of(problem, cell.family, placement)
    fingerprint = problem.graph.fingerprint(shapes=False)
    heritage = inherit(folder.store, pool, structure, fingerprint, asked, offline=make_bench is None)
    cookbook = author.cookbook(problem)
    brief = Brief(
        problem,
        asked.device,
        device.language,
        cookbook,
        placement if asked.roofline else None,
        similar=heritage.seeds(cookbook, words=asked.model is not None),
    )
    search = Search(
        brief,
        author,
        Answers(
            folder.store,
            partial(_made, make_bench, problem, device, onlooker) if make_bench else None,
            lambda name, text: folder.keep_kernel(name, device.language, text),
        ),
        policy_named(asked.policy),
        Settings(asked.seed, asked.epochs, asked.generations, asked.population, asked.patience),
        budget,
        onlooker,
        cell,
        heritage.prior(structure),
        working_ahead(asked, author, offline=make_bench is None),
    )
    return Run(folder, asked, problem, placement, heritage, search)


def replay(path: Path) -> Replay:
    """What the table says, finished or not. Asks nothing anew, calls no model, needs no ownership."""
    with RunFolder.open(path, exclusive=False) as folder:
        return replay_in(folder)


def replay_in(folder: RunFolder) -> Replay:
    witness = _Witness()
    recorded = [row for row in folder.store.rows("evaluate") if row.seq < folder.first_end()]
    try:
        run = prepare(folder, lambda _, budget: witness.of(budget), None, None)
    except UnansweredError:
        raise UsageError(
            f"{folder.path} ended before its search began",
            hint=f"go on with it: cupilot resume {folder.path}",
        ) from None
    ended = folder.ended()
    outcome, is_whole = _replayed(run.search, ended)
    answers = run.search.evaluator
    if not is_whole and isinstance(answers, Answers) and not all(map(answers.used, recorded)):
        raise UsageError(
            f"{folder.path} was made by another version of cuPilot, which wrote other kernels",
            hint=f"its report and champion stand as they are; to go on: cupilot resume {folder.path}",
        )
    return Replay(run, outcome, tuple(folder.sessions()), witness.finished_s, ended is not None)


def _replayed(search: Search, ended: str | None) -> tuple[Outcome, bool]:
    """Also whether all of it was there, the search and the proof."""
    is_whole = True
    try:
        reason = search.search()
    except UnansweredError:
        if ended is None:
            return search.outcome(NOT_FINISHED), False
        is_whole, reason = False, ended
    try:
        return search.prove(reason), is_whole
    except UnansweredError:
        return search.outcome(reason), False


class _Witness:
    """Notes when each candidate was recorded, on the clock of the search."""

    def __init__(self) -> None:
        self.finished_s: dict[Slot, float] = {}

    def of(self, budget: Budget) -> _Witness:
        self._budget = budget
        return self

    def trying(self, slot: Slot, what: str) -> None: ...

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None:
        self.finished_s[candidate.slot] = self._budget.spent.time_s

    def notice(self, what: str) -> None: ...

    def stop_requested(self) -> bool:
        return False


def _made(make_bench: MakeBench, problem: Problem, device: Device, onlooker: Watcher) -> Bench:
    onlooker.notice("preparing inputs and exact references; kept for later runs")
    return make_bench(problem, device)


def _family(author: Author, problem: Problem) -> str:
    family = author.family(problem)
    return "" if isinstance(family, Declined) else family


def _same_problem(folder: RunFolder, problem: Problem) -> None:
    fingerprint = problem.graph.fingerprint()
    known = folder.store.meta("fingerprint")
    if known is None:
        folder.store.set_meta("fingerprint", fingerprint)
    elif known != fingerprint:
        raise UsageError(
            f"{problem.name} is not what it was when {folder.path} began",
            hint="start a new run, or bring back the problem file",
        )
