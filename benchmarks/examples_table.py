"""Every example's plain and fast kernel against eager, torch.compile and the library, by `cupilot eval`.

    python benchmarks/examples_table.py prepare     # references and compiled baselines; any time
    python benchmarks/examples_table.py run         # what is missing of the evaluations; on a quiet machine
    python benchmarks/examples_table.py table

A call stops after two minutes, the next one goes on. Every evaluation is a process of its own at full effort.
`prepare` has each problem evaluated once before, so "seconds" is a warm evaluation, from start to end. The
turn of an undecided evaluation comes again; the last line of a kernel counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cupilot.cli.units import seconds
from slices import Piece, Record, go_on, records

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = ("plain", "fast")
BASELINES = ("eager", "compile", "library")
GOAL_S = 20.0
_CLI = (sys.executable, "-c", "from cupilot.cli.main import main; main()")


def names() -> list[str]:
    return sorted(each.parent.name for each in EXAMPLES.glob("*/fast.cpp"))


def evaluation(piece: Piece) -> Record:
    folder = EXAMPLES / piece["example"]
    command = [*_CLI, "eval", str(folder / "problem.py"), str(folder / f"{piece['kernel']}.cpp"), "--json"]
    start_s = time.monotonic()
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - start_s
    if not answer.stdout:
        raise SystemExit(answer.stderr)
    found = json.loads(answer.stdout)
    wanted = (
        "verdict",
        "reason",
        "speedup",
        "time_s",
        "floor_s",
        "headroom",
        "zone",
        "tuned",
        "spent_s",
        "notes",
    )
    return {key: found[key] for key in wanted} | {"took_s": round(took_s, 1)}


def lines(found: Sequence[Record]) -> Iterator[str]:
    yield "| example | kernel | eager | compile | library | a call | floor | headroom | bound | seconds |"
    yield "|---" * 10 + "|"
    latest = {(each["example"], each["kernel"]): each for each in found}
    for (example, kernel), each in sorted(
        latest.items(), key=lambda item: (item[0][0], item[0][1] == "fast")
    ):
        yield f"| {example} | {kernel} | {' | '.join(_cells(each))} |"
    slow = [f"{e} {k}" for (e, k), each in latest.items() if each["took_s"] > GOAL_S]
    yield ""
    yield f"{len(latest)} evaluations, over {GOAL_S:.0f} s: {', '.join(slow) or 'none'}."


def _cells(each: Record) -> list[str]:
    if each["verdict"] != "passed":
        return [f"{each['verdict']}: {each['reason']}", *["-"] * 6, str(each["took_s"])]
    return [
        *(_ratio(each["speedup"].get(name)) for name in BASELINES),
        seconds(each["time_s"]),
        seconds(each["floor_s"]),
        f"{each['headroom']:.0%}",
        each["zone"],
        str(each["took_s"]),
    ]


def _ratio(interval: Mapping[str, float] | None) -> str:
    return (
        "-"
        if interval is None
        else f"{interval['ratio']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("prepare", "run", "table"))
    parser.add_argument("--seconds", type=float, default=120.0, help="after which no further piece begins")
    parser.add_argument("--out", type=Path, default=Path("runs/examples.jsonl"))
    options: Any = parser.parse_args()
    if options.action == "prepare":
        pieces = [{"example": name, "kernel": "fast"} for name in names()]
        go_on(pieces, options.out.with_name("examples_prepared.jsonl"), options.seconds, evaluation)
    elif options.action == "run":
        pieces = [{"example": name, "kernel": kernel} for name in names() for kernel in KERNELS]
        go_on(pieces, options.out, options.seconds, evaluation, lambda done: done["verdict"] != "undecided")
    else:
        print("\n".join(lines(records(options.out))))


if __name__ == "__main__":
    main()
