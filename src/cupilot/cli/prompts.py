"""`cupilot prompts`: what a role is told, exactly as it is sent, for a problem or out of a recorded run.

A kernel that a prompt needs is evaluated first: its complaint, or its figures, are what a run would send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cupilot.agents import roles
from cupilot.agents.roles import ROLES, Task
from cupilot.agents.templates import shipped_prompts
from cupilot.brief import Brief, Complaint, Parent
from cupilot.cli.checks import read_kernel
from cupilot.device.base import Device
from cupilot.device.registry import open_device
from cupilot.errors import UsageError
from cupilot.evaluate.effort import QUICK
from cupilot.evaluate.pipeline import Options, evaluate
from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.standing import placed
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.lm.replay import KIND
from cupilot.problem.loading import load
from cupilot.strategy.strategy import Strategy, TacticUse, check
from cupilot.strategy.tactics import Cookbook, load_cookbook


@dataclass(frozen=True)
class Wanted:
    role: str
    problem: str | None
    run: Path | None
    kernels: tuple[Path, ...]
    strategies: tuple[str, ...]
    device: str
    size: str | None
    roofline: bool


def run(wanted: Wanted) -> int:
    if wanted.role not in ROLES:
        known = "\n".join(f"    {role.name}: {role.does}" for role in ROLES.values())
        raise UsageError(f"there is no role {wanted.role!r}", hint=f"roles:\n{known}")
    if (wanted.run is None) == (wanted.problem is None):
        raise UsageError("whose prompt?", hint="give --problem FILE, or --run RUN for a recorded run")
    texts = _recorded(wanted.role, wanted.run) if wanted.run else [_built(wanted)]
    print("\n".join(texts))
    return 0


def _recorded(role: str, path: Path) -> list[str]:
    """Every question that the run asked in this role, with its answer."""
    with RunFolder.open(path, exclusive=False) as folder:
        rows = [row for row in folder.store.rows(KIND) if row.request["role"] == role]
        asked = sorted({str(row.request["role"]) for row in folder.store.rows(KIND)})
    if not rows:
        hint = f"it asked: {', '.join(asked)}" if asked else "it had no language model"
        raise UsageError(f"the run never asked the {role}", hint=hint)
    shown = []
    for row in rows:
        turns = [(turn["speaker"], turn["text"]) for turn in row.request["turns"]]
        answer = row.answer.get("text", row.answer.get("failed", ""))
        shown.append(_page([("system", row.request["system"]), *turns, ("answer", str(answer))]))
    return shown


def _built(wanted: Wanted) -> str:
    problem = load(str(wanted.problem), wanted.size)
    device = open_device(wanted.device)
    cookbook = load_cookbook().written_in(device.language)
    place = placed(problem, wanted.device) if wanted.roofline else None
    brief = Brief(problem, wanted.device, device.language, cookbook, place)
    request = roles.request(_task(wanted, brief, device), brief, shipped_prompts())
    parts = [("system", request.system), *((turn.speaker, turn.text) for turn in request.turns)]
    form = "text" if request.schema is None else json.dumps(request.schema.body)
    parts.append((f"answer, at most {request.max_tokens} tokens", form))
    return _page(parts)


def _page(parts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"===== {name} =====\n{text.rstrip()}\n" for name, text in parts)


def _task(wanted: Wanted, brief: Brief, device: Device) -> Task:
    strategies = [read_strategy(text, brief.cookbook) for text in wanted.strategies]
    kernels = iter(wanted.kernels)
    match wanted.role:
        case "generator":
            return roles.generate(brief)
        case "manager-plan":
            return roles.plan(brief, 0)
        case "translator-align":
            return roles.align(brief, _one(strategies), parse_kernel(read_kernel(_next(kernels))))
        case "translator":
            return roles.translate(brief, _one(strategies), _passed(brief, device, kernels, Strategy()))
        case "revisor-performance":
            return roles.refine(brief, _passed(brief, device, kernels, _first(strategies)))
        case "manager-cross" | "code-crossover":
            a, b = (*strategies, Strategy(), Strategy())[:2]
            pair = (_passed(brief, device, kernels, a), _passed(brief, device, kernels, b))
            make = roles.cross if wanted.role == "manager-cross" else roles.merge
            return make(brief, pair, 0)
    kernel, evaluation = _evaluated(brief, device, _next(kernels))
    if evaluation.verdict is not Verdict.FAILED:
        raise UsageError(f"the kernel is not wrong ({evaluation.verdict})", hint="give one that fails")
    complaint = Complaint(evaluation.stage, evaluation.reason, evaluation.log)
    task = roles.repair(brief, _first(strategies), kernel, complaint)
    if task.role.name != wanted.role:
        raise UsageError(
            f"the kernel fails at {evaluation.stage}: that is for the {task.role.name}",
            hint=f"ask for it: cupilot prompts {task.role.name} ...",
        )
    return task


def _passed(brief: Brief, device: Device, paths: Iterator[Path], strategy: Strategy) -> Parent:
    path = _next(paths)
    kernel, found = _evaluated(brief, device, path)
    if "eager" not in found.speedup:
        raise UsageError(
            f"{path} has no figures to show: {found.verdict} at {found.stage}, {found.reason}",
            hint="give a kernel that passes `cupilot eval`",
        )
    return Parent(strategy, kernel, found.speedup["eager"].ratio, found.time_s, found.advice)


def _evaluated(brief: Brief, device: Device, path: Path) -> tuple[KernelFile, Evaluation]:
    text = read_kernel(path)
    with Console(stderr=True, highlight=False).status(f"evaluating {path}"):
        return parse_kernel(text), evaluate(brief.problem, text, device, Options(effort=QUICK))


def _next(paths: Iterator[Path]) -> Path:
    found = next(paths, None)
    if found is None:
        raise UsageError("this role is shown a kernel", hint="give --kernel FILE (twice for a crossover)")
    return found


def _first(strategies: Sequence[Strategy]) -> Strategy:
    return strategies[0] if strategies else Strategy()


def _one(strategies: Sequence[Strategy]) -> Strategy:
    if not strategies:
        raise UsageError("this role is shown a strategy", hint='give --strategy "vectorize; a step in words"')
    return strategies[0]


def read_strategy(text: str, cookbook: Cookbook) -> Strategy:
    """`vectorize; tile(size=8); anything else is a step in words`."""
    uses, steps = [], []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, inside = part.rstrip(")").partition("(")
        if name.strip() not in cookbook:
            steps.append(part)
            continue
        given = dict(pair.split("=", 1) for pair in inside.replace(" ", "").split(",") if "=" in pair)
        known = {p.name: {str(v): v for v in p.values} for p in cookbook[name.strip()].parameters}
        values = {key: known.get(key, {}).get(value, value) for key, value in given.items()}
        uses.append(TacticUse.of(name.strip(), **values))
    strategy = Strategy(tuple(sorted(uses)), tuple(steps))
    check(strategy, cookbook)
    return strategy
