"""Verifies every kernel of examples/cuda on the emulated device, under the whole contract; prints a table.

    python benchmarks/cuda_examples.py [--arch sm_80] [--only SUBSTRING] [--shallow]

With --shallow on one input at the target and at an odd shape only, as the tests do.

A kernel that fails here is either wrong or falsely accused: all of them are meant to be right.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "device" / "cuda_emulated"))

import test_examples

from cupilot.device.cuda_emulated.device import DEFAULT_ARCHITECTURE, CudaEmulated
from cupilot.evaluate.pipeline import evaluate
from cupilot.problem.loading import load

EXAMPLES = Path(__file__).parents[1] / "examples" / "cuda"


def shallow(kernels: list[Path], device: CudaEmulated) -> int:
    wrong = []
    for path in kernels:
        try:
            test_examples.check(path, device)
        except AssertionError as error:
            wrong.append(f"{path.parent.name}/{path.name}: {str(error).splitlines()[0]}")
    print(
        f"{len(kernels) - len(wrong)} of {len(kernels)} kernels are right on {device.arch}", *wrong, sep="\n"
    )
    return int(bool(wrong))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--arch", default=DEFAULT_ARCHITECTURE)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--shallow", action="store_true")
    chosen = arguments.parse_args()
    kernels = [path for path in sorted(EXAMPLES.glob("*/*.cu")) if chosen.only in str(path)]
    if chosen.shallow:
        return shallow(kernels, CudaEmulated(chosen.arch))
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
