"""Compares search policies on recorded tables of real measurements.

    python benchmarks/policies prepare                    # references for recording, at any time
    python benchmarks/policies record --limit 150         # go on recording for so many seconds, quiet machine
    python benchmarks/policies                            # the study, from the tables: a few minutes

A table holds every strategy that the built-in author can realise for a problem (or a large random sample),
each verified and measured once as the search does it, but at the first point of its tunables. Policies then
search the tables: equal kernels cost one evaluation. The pool holds what default runs on the other problems
leave to it, so a problem is always held out.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from policies import study, tables

PROBLEMS = (
    "gelu",
    "max_pool_2d",
    "square_matmul",
    "batched_matmul",
    "cross_entropy_loss",
    "diagonal_matmul",
    "rms_norm",
    "layer_norm",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", nargs="?", choices=("study", "prepare", "record"), default="study")
    parser.add_argument("--only", nargs="*", default=PROBLEMS, help="these problems")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds to record")
    parser.add_argument("--seeds", type=int, default=study.SEEDS)
    options = parser.parse_args()
    if options.action == "study":
        worlds = [study.world_of(t) for t in tables.known() if t.problem in options.only]
        print(study.page(worlds, options.seeds) if worlds else "no table is complete yet: record first")
    elif options.action == "prepare":
        prepare(options.only)
    else:
        end_s = time.monotonic() + options.limit
        for name in options.only:
            if time.monotonic() < end_s and not _is_complete(name):
                tables.record(name, end_s - time.monotonic())


def prepare(names: list[str]) -> None:
    from cupilot.evaluate.preparation import prepare as prepare_suite
    from cupilot.evaluate.reference_cache import ReferenceCache
    from cupilot.problem.loading import load

    for name in names:
        prepare_suite(load(f"suite:{name}"), ReferenceCache())
        print(f"{name} is ready")


def _is_complete(name: str) -> bool:
    return tables.path_of(name).exists() and not tables.read(name).missing


if __name__ == "__main__":
    main()
