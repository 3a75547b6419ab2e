"""Our peaks beside an independent measurement, one thread. Goal: within 5 %.

    python benchmarks/peaks.py [--rounds 6]

Both programs take turns, as memory shared with other guests of the host is not equally fast at all times, and
of each the best round counts. Independent: `peaks_check.c` (loops left to the compiler; multiply-adds counted
by hand). numpy's own copy and product stand below as a plausibility check: they must stay under the peaks.
Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from cupilot.device.caches import data_caches
from cupilot.device.contention import Watch
from cupilot.device.native import compiler
from cupilot.device.peaks import cpu_peaks
from cupilot.roofline import DevicePeaks, Format, Pattern

GOAL = 0.05
MAIN_MEMORY_BYTES = 256 << 20
CHECK = Path(__file__).with_name("peaks_check.c")
FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-fno-tree-loop-distribute-patterns")


Rates = dict[tuple[str, str], float]  # by what is measured and the level of memory


def compiled(folder: Path) -> Path:
    program = folder / "check"
    c = ["-x", "c", str(CHECK), "-o", str(program)]
    subprocess.run([str(compiler().path), *FLAGS, *c], check=True)
    return program


def check(program: Path, sizes: dict[str, int], cpu: int) -> Rates:
    """What the independent program reads."""
    command = ["taskset", "-c", str(cpu), str(program), *map(str, sizes.values())]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    level = {str(size): name for name, size in sizes.items()}
    return {(what, level.get("".join(size), "")): float(rate) for what, *size, rate in map(str.split, lines)}


def ours(peaks: DevicePeaks, what: str, level: str) -> float:
    if not level:
        return peaks.core_ops_per_s[Format(what)]
    rates = next(x for x in peaks.levels if x.name == level).bytes_per_s
    return rates[Pattern(what.replace("_", " "))]


def best_rate(amount: float, run: Callable[[], object], trials: int = 10) -> float:
    best = 0.0
    for _ in range(trials):
        begin = time.process_time()
        run()
        best = max(best, amount / (time.process_time() - begin))
    return best


def numpy_rates() -> dict[str, float]:
    source = np.random.default_rng(0).standard_normal(MAIN_MEMORY_BYTES // 16)
    target = np.ones_like(source)
    square = source[: 1024 * 1024].reshape(1024, 1024).astype(np.float32)
    return {
        "numpy copy, B/s": best_rate(2.0 * source.nbytes, lambda: np.copyto(target, source)),
        "numpy f32 product, op/s": best_rate(2.0 * 1024**3, lambda: square @ square),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    watch = Watch()
    cpu = min(os.sched_getaffinity(0))
    sizes = {f"L{c.level}": c.size_bytes * 5 // 8 for c in data_caches([cpu])} | {"DRAM": MAIN_MEMORY_BYTES}
    theirs: Rates = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUPILOT_CACHE"] = folder  # neither begins with readings of other days
        program = compiled(Path(folder))
        for _ in range(options.rounds):
            peaks = cpu_peaks(force=True)
            for key, rate in check(program, sizes, cpu).items():
                theirs[key] = max(rate, theirs.get(key, 0.0))
    one = peaks.one_thread
    table = Table("figure", "level", "cuPilot", "independent", "ours / theirs", box=None, header_style="bold")
    worst = 0.0
    for (what, level), rate in theirs.items():
        own = ours(one, what, level)
        around_caches_inside_one = what == "stream_copy" and level != "DRAM"
        if not around_caches_inside_one:
            worst = max(worst, abs(own / rate - 1))
            table.add_row(what, level, f"{own / 1e9:.1f} G/s", f"{rate / 1e9:.1f} G/s", f"{own / rate:.3f}")
    console = Console()
    console.print(table)
    for name, rate in numpy_rates().items():
        console.print(f"{name}: {rate / 1e9:.1f} G")
    contention = peaks.contention or watch.contention()
    console.print(
        f"worst deviation {worst:.1%} (goal {GOAL:.0%})"
        + (f"; busy machine: {contention}" * bool(contention))
    )
    return int(worst > GOAL)


if __name__ == "__main__":
    sys.exit(main())
