"""Prints the suite as a markdown table: whether a member can be checked, its floor, what eager torch needs.

    python benchmarks/suite_table.py                               # all members at the CPU size
    python benchmarks/suite_table.py 1 softmax                     # these members
    python benchmarks/suite_table.py --paper                       # the paper's sizes: shapes only, no time
    python benchmarks/suite_table.py --results FILE --minutes 1.5  # a slice; the same line again goes on

A member is "accepted" when no kernel that does nothing passes as right and enough kinds of input prove
something; otherwise the reason of the refusal is printed. The floor is that of `cupilot roofline` on one
thread, on data that no cache still holds. Eager time is CPU time of this thread with one torch thread, the
median of several calls after an uncounted one. It is for orientation: fresh outputs with their page faults,
no second process, no interval.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from cupilot.device.peaks import CpuPeaks, cpu_peaks
from cupilot.errors import ProblemError, UsageError
from cupilot.evaluate.preparation import admit
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.problem import suite
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.roofline import Work, place
from cupilot.types import DType, Role, Signature, TensorSpec

HEADER = (
    "id",
    "name",
    "family",
    "inputs",
    "weights",
    "outputs",
    "MB",
    "floor ms",
    "zone",
    "eager ms",
    "check",
)
FOOTPRINT_BYTES = 512 << 20  # as in `cupilot roofline`
ACCEPTED, REFUSED = "accepted", "refused: "


@dataclass(frozen=True)
class Row:
    """One member at one size; times in milliseconds."""

    member: str
    size: str
    cells: Sequence[str]  # inputs, weights, outputs, megabytes
    floor_ms: float | None
    zone: str
    eager_ms: float | None
    check: str  # "accepted", or why not; empty where it was not tried


def main() -> int:
    options, chosen = _options()
    torch.set_num_threads(1)
    known = _known(options.results)
    size, peaks = "paper" if options.paper else "cpu", cpu_peaks()
    stop_s = time.monotonic() + options.minutes * 60
    for member in chosen:
        if (member.name, size) in known:
            continue
        if time.monotonic() >= stop_s:
            done = sum((member.name, size) in known for member in chosen)
            print(f"{done} of {len(chosen)} members done; the same line again goes on")
            return 3
        known[member.name, size] = row = row_of(member, size, peaks, options.calls)
        if options.results is not None:
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    print_table(chosen, [known[member.name, size] for member in chosen])
    return 0


def row_of(member: suite.Member, size: str, peaks: CpuPeaks, calls: int) -> Row:
    try:
        problem = load(f"suite:{member.number}", size=size)
    except ProblemError as refusal:
        return Row(member.name, size, ("", "", "", ""), None, "", None, REFUSED + refusal.message)
    arithmetic = problem.precision.arithmetic
    placed = place(Work.of(problem.counts), peaks.one_thread, arithmetic, FOOTPRINT_BYTES)
    floor_ms = max(placed.byte_floor_s, placed.operation_floor_s) * 1e3
    check, eager = "", None
    if size == "cpu":
        check, eager = checked(problem), eager_ms(problem, calls)
    return Row(member.name, size, size_cells(problem.target), floor_ms, placed.zone.value, eager, check)


def checked(problem: Problem) -> str:
    with tempfile.TemporaryDirectory(prefix="cupilot-suite-") as folder:
        try:
            admit(problem, ReferenceCache(Path(folder)))
        except ProblemError as refusal:
            return REFUSED + refusal.message
    return ACCEPTED


def print_table(members: Sequence[suite.Member], rows: Sequence[Row]) -> None:
    print_row(HEADER)
    print_row("---" for _ in HEADER)
    for member, row in zip(members, rows, strict=True):
        times = ("" if ms is None else f"{ms:.2f}" for ms in (row.floor_ms, row.eager_ms))
        floor, eager = times
        print_row(
            (str(member.number), member.name, member.family, *row.cells, floor, row.zone, eager, row.check)
        )
    loaded = sum(row.floor_ms is not None for row in rows)
    print(f"\n{loaded} of {len(rows)} members load")
    tried = [row for row in rows if row.check and row.floor_ms is not None]
    if tried:
        print(f"{sum(row.check == ACCEPTED for row in tried)} of {len(tried)} can be checked honestly")
    times_ms = [row.eager_ms for row in rows if row.eager_ms is not None]
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


def _known(path: Path | None) -> dict[tuple[str, str], Row]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    return {(row.member, row.size): row for row in rows}


def _options() -> tuple[argparse.Namespace, Sequence[suite.Member]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("members", nargs="*", help="numbers or names; all if none is given")
    parser.add_argument("--paper", action="store_true", help="the paper's sizes, shapes only")
    parser.add_argument("--calls", type=int, default=7, help="timed calls per member")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep each row here, and reuse it")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further member after this long")
    options = parser.parse_args()
    try:
        return options, [suite.find(key) for key in options.members] or suite.members()
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
