"""What a run takes from earlier runs and leaves to later ones: similar strategies, trials, its own record.

What was taken is recorded in the run's table, so that a resumed run sees the pool as it was at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cupilot.evaluate.result import Evaluation, to_json
from cupilot.evolve.candidate import BASELINE, CLUSTER_RADIUS, Candidate
from cupilot.evolve.folder import Asked
from cupilot.evolve.structure import structure_of
from cupilot.kernel.file import print_kernel
from cupilot.kinship import KIN, Structure, table
from cupilot.ledger import Cell, Prior, Trial, taught, trial_from_json
from cupilot.pool import (
    Lesson,
    Match,
    Pool,
    Record,
    lesson_from_json,
    lesson_to_json,
    record_from_json,
    record_to_json,
)
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement
from cupilot.store import Store, UnansweredError
from cupilot.strategy.algebra import distance, settle
from cupilot.strategy.strategy import Strategy, is_usable
from cupilot.strategy.tactics import Cookbook

SEEDS = 4  # strategies of kin that may open the first generation
_CONSIDERED = 12  # records, of which those are taken


@dataclass(frozen=True)
class Heritage:
    matches: tuple[Match, ...] = ()  # best first
    lessons: tuple[Lesson, ...] = ()

    def prior(self, here: Structure) -> Prior:
        """What the lessons make one expect of tactics on this problem."""
        alike = table([*(lesson.structure for lesson in self.lessons), here])
        return taught([lesson.trials for lesson in self.lessons], alike)

    def seeds(self, cookbook: Cookbook, *, words: bool) -> tuple[Strategy, ...]:
        return tuple(seeds((match.record.strategy for match in self.matches), cookbook, words=words))


def inherit(
    store: Store,
    pool: Pool | None,
    structure: Structure,
    fingerprint: str,
    asked: Asked,
    *,
    offline: bool,
) -> Heritage:
    """Asked once for a run; without a pool there is nothing to inherit."""
    question = {"what": "heritage"}
    row = store.get("similar", question)
    if row is None and offline:
        raise UnansweredError("similar")

    def look() -> Mapping[str, Any]:
        if pool is None or not asked.pool:
            return {"matches": [], "lessons": []}
        held_out = fingerprint if asked.hold_out else None
        found = kin(pool, structure, asked.device, hold_out=held_out)
        return {
            "matches": [[record_to_json(m.record), m.similarity] for m in found.matches],
            "lessons": [lesson_to_json(lesson) for lesson in found.lessons],
        }

    found = store.ask("similar", question, look)
    lessons = [lesson_from_json(lesson) for lesson in found.get("lessons", ())]
    if found.get("trials"):  # as runs were recorded once: of problems of one cell
        trials = tuple(map(trial_from_json, found["trials"]))
        lessons.append(Lesson("", structure, trials))
    matches = [Match(record_from_json(record), similarity) for record, similarity in found["matches"]]
    return Heritage(tuple(matches), tuple(lessons))


def kin(
    pool: Pool, structure: Structure, device: str, *, hold_out: str | None = None, least: float = KIN
) -> Heritage:
    """What the pool knows of problems that are alike: strangers' strategies do worse than fresh plans."""
    matches = pool.similar(structure, device, _CONSIDERED, hold_out=hold_out)
    near = [match for match in matches if match.similarity >= least]
    return Heritage(tuple(near), tuple(pool.lessons(structure, device, hold_out=hold_out, least=least)))


def seeds(inherited: Iterable[Strategy], cookbook: Cookbook, *, words: bool) -> Iterator[Strategy]:
    """The few to try as they are: still the same idea with what this author can do, and no two alike.

    Steps in words stay only where a model reads them.
    """
    taken: list[Strategy] = []
    for strategy in inherited:
        fitted = _fitted(strategy, cookbook, words=words)
        is_new = all(distance(fitted, other) > CLUSTER_RADIUS for other in taken)
        if fitted.uses and is_new and distance(strategy, fitted) <= CLUSTER_RADIUS and len(taken) < SEEDS:
            taken.append(fitted)
            yield fitted


def _fitted(strategy: Strategy, cookbook: Cookbook, *, words: bool) -> Strategy:
    allowed = [use for use in strategy.uses if is_usable(use, cookbook)]
    return Strategy(tuple(settle(allowed, cookbook)), strategy.free_steps if words else ())


def bequeath(
    pool: Pool,
    run: str,
    problem: Problem,
    placement: Placement | None,
    cell: Cell,
    heritage: Heritage,
    trials: list[Trial],
    first: Candidate | None,
    champion: Candidate | None,
    proof: Evaluation | None,
) -> Record | None:
    """Leave the trials, and the proven champion as a record. None where there is none."""
    fingerprint = problem.graph.fingerprint(shapes=False)
    structure = structure_of(problem, cell.family, placement)
    lineage = _lineage(heritage)
    pool.learn(run, Lesson(fingerprint, structure, tuple(trials), lineage))
    if champion is None or proof is None or first is None:
        return None
    record = Record(
        problem=problem.name,
        fingerprint=fingerprint,
        structure=structure,
        device=cell.device,
        strategy=champion.strategy,
        first_kernel=print_kernel(first.kernel),
        best_kernel=print_kernel(champion.kernel),
        speedup=proof.speedup[BASELINE].ratio,
        measurements=to_json(proof),
        lineage=lineage,
    )
    pool.add(record)
    return record


def _lineage(heritage: Heritage) -> tuple[str, ...]:
    """Everything that the run learned from: what a champion descends from is not told apart any further."""
    sources: list[Record | Lesson] = [*(match.record for match in heritage.matches), *heritage.lessons]
    return tuple(
        sorted({name for source in sources for name in (source.fingerprint, *source.lineage)} - {""})
    )
