"""Is a slightly slower kernel told apart from its original, and are identical kernels held to be the same?

    python benchmarks/sensitivity.py run                # what is missing of 60 races
    python benchmarks/sensitivity.py table

A call stops after two minutes, the next one goes on. The slower twin of an example's `fast.cpp` launches its
last step once more on a share of the rows, planes or elements (rounded down): the same code computes the same
values again. So 5 % more work is *at most* 5 % more time, and less where caches help; the table says how much
it was. Both run beside each other in one race, `full` or `quick`, as `cupilot` compares a challenger with a
champion. Told apart: the whole interval lies above 1. False alarm: the interval of a kernel raced against
itself does not hold 1.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cupilot.device.cpu import Cpu
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.effort import FULL, QUICK
from cupilot.evaluate.pipeline import faster
from cupilot.evaluate.result import Evaluation, Interval, Verdict
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.types import Stage
from slices import Piece, Record, go_on, records

EXAMPLES = Path(__file__).parents[1] / "examples"
# The last step of each example's launch program, and the same on 1/SHARE of the work.
AGAIN = {
    "softmax": "row_softmax[rows // SHARE](x, out, cols)",
    "gelu": "gelu[cdiv(n // SHARE, BLOCK)](x, out, n // SHARE)",
    "matmul": "multiply[cdiv(m // SHARE, MR * MC), cdiv(n, NC)](a, panels, out, m // SHARE, n, k)",
    "cumsum": "row_cumsum[rows // SHARE](x, out, cols)",
    "max_pool": "max_pool[batch * channels // SHARE]"
    "(x, lines, out, h, w, oh, ow, self.window, self.stride, self.padding, self.dilation)",
}
EFFORTS = {"full": FULL, "quick": QUICK}
SERIES = (("full", 20), ("quick", 5), ("full", 0))  # effort, and 1/SHARE more work; 0: none
RUNS = 4  # of every kernel in every series
GOAL = 0.95


def pieces() -> list[Piece]:
    return [
        {"effort": effort, "share": share, "kernel": kernel, "run": run}
        for run in range(RUNS)
        for effort, share in SERIES
        for kernel in AGAIN
    ]


@cache
def problem(name: str) -> Problem:
    return load(str(EXAMPLES / name / "problem.py"), None)


def original(name: str) -> str:
    return (EXAMPLES / name / "fast.cpp").read_text(encoding="utf-8")


def twin(name: str, share: int) -> str:
    """The same kernel with one more step at the end of its launch program."""
    head, end, code = original(name).partition("\n*/")
    return (
        f"{head}\n    {AGAIN[name].replace('SHARE', str(share))}{end}{code}" if share else head + end + code
    )


def known(text: str) -> tuple[KernelFile, Evaluation]:
    kernel = parse_kernel(text)
    return kernel, Evaluation(Verdict.PASSED, Stage.TIME, "", tuned=first_point(kernel))


def raced(piece: Piece) -> Record:
    name = piece["kernel"]
    pair = known(original(name)), known(twin(name, piece["share"]))
    with Bench(problem(name), Cpu()) as bench:
        start_s = time.monotonic()
        found = faster(bench, *pair, EFFORTS[piece["effort"]])
        took_s = round(time.monotonic() - start_s, 1)
    if not isinstance(found, Interval):
        return {"took_s": took_s, "reason": found.reason}
    return {
        "took_s": took_s,
        "reason": "",
        **{key: round(value, 5) for key, value in vars(found).items()},
    }


def lines(found: Sequence[Record]) -> Iterator[str]:
    yield "| race | kernel | races | undecided | slower by | SD | told apart | seconds |"
    yield "|---" * 8 + "|"
    for effort, share in SERIES:
        series = [each for each in found if (each["effort"], each["share"]) == (effort, share)]
        race = f"{effort}, {1 / share:.0%} more work" if share else f"{effort}, identical"
        for kernel in (*AGAIN, "all"):
            mine = [each for each in series if kernel in (each["kernel"], "all")]
            if mine:
                yield f"| {race} | {kernel} | {len(mine)} | {' | '.join(_cells(mine, bool(share)))} |"
    yield ""
    yield f"Goal: {GOAL:.0%} of the races with more work told apart; an undecided race is not told apart."


def _cells(mine: Sequence[Record], differs: bool) -> list[str]:
    """Of identical kernels the column "told apart" counts false alarms."""
    runs = [each for each in mine if not each["reason"]]
    logs = [math.log(each["ratio"]) for each in runs]
    apart = [each["low"] > 1 if differs else not each["low"] <= 1 <= each["high"] for each in runs]
    return [
        str(len(mine) - len(runs)),
        f"{math.expm1(statistics.fmean(logs)):.1%}" if logs else "-",
        f"{statistics.stdev(logs):.2%}" if len(logs) > 1 else "-",
        str(sum(apart)),
        f"{statistics.median(each['took_s'] for each in mine):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--seconds", type=float, default=120.0, help="after which no further piece begins")
    parser.add_argument("--out", type=Path, default=Path("runs/sensitivity.jsonl"))
    options: Any = parser.parse_args()
    if options.action == "run":
        go_on(pieces(), options.out, options.seconds, raced)
    else:
        print("\n".join(lines(records(options.out))))


if __name__ == "__main__":
    main()
