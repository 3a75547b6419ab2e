"""What a run takes from earlier runs and leaves to later ones: similar strategies, trials, its own record.

What was taken is recorded in the run's table, so that a resumed run sees the pool as it was at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cupilot.evaluate.result import Evaluation, to_json
from cupilot.evolve.candidate import BASELINE, Candidate
from cupilot.evolve.folder import Asked
from cupilot.evolve.structure import structure_of
from cupilot.kernel.file import print_kernel
from cupilot.ledger import Cell, Trial, trial_from_json, trial_to_json
from cupilot.pool import Match, Pool, Record, record_from_json, record_to_json, strategies
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement
from cupilot.store import Store, UnansweredError
from cupilot.strategy.strategy import Strategy

SEEDS = 4  # records of similar problems that may open the first generation


@dataclass(frozen=True)
class Heritage:
    matches: tuple[Match, ...] = ()  # best first
    trials: tuple[Trial, ...] = ()

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        return strategies(self.matches)


def inherit(
    store: Store,
    pool: Pool | None,
    problem: Problem,
    placement: Placement | None,
    cell: Cell,
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
            return {"matches": [], "trials": []}
        hold_out = problem.graph.fingerprint(shapes=False) if asked.hold_out else None
        structure = structure_of(problem, cell.family, placement)
        matches = pool.similar(structure, asked.device, SEEDS, hold_out=hold_out)
        return {
            "matches": [[record_to_json(m.record), m.similarity] for m in matches],
            "trials": [trial_to_json(t) for t in pool.trials(cell, hold_out=hold_out)],
        }

    found = store.ask("similar", question, look)
    return Heritage(
        tuple(Match(record_from_json(record), similarity) for record, similarity in found["matches"]),
        tuple(trial_from_json(trial) for trial in found["trials"]),
    )


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
    pool.learn(run, fingerprint, trials)
    if champion is None or proof is None or first is None:
        return None
    record = Record(
        problem=problem.name,
        fingerprint=fingerprint,
        structure=structure_of(problem, cell.family, placement),
        device=cell.device,
        strategy=champion.strategy,
        first_kernel=print_kernel(first.kernel),
        best_kernel=print_kernel(champion.kernel),
        speedup=proof.speedup[BASELINE].ratio,
        measurements=to_json(proof),
        lineage=_lineage(heritage),
    )
    pool.add(record)
    return record


def _lineage(heritage: Heritage) -> tuple[str, ...]:
    """Everything that seeded the run: what a champion descends from is not told apart any further."""
    seeds = [m.record for m in heritage.matches]
    return tuple(sorted({f for seed in seeds for f in (seed.fingerprint, *seed.lineage)}))
