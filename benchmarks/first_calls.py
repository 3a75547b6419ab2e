"""How long the first call in a new process takes, beside a timed one: what races refuse kernels by; a table.

    python benchmarks/first_calls.py [SUBSTRING...]

Every kernel of examples/ for the CPU and every honest twin of the self-test; the fastest and the slowest of
four new processes. At the end two cheats that keep something between calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from cupilot.device.base import Ran, Ring
from cupilot.device.cpu import Cpu
from cupilot.evaluate.built import VERIFY_RING, BuiltKernel, build
from cupilot.evaluate.clock import KernelSeat
from cupilot.evaluate.contestant import KernelContestant
from cupilot.evaluate.fresh import fresh_at
from cupilot.evaluate.quiet import Sentinel, one_core
from cupilot.evaluate.race import ring_for
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.selftest.catalogue import CHEATS, TWINS
from cupilot.selftest.cheat import problem_path

EXAMPLES = Path(__file__).parents[1] / "examples"
BATCH_S, TURNS, PROCESSES = 0.002, 5, 4
FORGETFUL = ("table_kept", "slow_at_first")


def kernels() -> Iterator[tuple[str, Path, str]]:
    """Name, problem, text."""
    for path in sorted(EXAMPLES.glob("*/*.cpp")):
        yield f"{path.parent.name}, {path.stem}", path.parent / "problem.py", path.read_text()
    for subject in (*TWINS, *(each for each in CHEATS if each.kernel in FORGETFUL)):
        yield subject.name, problem_path(subject.problem), subject.text


def main() -> None:
    wanted = sys.argv[1:]
    print("| kernel | timed call, us | first call, us (fastest, slowest) | more, us |")
    print("| --- | --- | --- | --- |")
    with one_core() as core:
        sentinel = Sentinel()
        sentinel.pin(core)
        for name, problem, text in kernels():
            if not wanted or any(word in name for word in wanted):
                timed_s, firsts_s = measure(problem, text, sentinel, core)
                timed, fastest, slowest = (value * 1e6 for value in (timed_s, min(firsts_s), max(firsts_s)))
                print(
                    f"| {name} | {timed:.0f} | {fastest:.0f}, {slowest:.0f} | {fastest - timed:.0f} |",
                    flush=True,
                )
        sentinel.close()


def measure(path: Path, text: str, sentinel: Sentinel, core: int) -> tuple[float, list[float]]:
    problem, kernel = load(path), parse_kernel(text)
    case = problem.targets[0]
    built = build(kernel, first_point(kernel), case.signature, Cpu())
    assert isinstance(built, BuiltKernel), built
    fresh = fresh_at(problem, case)
    ring = ring_for(KernelContestant("kernel", built), case.signature, 1, fresh, BATCH_S, core)
    assert isinstance(ring, Ring), ring
    contents = fresh.blank()
    fresh.refill(contents)
    with built.open(case.signature, ring) as session:
        session.pin(core)
        seat = KernelSeat(session, ring)
        assert seat.warm_up(contents, BATCH_S) is None
        sets = [fresh.blank() for _ in range(seat.calls)]
        for _ in range(TURNS):
            for tensors in sets:
                fresh.refill(tensors)
            assert seat.turn(sets, sentinel.turn) is None
        seat.settle()
    firsts_s = []
    for _ in range(PROCESSES):
        with built.open(case.signature, VERIFY_RING) as session:
            session.pin(core)
            session.write(1, contents)
            session.poison(1)
            ran = session.run(1, 1)
            assert isinstance(ran, Ran), ran
            firsts_s.append((ran.cpu_end_ns - ran.cpu_start_ns) / 1e9)
    return seat.time_s(), firsts_s


if __name__ == "__main__":
    main()
