"""All that a report shows of one run, as one frozen value. Neither draws nor measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cupilot.brief import Declined
from cupilot.budget import Amounts
from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.evolve.candidate import Candidate, Slot
from cupilot.evolve.ending import Ending, ending_of
from cupilot.evolve.loop import Outcome, Search, Settings
from cupilot.ledger import Credit
from cupilot.pool import Match
from cupilot.roofline import Placement
from cupilot.strategy.strategy import Strategy


@dataclass(frozen=True)
class Circumstances:
    """What a search does not know of itself."""

    command: str  # the line that started the run
    verify_command: str  # the line that checks the champion again
    policy: str
    machine: str  # processor and threads, in words
    versions: Mapping[str, str]
    placement: Placement | None  # also where the search itself was not told
    started: datetime
    elapsed_s: float
    finished_s: Mapping[Slot, float] = field(default_factory=dict)  # since the start, where known
    seeds: tuple[Match, ...] = ()  # what the pool offered


@dataclass(frozen=True)
class RunView:
    problem: str
    source: str
    target: str
    precision: str
    shapes: Mapping[str, str]  # every shape a kernel is checked at, in words, by name
    device: str
    language: str
    author: str
    family: str
    settings: Settings
    limits: Amounts
    outcome: Outcome
    contender: Candidate | None  # the champion, or what would have been it had it beaten the reference
    credit: Mapping[str, Credit]
    tactics: Mapping[str, str]  # what each does
    run: Circumstances

    @property
    def ending(self) -> Ending:
        return ending_of(self.outcome, self.contender)

    @property
    def verdict(self) -> Evaluation | None:
        """What is known best of the contender: its proof, else its evaluation."""
        if self.outcome.proof is not None and self.outcome.proof.passed:
            return self.outcome.proof
        return self.contender.evaluation if self.contender else None

    @property
    def passed(self) -> tuple[Candidate, ...]:
        return tuple(c for c in self.outcome.records if c.passed)

    @property
    def failed(self) -> tuple[Candidate, ...]:
        return tuple(c for c in self.outcome.records if c.evaluation.verdict is Verdict.FAILED)

    @property
    def undecided(self) -> tuple[Candidate, ...]:
        return tuple(c for c in self.outcome.records if not c.passed and c not in self.failed)


def view_of(search: Search, outcome: Outcome, run: Circumstances) -> RunView:
    brief, problem = search.brief, search.brief.problem
    family = search.author.family(problem)
    target, shapes = problem.targets[0], (problem.shapes if outcome.proof else problem.targets)
    return RunView(
        problem=problem.name,
        source=problem.source,
        target=str(target).partition(": ")[2],
        precision=str(problem.precision),
        shapes={case.name: str(case).partition(": ")[2] for case in shapes},
        device=brief.device,
        language=brief.language,
        author=search.author.name,
        family="" if isinstance(family, Declined) else family,
        settings=search.settings,
        limits=search.budget.limits,
        outcome=outcome,
        contender=search.champion,
        credit=search.credit(),
        tactics={tactic.id: " ".join(tactic.does.split()) for tactic in brief.cookbook},
        run=run,
    )


def words(strategy: Strategy) -> str:
    """A strategy on one line."""
    return ", ".join([*map(str, strategy.uses), *strategy.free_steps]) or "plain"
