"""Conducts a run with the live display, then prints the result and writes the report."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cupilot.budget import Budget
from cupilot.cli.eval import page as verdict_page
from cupilot.cli.report import write_report
from cupilot.evaluate.result import Verdict
from cupilot.evolve.conduct import Finished, conduct
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.loop import Watcher, strategy_words
from cupilot.pool import Pool, default_path
from cupilot.problem.problem import Problem
from cupilot.report.live import LiveDisplay

FASTER, REFERENCE_WINS, UNPROVEN = 0, 1, 3


def conduct_shown(folder: RunFolder, console: Console) -> int:
    with ExitStack() as stack:

        def watcher(problem: Problem, budget: Budget) -> Watcher:
            return stack.enter_context(LiveDisplay(console, problem.name, budget))

        with closing(Pool(default_path())) as pool:
            finished = conduct(folder, pool, watcher)
    console.print(summary(finished, write_report(folder.path)))
    return exit_code(finished)


def exit_code(finished: Finished) -> int:
    if finished.kernel is not None:
        return FASTER
    proof = finished.outcome.proof
    return UNPROVEN if proof is None or proof.verdict is Verdict.UNDECIDED else REFERENCE_WINS


def summary(finished: Finished, report: Path) -> RenderableType:
    outcome, folder = finished.outcome, finished.run.folder.path
    champion = finished.run.search.champion
    parts: list[RenderableType] = [_headline(finished)]
    if champion is not None:
        parts.append(Text.assemble(("strategy  ", "dim"), strategy_words(champion.strategy)))
    if outcome.proof is not None and champion is not None:
        kernel, device = str(finished.kernel or "the best kernel"), finished.run.asked.device
        parts.append(Padding(verdict_page(finished.run.problem, kernel, device, outcome.proof), (1, 0)))
    passed, spent_s = sum(c.passed for c in outcome.records), outcome.spent.time_s
    words = f"{len(outcome.records)} candidates, {passed} passed, {spent_s:.0f} s; {outcome.reason}"
    parts.append(Text(words, "dim"))
    if finished.kernel is not None:
        parts.append(Text(f"verify again   cupilot eval {finished.run.asked.problem} {finished.kernel}"))
        parts.append(Text(f"use it         cupilot export {folder}"))
    parts.append(Text(f"report         {report}"))
    return Group(*parts)


def _headline(finished: Finished) -> Text:
    outcome = finished.outcome
    if finished.kernel is not None and outcome.proof is not None:
        eager = outcome.proof.speedup["eager"]
        return Text(f"✔ {eager} over eager, proven", "bold green")
    proof = outcome.proof
    if proof is None:
        return Text(f"? no proven kernel: {outcome.reason}", "bold yellow")
    if proof.verdict is Verdict.UNDECIDED:
        return Text(f"? undecided: {proof.reason}", "bold yellow")
    return Text("the reference wins: nothing that was tried is faster", "bold yellow")
