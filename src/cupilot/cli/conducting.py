"""Conducts a run with the live display, then prints the result and writes the report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cupilot.budget import Budget
from cupilot.cli.report import verify_command, write_report
from cupilot.evaluate.result import Evaluation, Interval
from cupilot.evolve.conduct import Finished, conduct
from cupilot.evolve.ending import Ending, ending_of
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.loop import INTERRUPTED, Watcher, strategy_words
from cupilot.pool import Pool, default_path
from cupilot.problem.problem import Problem
from cupilot.report.live import LiveDisplay
from cupilot.units import seconds

EXIT = {
    Ending.FASTER: 0,
    Ending.REFERENCE_WINS: 1,
    Ending.UNPROVEN: 3,
    Ending.NOTHING_PASSED: 3,
}
_LOOK = {
    Ending.FASTER: "bold green",
    Ending.REFERENCE_WINS: "bold yellow",
    Ending.UNPROVEN: "bold yellow",
    Ending.NOTHING_PASSED: "bold red",
}


def conduct_shown(folder: RunFolder, console: Console) -> int:
    with ExitStack() as stack:

        def watcher(problem: Problem, budget: Budget) -> Watcher:
            return stack.enter_context(LiveDisplay(console, problem.name, budget))

        try:
            with closing(Pool(default_path())) as pool:
                finished = conduct(folder, pool, watcher)
        except KeyboardInterrupt:
            stack.close()
            if not folder.is_idle():
                console.print(f"stopped at once; go on with: cupilot resume {folder.path}", soft_wrap=True)
            raise
    console.print(summary(finished, write_report(folder.path)), soft_wrap=False)
    return EXIT[_ending(finished)]


def _ending(finished: Finished) -> Ending:
    return ending_of(finished.outcome, finished.run.search.champion)


def summary(finished: Finished, report: Path) -> RenderableType:
    """The result first, then its proof, then what can be done next."""
    ending = _ending(finished)
    champion = finished.run.search.champion
    parts: list[RenderableType] = [Text(_headline(finished), _LOOK[ending])]
    if champion is not None:
        proof = finished.outcome.proof
        facts = _facts(finished.run.problem, proof or champion.evaluation, is_proof=proof is not None)
        facts.add_row("strategy", strategy_words(champion.strategy))
        facts.add_row("search", _search(finished))
        parts.append(Padding(facts, (1, 0)))
    parts.append(_next(finished, ending, report))
    return Group(*parts)


def _headline(finished: Finished) -> str:
    outcome, champion = finished.outcome, finished.run.search.champion
    ending = _ending(finished)
    name = finished.run.problem.name
    if ending is Ending.FASTER and outcome.proof is not None:
        return f"✔ {name}: {outcome.proof.speedup['eager'].ratio:.2f}x faster than PyTorch eager, proven"
    if ending is Ending.REFERENCE_WINS:
        return f"= {name}: the reference wins, nothing that was tried is faster"
    if ending is Ending.NOTHING_PASSED:
        return f"✘ {name}: no kernel passed; {outcome.reason}"
    if champion is None:
        return f"? {name}: nothing could be timed; {outcome.reason}"
    return f"? {name}: {champion.speedup.ratio:.2f}x over eager in the search, but not proven"


def _facts(problem: Problem, found: Evaluation, *, is_proof: bool) -> Table:
    """What is known of the best kernel; the report has it at length."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, interval in found.speedup.items():
        table.add_row(f"over {name}", _ratio(interval))
    if found.time_s is not None and found.floor_s is not None:
        left = "" if found.headroom is None else f", {found.headroom:.0%} headroom"
        table.add_row("time", f"{seconds(found.time_s)} a call, floor {seconds(found.floor_s)}{left}")
    words = "proof" if is_proof and found.passed else "checked"
    where = "in fresh processes, on fresh secret inputs" if is_proof else "in the search"
    table.add_row(words, f"{found.reason}, {where}" if found.passed else found.reason)
    if found.error is not None:
        table.add_row("worst error", f"{found.error.ratio:.2g} of what rounding allows")
    for note in found.notes:
        table.add_row("note", note)
    described = {case.name: str(case) for case in problem.targets}
    for name, at in found.targets.items():
        ratio = f"{at.speedup['eager'].ratio:.2f}x over eager" if "eager" in at.speedup else ""
        table.add_row("at", f"{described.get(name, name)}  {ratio}  {_point(at.tuned)}")
    if found.tuned and not found.targets:
        table.add_row("tuned", _point(found.tuned))
    return table


def _point(tuned: Mapping[str, int]) -> str:
    return "  ".join(f"{name}={value}" for name, value in tuned.items())


def _ratio(interval: Interval) -> Text:
    return Text.assemble(
        (f"{interval.ratio:.2f}x", "bold"), (f"  [{interval.low:.2f}, {interval.high:.2f}]", "dim")
    )


def _search(finished: Finished) -> str:
    outcome = finished.outcome
    passed = sum(c.passed for c in outcome.records)
    return (
        f"{len(outcome.records)} candidates, {passed} passed, {outcome.spent.time_s:.0f} s; {outcome.reason}"
    )


def _next(finished: Finished, ending: Ending, report: Path) -> Table:
    """One command a line."""
    run, folder = finished.run, finished.run.folder.path
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if finished.kernel is not None:
        table.add_row("kernel", str(finished.kernel))
        table.add_row("verify again", verify_command(run, finished.outcome))
        table.add_row("use it", f"cupilot export {folder}")
        table.add_row("understand it", f"cupilot explain {folder}")
    elif ending is Ending.UNPROVEN:
        table.add_row("prove it", f"cupilot resume {folder}    (when the machine is quiet)")
    elif ending is Ending.REFERENCE_WINS and finished.outcome.reason != INTERRUPTED:
        table.add_row("search longer", f"cupilot resume {folder} --budget 10min")
    if finished.outcome.reason == INTERRUPTED and ending is not Ending.UNPROVEN:
        table.add_row("go on", f"cupilot resume {folder}")
    table.add_row("report", str(report))
    if finished.complaint:
        table.add_row("not kept", Text(finished.complaint, "yellow"))
    return table
