"""cuPilot from Python: `cupilot.optimize(function, inputs)` and `cupilot.evaluate(problem, kernel)`.

A problem is a file, a member of the suite, or a function (or module) with a list of its arguments. The calls
do what the commands do, in the same run folders.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cupilot.budget import Budget
from cupilot.device.registry import open_device, require_clock
from cupilot.errors import UsageError
from cupilot.evaluate.pipeline import evaluate as evaluate_text
from cupilot.evaluate.result import Evaluation
from cupilot.evolve.conduct import conduct
from cupilot.evolve.folder import RUNS, Asked, RunFolder, fresh_path
from cupilot.evolve.loop import Watcher
from cupilot.evolve.watching import Silent
from cupilot.pool import Pool, default_path
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.problem.saving import save_problem

Target = str | Path | Callable[..., Any]


@dataclass(frozen=True)
class Result:
    """What a run came to. `kernel` is None where nothing beat the reference, and `proof` says why."""

    run: Path
    kernel: Path | None
    proof: Evaluation | None
    reason: str  # why the search ended

    @property
    def speedup(self) -> float:
        """Over eager; 1 where the reference wins."""
        if self.kernel is None or self.proof is None:
            return 1.0
        return self.proof.speedup["eager"].ratio


def optimize(
    problem: Target,
    inputs: Sequence[Any] | None = None,
    *,
    budget: str = "3min",
    name: str | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> Result:
    """Evolve a faster kernel and prove it.

    Options: size, device, policy, model, seed, epochs, generations, population, patience, roofline, pool,
    hold_out; they mean what they mean to `cupilot optimize`.
    """
    label = name or (None if isinstance(problem, str | Path) else getattr(problem, "__name__", None))
    path = RUNS / name if name else fresh_path(label or str(problem))
    where = _problem_file(problem, inputs, path)
    try:
        asked = Asked(problem=where, budget=budget, ahead=options.get("model") is not None, **options)
    except TypeError as error:
        raise UsageError(f"optimize: {error}", hint="for the options see help(cupilot.optimize)") from None
    require_clock(asked.device)

    def onlooker(problem: Problem, budget: Budget) -> Watcher:
        return watcher or Silent()

    with RunFolder.create(path, asked) as folder, closing(Pool(default_path())) as pool:
        finished = conduct(folder, pool, onlooker)
    outcome = finished.outcome
    return Result(path, finished.kernel, outcome.proof, outcome.reason)


def evaluate(
    problem: Target, kernel: str | Path, inputs: Sequence[Any] | None = None, *, device: str = "cpu"
) -> Evaluation:
    """Is this kernel (a file, or its text) right, and how fast? Times on one thread, like `cupilot eval`."""
    text = Path(kernel).read_text(encoding="utf-8") if isinstance(kernel, Path) else kernel
    if "\n" not in text:
        text = Path(text).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(_problem_file(problem, inputs, Path(folder)))
        return evaluate_text(loaded, text, open_device(device))


def _problem_file(problem: Target, inputs: Sequence[Any] | None, folder: Path) -> str:
    if isinstance(problem, str | Path):
        is_member = str(problem).startswith("suite:")
        return str(problem) if is_member else str(Path(problem).expanduser().resolve())
    if inputs is None:
        raise UsageError("optimize needs the function's arguments", hint="cupilot.optimize(function, [x, y])")
    return str(save_problem(problem, inputs, folder.resolve()))
