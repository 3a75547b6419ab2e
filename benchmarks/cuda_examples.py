"""Verifies every kernel of examples/cuda on the emulated device, under the whole contract; prints a table.

    python benchmarks/cuda_examples.py [--arch sm_80] [--only SUBSTRING]

A kernel that fails here is either wrong or falsely accused: all of them are meant to be right.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from cupilot.device.cuda_emulated.device import DEFAULT_ARCHITECTURE, CudaEmulated
from cupilot.evaluate.pipeline import evaluate
from cupilot.problem.loading import load

EXAMPLES = Path(__file__).parents[1] / "examples" / "cuda"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--arch", default=DEFAULT_ARCHITECTURE)
    arguments.add_argument("--only", default="")
    chosen = arguments.parse_args()
    kernels = [path for path in sorted(EXAMPLES.glob("*/*.cu")) if chosen.only in str(path)]
    device, failed = CudaEmulated(chosen.arch), 0
    print(f"| kernel | {chosen.arch} verdict | shapes | inputs | worst error of allowed | s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in kernels:
        start = time.perf_counter()
        found = evaluate(load(str(path.parent / "problem.py")), path.read_text(), device)
        failed += not found.passed
        error = f"{found.error.ratio:.2g}" if found.error else ""
        verdict = "passed" if found.passed else f"{found.stage}: {found.reason}"
        name = path.relative_to(EXAMPLES)
        spent = time.perf_counter() - start
        row = (name, verdict, len(found.shapes), len(found.inputs.live), error, f"{spent:.1f}")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print(f"\n{len(kernels) - failed} of {len(kernels)} kernels passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
