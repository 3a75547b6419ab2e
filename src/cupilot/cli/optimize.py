"""`cupilot optimize` and `cupilot resume`: evolve a kernel in a run folder, with a live display."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from cupilot.budget import parse_budget
from cupilot.device.registry import require_clock
from cupilot.errors import UsageError
from cupilot.evolve.folder import RUNS, Asked, RunFolder, find, fresh_path
from cupilot.problem.locating import locate


def run(asked: Asked, name: str | None) -> int:
    """Start a run in a new folder, which exists before anything slow begins."""
    _check(asked)
    path = RUNS / _checked(name) if name else fresh_path(asked.problem)
    with RunFolder.create(path, asked) as folder:
        return _conduct(folder)


def resume(given: Path, budget: str | None) -> int:
    """Go on with a run; `budget` replaces what it may spend in all."""
    path = find(given)
    with RunFolder.open(path, exclusive=True) as folder:
        if budget is not None:
            parse_budget(budget)
            folder.ask_again(replace(folder.asked, budget=budget))
        return _conduct(folder)


def _check(asked: Asked) -> None:
    """What can be found wrong before a folder is made."""
    parse_budget(asked.budget)
    require_clock(asked.device)
    if asked.problem.startswith("suite:"):
        locate(asked.problem)
    elif not Path(asked.problem).is_file():
        inside = Path(asked.problem) / "problem.py"
        hint = f"did you mean {inside}?" if inside.is_file() else "give a Python file, or suite:softmax"
        raise UsageError(f"no problem file {asked.problem}", hint=hint)


def _checked(name: str) -> str:
    if ".." in Path(name).parts:
        raise UsageError(f"--name {name} leads out of {RUNS}/", hint="give a plain name, or a whole path")
    return name


def _conduct(folder: RunFolder) -> int:
    console = Console(highlight=False)
    console.print(f"[dim]run[/] {folder.path}", soft_wrap=True)
    with console.status("starting"):
        # Heavy: torch alone takes seconds. The folder stands already.
        from cupilot.cli.conducting import conduct_shown
    return conduct_shown(folder, console)


def absolute(problem: str) -> str:
    return problem if problem.startswith("suite:") else str(Path(problem).expanduser().resolve())
