"""Runs kernels with planted bugs, and their sound twins, on the emulated device; prints what it finds.

    python benchmarks/cuda_planted.py [--seeds 3] [--only races]

Every kernel runs in several orders of warps and blocks. Found: the right kind of fault at the right line.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "device" / "cuda_emulated"))

import planted_kit


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--only", default="", help="a group: a file of tests/device/cuda_emulated/planted")
    chosen = arguments.parse_args()
    seeds = range(1, chosen.seeds + 1)
    bugs = found = twins = silent = 0
    print("| group | kernel | finds | s |\n| --- | --- | --- | --- |")
    for planted in planted_kit.all_planted():
        if chosen.only not in planted.group:
            continue
        start = time.perf_counter()
        faults = [planted_kit.find(planted, seed) for seed in seeds]
        right = all(planted_kit.is_right(planted, fault) for fault in faults)
        words = sorted({f"{fault.kind} at line {fault.line}" if fault else "nothing" for fault in faults})
        spent = time.perf_counter() - start
        mark = "" if right else "**WRONG** "
        print(f"| {planted.group} | {planted.name} | {mark}{', '.join(words)} | {spent:.2f} |", flush=True)
        bugs += bool(planted.expected)
        found += bool(planted.expected) and right
        twins += not planted.expected
        silent += not planted.expected and right
    print(f"\n{found} of {bugs} planted bugs found; {silent} of {twins} sound twins without an alarm")
    return int(found < bugs or silent < twins)


if __name__ == "__main__":
    sys.exit(main())
