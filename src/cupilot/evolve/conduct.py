"""Conducts a run from its folder to its end: search, proof, champion's files, what the pool keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from cupilot.budget import Budget
from cupilot.device.base import Device
from cupilot.errors import UsageError
from cupilot.evolve.answers import Bench
from cupilot.evolve.champion import write_champion
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.heritage import bequeath
from cupilot.evolve.loop import Outcome, Watcher
from cupilot.evolve.machine import this_session
from cupilot.evolve.measuring import Measurer
from cupilot.evolve.run import Run, prepare
from cupilot.pool import Pool
from cupilot.problem.problem import Problem


@dataclass(frozen=True)
class Finished:
    run: Run
    outcome: Outcome
    kernel: Path | None  # the champion's file; None where nothing beat the reference
    complaint: str = ""  # why the pool did not get what the run learned


def conduct(
    folder: RunFolder,
    pool: Pool | None,
    watcher: Callable[[Problem, Budget], Watcher],
    measurer: Callable[[Problem, Device], AbstractContextManager[Bench]] = Measurer,
) -> Finished:
    """Go on from whatever the table holds."""
    folder.begin(this_session())
    with ExitStack() as stack:

        def bench(problem: Problem, device: Device) -> Bench:
            """What it takes to be ready is not the search's time: it is recorded, but not charged to it."""
            start_s = time.monotonic()
            made = stack.enter_context(measurer(problem, device))
            session = {"session": len(folder.sessions())}
            folder.store.put("ready", session, {}, cost_s=time.monotonic() - start_s)
            return made

        run = prepare(folder, watcher, bench, pool)
        outcome = run.go()
    search = run.search
    kernel = None
    if outcome.champion is not None and outcome.proof is not None:
        kernel = write_champion(
            folder.path, outcome.champion, outcome.proof, run.problem, search.brief.language
        )
    return Finished(run, outcome, kernel, _leave(run, outcome, pool))


def _leave(run: Run, outcome: Outcome, pool: Pool | None) -> str:
    """A pool that cannot be written costs nobody the champion."""
    if pool is None:
        return ""
    try:
        bequeath(
            pool,
            str(run.folder.path.resolve()),
            run.problem,
            run.placement,
            run.search.cell,
            run.heritage,
            run.search.trials(),
            outcome.records[0] if outcome.records else None,
            outcome.champion,
            outcome.proof,
        )
    except UsageError as error:
        return str(error)
    return ""
