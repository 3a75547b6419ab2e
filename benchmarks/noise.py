"""How far the ratio over eager wanders when everything is done again, on a quiet machine and beside a hog.

    python benchmarks/noise.py run                # what is missing of 10 evaluations of each of 5 kernels
    python benchmarks/noise.py run --load hog     # the same kernels while another process walks memory
    python benchmarks/noise.py table

A call stops after two minutes, the next one goes on. An evaluation is the timing of a full `cupilot eval` in
new processes: settings, gates and null pair are the same; `torch.compile` and the library take no part, and
evaluations of one call share the process that loads torch, from which each group's baselines are forked anew.
The kernels are `examples/*/fast.cpp` at the first point of their tunables. One thing is switched off: where
eager against eager strays too far an evaluation is undecided; here it counts as such and keeps its figures.
The turn of an undecided evaluation comes again, until ten are decided; the table says of how many.

The long-run value an interval must cover is the geometric mean of the *other* evaluations of its kernel. For
eager against eager it is 1.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cupilot.device.cpu import Cpu
from cupilot.evaluate.baseline import BaselineKind
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import build
from cupilot.evaluate.effort import FULL
from cupilot.evaluate.quiet import STRICT
from cupilot.evaluate.timing import Timed, time_at
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.types import Failed
from slices import Piece, Record, go_on, records

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = ("softmax", "gelu", "matmul", "cumsum", "max_pool")
RUNS = {"quiet": 10, "hog": 2}
EFFORT = replace(FULL, baselines=(BaselineKind.EAGER,), all_threads=False)
GATE = replace(STRICT, null=math.inf)
GOAL_SD, GOAL_NULL, GOAL_COVERED = 0.015, 0.02, 0.9
# Copies 256 MB to and fro for ever.
HOG = "import numpy as n; a, b = n.ones(1 << 25), n.ones(1 << 25)\nwhile 1: n.copyto(a, b); n.copyto(b, a)"


def pieces(load_name: str) -> list[Piece]:
    return [
        {"load": load_name, "kernel": kernel, "run": run}
        for run in range(RUNS[load_name])
        for kernel in KERNELS
    ]


@contextlib.contextmanager
def beside(load_name: str) -> Iterator[None]:
    """A race claims the highest core, so the hog gets the lowest one."""
    if load_name == "quiet":
        yield
        return
    hog = subprocess.Popen([sys.executable, "-c", HOG], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        os.sched_setaffinity(hog.pid, {min(os.sched_getaffinity(0))})
        time.sleep(1.0)
        yield
    finally:
        hog.kill()
        hog.wait()


@cache
def bench(kernel: str) -> Bench:
    """One for each kernel and call of this program."""
    found = Bench(load(str(EXAMPLES / kernel / "problem.py"), None), Cpu(), gate=GATE)
    atexit.register(found.close)
    return found


def evaluation(piece: Piece) -> Record:
    kernel = parse_kernel((EXAMPLES / piece["kernel"] / "fast.cpp").read_text(encoding="utf-8"))
    place = bench(piece["kernel"])
    case = place.problem.targets[0]
    built = build(kernel, first_point(kernel), case.signature, place.device)
    assert not isinstance(built, Failed), built.reason
    with beside(piece["load"]):
        start_s = time.monotonic()
        found = time_at(place, built, case, EFFORT)
        took_s = round(time.monotonic() - start_s, 1)
    if not isinstance(found, Timed):
        return {"took_s": took_s, "reason": found.reason}
    null = found.race.null
    assert null is not None, "eager ran against itself"
    return {
        "took_s": took_s,
        "reason": "" if abs(null.ratio - 1) <= STRICT.null else f"eager against eager: {null.ratio:.4f}",
        "time_us": round(found.time_s * 1e6, 3),
        **{key: round(value, 5) for key, value in vars(found.speedup[BaselineKind.EAGER]).items()},
        "null": [round(value, 5) for value in vars(null).values()],
    }


# ---- the table ----
def geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def decided(found: Sequence[Record]) -> list[Record]:
    return [record for record in found if not record["reason"]]


def covered(found: Sequence[Record]) -> list[bool]:
    """Of one kernel: does each interval hold the mean of the other evaluations?"""
    return [
        each["low"] <= geomean([other["ratio"] for other in found if other is not each]) <= each["high"]
        for each in found
    ]


def quiet_lines(found: Sequence[Record]) -> Iterator[str]:
    yield "| kernel | decided | ratio | SD | range | interval ± | covered | eager/eager off 1 by at most |"
    yield "|---" * 8 + "|"
    inside: list[bool] = []
    for kernel in KERNELS:
        mine = [record for record in found if record["kernel"] == kernel]
        runs = decided(mine)
        if len(runs) < 3:
            yield f"| {kernel} | {len(runs)} of {len(mine)} |" + " - |" * 6
            continue
        ratios = [record["ratio"] for record in runs]
        hits = covered(runs)
        inside += hits
        half = geomean([math.sqrt(record["high"] / record["low"]) for record in runs]) - 1
        cells = [
            f"{geomean(ratios):.3f}",
            f"{statistics.stdev(map(math.log, ratios)):.2%}",
            f"{max(ratios) / min(ratios) - 1:.2%}",
            f"{half:.2%}",
            f"{sum(hits)} of {len(hits)}",
            f"{max(abs(record['null'][0] - 1) for record in mine if 'null' in record):.2%}",
        ]
        yield f"| {kernel} | {len(runs)} of {len(mine)} | {' | '.join(cells)} |"
    nulls: list[list[float]] = [record["null"] for record in found if "null" in record]
    if inside:
        yield ""
        yield f"Intervals cover the long-run value: {sum(inside)} of {len(inside)} (goal {GOAL_COVERED:.0%})."
        held = sum(low <= 1 <= high for _, low, high in nulls)
        near = sum(abs(ratio - 1) <= GOAL_NULL for ratio, _, _ in nulls)
        yield f"Eager/eager: within {GOAL_NULL:.0%} in {near} of {len(nulls)}; {held} intervals cover 1."
        yield f"Goal for the SD: {GOAL_SD:.1%}. Median time of an evaluation: {_median_s(found):.1f} s."


def hog_lines(found: Sequence[Record], quiet: Sequence[Record]) -> Iterator[str]:
    yield "| kernel | undecided | decided | furthest from the quiet ratio |"
    yield "|---" * 4 + "|"
    for kernel in KERNELS:
        mine = [record for record in found if record["kernel"] == kernel]
        ratios = [record["ratio"] for record in decided(mine)]
        long_run = [record["ratio"] for record in decided(quiet) if record["kernel"] == kernel]
        furthest = max((abs(math.log(ratio / geomean(long_run))) for ratio in ratios), default=None)
        said = "-" if furthest is None else f"{furthest:.1%}"
        yield f"| {kernel} | {len(mine) - len(ratios)} | {len(ratios)} | {said} |"


def _median_s(found: Sequence[Record]) -> float:
    return statistics.median(record["took_s"] for record in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--load", choices=tuple(RUNS), default="quiet")
    parser.add_argument("--seconds", type=float, default=120.0, help="after which no further piece begins")
    parser.add_argument("--out", type=Path, default=Path("runs/noise.jsonl"))
    options: Any = parser.parse_args()
    if options.action == "run":
        again = options.load == "quiet"  # the turn of an undecided evaluation comes again
        go_on(
            pieces(options.load),
            options.out,
            options.seconds,
            evaluation,
            lambda done: not (again and done["reason"]),
        )
        return
    found = records(options.out)
    quiet = [record for record in found if record["load"] == "quiet"]
    print("\n".join(quiet_lines(quiet)))
    if hogged := [record for record in found if record["load"] == "hog"]:
        print("\n" + "\n".join(hog_lines(hogged, quiet)))


if __name__ == "__main__":
    main()
