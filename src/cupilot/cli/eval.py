"""`cupilot eval`: one kernel, one verdict, as a page for people or one line of JSON."""

from __future__ import annotations

import json as json_module
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cupilot.cli.counts import counts
from cupilot.cli.units import seconds
from cupilot.device.base import Device
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.evaluate.advice import action_words
from cupilot.evaluate.effort import FULL, QUICK
from cupilot.evaluate.pipeline import Options, evaluate
from cupilot.evaluate.result import Evaluation, Verdict, to_json
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem

EXIT = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 3}
_LOOK = {
    Verdict.PASSED: ("✔ passed", "bold green"),
    Verdict.FAILED: ("✘ failed", "bold red"),
    Verdict.UNDECIDED: ("? undecided", "bold yellow"),
}
_LOG_LINES = 12


def run(
    problem: str,
    kernel: Path,
    text: str,
    device: Device,
    *,
    size: str | None,
    threads: int,
    quick: bool,
    json: bool,
) -> int:
    """`text` is what the kernel file holds."""
    loaded = load(problem, size)
    options = Options(threads=threads, effort=QUICK if quick else FULL)
    if json:
        evaluation = evaluate(loaded, text, device, options)
        print(json_module.dumps(to_json(evaluation)))
        return EXIT[evaluation.verdict]
    console = Console(highlight=False)
    progress = Console(stderr=True, highlight=False)
    with progress.status("reading the problem") as status:
        evaluation = evaluate(loaded, text, device, options, progress=lambda what: status.update(what))
    console.print(page(loaded, str(kernel), _where(device, threads), evaluation))
    return EXIT[evaluation.verdict]


def _where(device: Device, threads: int) -> str:
    if isinstance(device, CudaEmulated):
        return f"{device.name}, {device.arch}"
    return f"{device.name}, {threads} thread{'s' * (threads > 1)}"


def page(problem: Problem, kernel: str, device: str, evaluation: Evaluation) -> RenderableType:
    """Everything the evaluation says, most important first."""
    word, style = _LOOK[evaluation.verdict]
    head = Text.assemble((problem.name, "bold"), "  ", (kernel, ""), "  ", (device, "dim"))
    verdict = Text.assemble((word, style), "  ", evaluation.reason)
    parts: list[RenderableType] = [head, Padding(verdict, (1, 0, 1, 0))]
    if evaluation.log and evaluation.verdict is not Verdict.PASSED:
        parts.append(Padding(_log(evaluation.log), (0, 0, 1, 2)))
    parts.append(_facts(problem, evaluation))
    counted = counts(evaluation.facts)
    if counted is not None:
        parts.append(Padding(counted, (1, 0, 0, 0)))
    if evaluation.advice:
        parts.append(Padding(_advice(evaluation), (1, 0, 0, 0)))
    return Group(*parts)


def _facts(problem: Problem, evaluation: Evaluation) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, interval in evaluation.speedup.items():
        table.add_row(
            f"over {name}",
            Text(f"{interval.ratio:.2f}x", "bold") + Text(_range(interval.low, interval.high), "dim"),
        )
    if evaluation.time_s is not None:
        table.add_row("time", f"{seconds(evaluation.time_s)} on one call")
    if evaluation.floor_s is not None:
        left = "" if evaluation.headroom is None else f", {evaluation.headroom:.0%} headroom"
        table.add_row("floor", f"{seconds(evaluation.floor_s)}{left} ({evaluation.zone}-bound)")
    if evaluation.tuned:
        table.add_row("tuned", "  ".join(f"{k}={v}" for k, v in evaluation.tuned.items()))
    error = evaluation.error
    if error is not None:
        where = error.output + (f"[{', '.join(map(str, error.index))}]" if error.index else "")
        table.add_row(
            "worst error",
            f"{error.ratio:.2g} of what is allowed, at {where}, input '{error.input}', {error.shape}",
        )
    if evaluation.inputs.live:
        table.add_row("inputs", ", ".join(evaluation.inputs.live))
    for name, why in evaluation.inputs.dropped.items():
        table.add_row("dropped", f"{name}: {why}")
    for name, values in evaluation.inputs.domains.items():
        table.add_row("domain", f"{name}: {values}")
    described = {case.name: str(case) for case in problem.shapes} if evaluation.shapes else {}
    for shape in evaluation.shapes:
        table.add_row("shape", described.get(shape, shape))
    for note in evaluation.notes:
        table.add_row("note", note)
    if evaluation.spent_s:
        table.add_row(
            "took", "  ".join(f"{name} {value:.1f} s" for name, value in evaluation.spent_s.items())
        )
    return table


def _range(low: float, high: float) -> str:
    return f"  [{low:.2f}, {high:.2f}]"


def _log(log: str) -> Text:
    lines = log.rstrip().splitlines()
    shown = "\n".join(lines[:_LOG_LINES])
    more = f"\n... {len(lines) - _LOG_LINES} more lines with --json" if len(lines) > _LOG_LINES else ""
    return Text(shown + more, "dim")


def _advice(evaluation: Evaluation) -> RenderableType:
    lines = [Text("what to do next", "bold")]
    for advice in evaluation.advice:
        lines.append(Text(f"  {advice['severity']}: {advice['cause']}"))
        lines += [Text(f"    {action_words(action)}", "dim") for action in advice.get("actions", ())]
    return Group(*lines)
