"""Prints the suite as a markdown table: what each member is, whether it loads, what eager torch needs.

    python benchmarks/suite_table.py            # all members at the CPU size
    python benchmarks/suite_table.py 1 softmax  # these members
    python benchmarks/suite_table.py --paper    # the paper's sizes: shapes only, nothing is drawn or timed

Eager time is CPU time of this thread with one torch thread, the median of several calls after an uncounted
one. It is for orientation: fresh outputs with their page faults, no second process, no interval.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable

import torch

from cupilot.errors import ProblemError, UsageError
from cupilot.problem import suite
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.types import DType, Role, Signature, TensorSpec

HEADER = ("id", "name", "family", "inputs", "weights", "outputs", "MB", "eager ms", "loading")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("members", nargs="*", help="numbers or names; all if none is given")
    parser.add_argument("--paper", action="store_true", help="the paper's sizes, shapes only")
    parser.add_argument("--calls", type=int, default=7, help="timed calls per member")
    options = parser.parse_args()
    try:
        chosen = [suite.find(key) for key in options.members] or suite.members()
    except UsageError as error:
        parser.error(str(error))
    torch.set_num_threads(1)
    print_row(HEADER)
    print_row("---" for _ in HEADER)
    loaded = 0
    times_ms = []
    for member in chosen:
        identity = (str(member.number), member.name, member.family)
        try:
            problem = load(f"suite:{member.number}", size="paper" if options.paper else "cpu")
        except ProblemError as refusal:
            print_row((*identity, "", "", "", "", "", f"refused: {refusal.message}"))
            continue
        loaded += 1
        time_ms = None if options.paper else eager_ms(problem, options.calls)
        times_ms += [] if time_ms is None else [time_ms]
        shown = "" if time_ms is None else f"{time_ms:.2f}"
        print_row((*identity, *size_cells(problem.target), shown, "loaded"))
    print(f"\n{loaded} of {len(chosen)} members load")
    if times_ms:
        print(f"eager on one thread: {min(times_ms):.1f} to {max(times_ms):.1f} ms")


def print_row(cells: Iterable[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def size_cells(signature: Signature) -> tuple[str, ...]:
    """Inputs, weights, outputs, and their megabytes together."""
    inputs = [spec for spec in signature.tensors if spec.role is Role.INPUT]
    weights = [spec for spec in signature.tensors if spec.role is not Role.INPUT]
    megabytes = sum(spec.size_bytes for spec in (*signature.tensors, *signature.outputs)) / 1e6
    return shapes(inputs), shapes(weights), shapes(signature.outputs), f"{megabytes:.1f}"


def shapes(specs: Iterable[TensorSpec]) -> str:
    return ", ".join(
        ("x".join(map(str, spec.shape)) or "scalar") + ("" if spec.dtype is DType.F32 else f" {spec.dtype}")
        for spec in specs
    )


def eager_ms(problem: Problem, calls: int) -> float:
    """The user's own module on the user's own inputs, as eager torch runs it."""
    torch.manual_seed(0)
    model, inputs = problem.program.make_model(), problem.program.make_inputs()

    def once_ms() -> float:
        start_s = time.thread_time()
        model(*inputs)
        return (time.thread_time() - start_s) * 1e3

    with torch.no_grad():
        once_ms()
        return statistics.median(once_ms() for _ in range(calls))


if __name__ == "__main__":
    main()
