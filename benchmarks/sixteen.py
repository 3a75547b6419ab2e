"""Optimises sixteen problems from nothing and prints how the champions compare with torch.

    python benchmarks/sixteen.py prepare            # references and peaks, so that runs only search; any time
    python benchmarks/sixteen.py run                # the next problem that has no result; under three minutes
    python benchmarks/sixteen.py run --all          # one after the other, until every problem has one
    python benchmarks/sixteen.py table              # what is there so far

Each problem is one `cupilot optimize` at its CPU size: built-in author, no pool, seed 0, one thread. Results
are appended to a file of JSON lines, and what stands there is not run again. An undecided proof (a busy
machine) is no result: the problem's turn comes again, and its run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PROBLEMS = (
    "square_matmul",
    "matmul_transposed_b",
    "batched_matmul",
    "matvec",
    "upper_triangular_matmul",
    "diagonal_matmul",
    "gelu",
    "softmax",
    "rms_norm",
    "layer_norm",
    "argmax",
    "cumsum",
    "max_pool_2d",
    "average_pool_2d",
    "cross_entropy_loss",
    "huber_loss",
)
DENSE = ("square_matmul", "matmul_transposed_b", "batched_matmul")
BASELINES = ("eager", "compile", "library")
GOALS = {"geomean": 4.0, "median": 2.2, "without the best two": 2.5}
BUDGET = "130s"  # of which a third at most is kept for the proof


@dataclass(frozen=True)
class Result:
    problem: str
    speedup: dict[str, float]  # by baseline; empty where the reference wins
    low: dict[str, float]
    candidates: int
    search_s: float  # without the proof
    best_after_s: float  # when the champion was found
    reason: str
    strategy: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("prepare", "run", "table"))
    parser.add_argument("--all", action="store_true", help="all problems without a result")
    parser.add_argument("--only", nargs="*", default=PROBLEMS, help="these problems")
    parser.add_argument("--out", type=Path, default=Path("runs/sixteen/results.jsonl"))
    parser.add_argument("--budget", default=BUDGET, help="of each search with its proof")
    options = parser.parse_args()
    if options.action == "prepare":
        for name in options.only:
            prepare(name)
    elif options.action == "run":
        done = {result.problem for result in results(options.out)}
        waiting = [name for name in options.only if name not in done]
        for name in waiting if options.all else waiting[:1]:
            run(name, options.out, options.budget)
    else:
        print(table(results(options.out)))


def prepare(name: str) -> None:
    from cupilot.device.peaks import cpu_peaks
    from cupilot.evaluate.preparation import prepare as prepare_suite
    from cupilot.evaluate.reference_cache import ReferenceCache
    from cupilot.problem.loading import load

    cpu_peaks()
    prepare_suite(load(f"suite:{name}"), ReferenceCache())
    print(f"{name} is ready")


def run(name: str, out: Path, budget: str = BUDGET) -> None:
    folder = out.parent / name
    start = [f"suite:{name}", "--no-pool", "--seed", "0", "--budget", budget]
    start += ["--name", str(folder.resolve())]
    command = ["resume", str(folder)] if (folder / "run.db").exists() else ["optimize", *start]
    program = [sys.executable, "-c", "from cupilot.cli.main import main; main()"]
    subprocess.run([*program, *command], check=False)
    result = read(folder, name)
    if result is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def read(folder: Path, name: str) -> Result | None:
    """None where the proof is missing or undecided."""
    from cupilot.evaluate.result import Verdict
    from cupilot.evolve.loop import strategy_words
    from cupilot.evolve.run import replay

    replayed = replay(folder)
    outcome, champion = replayed.outcome, replayed.run.search.champion
    declined = not outcome.records
    if not declined and (outcome.proof is None or outcome.proof.verdict is Verdict.UNDECIDED):
        return None
    proven = outcome.proof.speedup if outcome.champion is not None and outcome.proof is not None else {}
    searched = replayed.finished_s
    return Result(
        name,
        {key: interval.ratio for key, interval in proven.items()},
        {key: interval.low for key, interval in proven.items()},
        len(outcome.records),
        max(searched.values(), default=0.0),
        searched[champion.slot] if champion is not None else 0.0,
        outcome.reason,
        strategy_words(champion.strategy) if champion is not None else "",
    )


def results(out: Path) -> list[Result]:
    if not out.exists():
        return []
    found = {r.problem: r for r in (Result(**json.loads(line)) for line in out.read_text().splitlines())}
    return [found[name] for name in PROBLEMS if name in found]


def table(found: Sequence[Result]) -> str:
    lines = [
        "| problem | eager | compile | library | candidates | found after s | strategy |",
        "|---" * 7 + "|",
    ]
    for result in found:
        cells = [f"{result.speedup[b]:.2f}" if b in result.speedup else "-" for b in BASELINES]
        words = result.strategy if result.speedup else f"the reference wins: {result.reason}"
        lines.append(
            f"| {result.problem} | {' | '.join(cells)} | {result.candidates} | "
            f"{result.best_after_s:.0f} | {words} |"
        )
    lines += ["", f"{len(found)} of {len(PROBLEMS)} problems. Where the reference wins it is shipped: 1.00."]
    for baseline in BASELINES:
        ratios = sorted(
            r.speedup.get(baseline, 1.0) for r in found if baseline in r.speedup or baseline == "eager"
        )
        if ratios:
            lines.append(f"over {baseline} ({len(ratios)}): {_summary(ratios, baseline)}")
    dense = [r.speedup["library"] for r in found if r.problem in DENSE and "library" in r.speedup]
    if dense:
        lines.append(
            f"dense products over the library ({len(dense)}): geomean {_geomean(dense):.2f} (goal 1.0)"
        )
    if found:
        lines.append(f"champion found after: median {statistics.median(r.best_after_s for r in found):.0f} s")
        slower = [r.problem for r in found if r.low.get("eager", 1.0) < 1]
        lines.append(f"slower than the reference and shipped: {', '.join(slower) or 'none'}")
    return "\n".join(lines)


def _summary(ratios: Sequence[float], baseline: str) -> str:
    figures = {"geomean": _geomean(ratios), "median": statistics.median(ratios)}
    if len(ratios) > 2:
        figures["without the best two"] = _geomean(ratios[:-2])
    goal = GOALS if baseline == "eager" else {}
    return ", ".join(
        f"{name} {value:.2f}" + (f" (goal {goal[name]})" if name in goal else "")
        for name, value in figures.items()
    )


def _geomean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


if __name__ == "__main__":
    main()
