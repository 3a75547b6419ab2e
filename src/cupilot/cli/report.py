"""`cupilot report RUN`: writes report.html from what the run's table holds, finished or not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from cupilot.errors import UsageError
from cupilot.evolve.answers import code_hash
from cupilot.evolve.loop import Outcome
from cupilot.evolve.run import Replay, Run, replay
from cupilot.report.page import page
from cupilot.report.view import Circumstances, view_of


def run(given: Path, out: Path | None) -> int:
    Console(highlight=False).print(f"report  {write_report(given, out)}", soft_wrap=True)
    return 0


def write_report(given: Path, out: Path | None = None) -> Path:
    """The run's table is only read, so a run may be looked at while it goes on."""
    replayed = replay(given)
    path = out or replayed.run.folder.path / "report.html"
    text = page(view_of(replayed.run.search, replayed.outcome, _circumstances(replayed)))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="choose another place with --out"
        ) from error
    return path


def _circumstances(replayed: Replay) -> Circumstances:
    run = replayed.run
    first, last = replayed.sessions[0], replayed.sessions[-1]
    return Circumstances(
        command=first.command,
        verify_command=verify_command(run, replayed.outcome),
        policy=run.asked.policy,
        machine=last.machine,
        versions=last.versions,
        placement=run.placement,
        started=datetime.fromtimestamp(first.started_at, UTC),
        elapsed_s=replayed.outcome.spent.time_s,
        finished_s=replayed.finished_s,
        seeds=run.heritage.matches,
    )


def verify_command(run: Run, outcome: Outcome) -> str:
    """Of the champion's file, or of the best kernel's where nothing was shipped."""
    language = run.search.brief.language
    kernel = run.folder.path / "champion" / f"{run.problem.name}.{language}"
    if outcome.champion is None and run.search.champion is not None:
        kernel = run.folder.path / "kernels" / f"{code_hash(run.search.champion.kernel)}.{language}"
    where = "" if run.asked.device == "cpu" else f" --device {run.asked.device}"
    size = "" if run.asked.size is None else f" --size {run.asked.size}"
    problem = run.asked.problem
    if not problem.startswith("suite:"):
        problem = str(near(Path(problem)))
    return f"cupilot eval {problem} {near(kernel)}{where}{size}"


def near(path: Path) -> Path:
    """From the working directory where it lies below it, otherwise from the root."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
