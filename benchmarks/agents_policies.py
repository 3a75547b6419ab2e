"""Search policies with a language model at equal budgets: evolution of strategies, evolution of code,
independent plans; with the roofline's digest and without.

    python benchmarks/agents_policies.py command ARM PROBLEM --out FOLDER    # the exact command of an arm
    python benchmarks/agents_policies.py table RUN...                        # the table, from finished runs

PROBLEM is one of benchmarks/problems; the model answers through a mailbox beside the run. Every arm has one
plain kernel and six candidates, each with at most two repairs and one refinement, the same seed, and no pool;
evaluations limit it and not time, so that nobody's slowness counts.

A champion is proven again, on a quiet machine, with
`cupilot eval PROBLEM RUN/champion/KERNEL --json >> RUN/again.jsonl`; the last line counts.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cupilot.agents.author import ModelAuthor
from cupilot.evaluate.result import Evaluation, Interval, from_json
from cupilot.evolve.candidate import BASELINE
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.loop import Settings
from cupilot.evolve.retention import Retention, retentions
from cupilot.evolve.run import Replay, replay
from cupilot.lm.replay import KIND
from cupilot.store import Row

PROBLEMS = Path(__file__).parent / "problems"
GENERATIONS, POPULATION, SEED = 2, 3, 0
AGAIN = "again.jsonl"


@dataclass(frozen=True)
class Arm:
    policy: str
    roofline: bool = True

    @property
    def name(self) -> str:
        return self.policy if self.roofline else f"{self.policy}-no-roofline"


ARMS = {
    arm.name: arm
    for arm in (
        Arm("sce"),
        Arm("code-crossover"),
        Arm("best-of-n"),
        Arm("sce", roofline=False),
        Arm("best-of-n", roofline=False),
    )
}


@dataclass(frozen=True)
class Told:
    """A finished run: what its table tells, and the questions that led to it with their answers."""

    found: Replay
    rows: tuple[Row, ...]
    again: Evaluation | None

    @property
    def problem(self) -> str:
        return self.found.run.problem.name

    @property
    def arm(self) -> str:
        asked = self.found.run.asked
        return Arm(asked.policy, asked.roofline).name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    shown = actions.add_parser("command")
    shown.add_argument("arm", choices=ARMS)
    shown.add_argument("problem", choices=sorted(path.stem for path in PROBLEMS.glob("*.py")))
    shown.add_argument("--out", type=Path, required=True, help="for run folders and mailboxes")
    shown.add_argument("--cupilot", default="cupilot", help="the program, where it is not on the path")
    table = actions.add_parser("table")
    table.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    if options.action == "command":
        print(command(ARMS[options.arm], options.problem, options.out, options.cupilot))
    else:
        print(page([told(path) for path in options.runs]))


def command(arm: Arm, problem: str, out: Path, program: str = "cupilot") -> str:
    name = f"{arm.name}-{problem}"
    settings = Settings()
    tries = 1 + settings.repairs
    candidates = GENERATIONS * POPULATION
    most = tries + candidates * (tries + settings.refinements)
    words: list[object] = [program, "optimize", PROBLEMS / f"{problem}.py"]
    words += ["--model", f"mailbox:{out / f'mail-{name}'}", "--name", out / name]
    words += ["--policy", arm.policy, *([] if arm.roofline else ["--no-roofline"]), "--no-pool"]
    words += ["--seed", SEED, "--budget", f"{most}evals"]
    words += ["--epochs", 1, "--generations", GENERATIONS, "--population", POPULATION]
    return shlex.join(map(str, words))


def told(path: Path) -> Told:
    found = replay(path)
    author = found.run.search.author
    assert isinstance(author, ModelAuthor), f"{path} is a run without a model"
    with RunFolder.open(path, exclusive=False) as folder:
        rows = tuple(row for row in folder.store.rows(KIND) if row.hash in author.charged)
    return Told(found, rows, _proven_again(path / AGAIN))


def _proven_again(path: Path) -> Evaluation | None:
    lines = path.read_text().splitlines() if path.is_file() else []
    return from_json(json.loads(lines[-1])) if lines else None


RESULTS = ("problem", "arm", "candidates", "right at once", "right", "best while searching", "its proof",
           "proven again", "ended")  # fmt: skip
COSTS = ("problem", "arm", "evaluations", "questions", "corrections", "tokens in", "tokens out",
         "children of two", "tactics kept", "kept all")  # fmt: skip


def page(runs: Iterable[Told]) -> str:
    """One row a run: by problem, then in the order of the arms."""
    order = list(ARMS)
    runs = sorted(runs, key=lambda run: (run.problem, order.index(run.arm)))
    return "\n\n".join((_table(RESULTS, map(_results, runs)), _table(COSTS, map(_costs, runs)), means(runs)))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def _results(run: Told) -> list[str]:
    outcome = run.found.outcome
    return [
        run.problem,
        run.arm,
        str(len(outcome.records)),
        str(sum(c.passed and not c.repairs for c in outcome.records)),
        str(sum(c.passed for c in outcome.records)),
        _speed(best(run)),
        _verdict(outcome.proof),
        _verdict(run.again),
        outcome.reason,
    ]


def _costs(run: Told) -> list[str]:
    brief, outcome = run.found.run.search.brief, run.found.outcome
    kept = [r for _, r in retentions(outcome.records, brief.cookbook, brief.language) if r.of]
    total = sum(kept, Retention(0, 0))
    answered = [row.answer for row in run.rows if "text" in row.answer]
    came, went = (sum(answer[f"tokens_{way}"] for answer in answered) for way in ("in", "out"))
    return [
        run.problem,
        run.arm,
        f"{outcome.spent.evaluations:.0f}",
        str(len(answered)),
        str(sum(len(row.request["turns"]) > 1 for row in run.rows)),
        str(came),
        str(went),
        str(sum(len(c.parents) == 2 for c in outcome.records)),
        f"{total.kept} of {total.of}",
        f"{sum(r.whole for r in kept)} of {len(kept)}",
    ]


def best(run: Told) -> Interval | None:
    """Of all that passed, as it was read while searching."""
    speeds = [c.speedup for c in run.found.outcome.records if c.passed]
    return max(speeds, key=lambda speed: speed.ratio, default=None)


def _speed(speed: Interval | None) -> str:
    return "none" if speed is None else str(speed)


def _verdict(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "none"
    return _speed(evaluation.speedup.get(BASELINE)) if evaluation.passed else str(evaluation.verdict)


def means(runs: Iterable[Told]) -> str:
    """Geometric, of each arm over the problems, for what they are worth: one run each."""
    lines = []
    for arm in ARMS:
        speeds = [best(run) for run in runs if run.arm == arm]
        if ratios := [speed.ratio for speed in speeds if speed is not None]:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines.append(
                f"- {arm}: {mean:.2f}x, best while searching, over {len(ratios)} of {len(speeds)} runs"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
