"""What the protections cost: the time that one evaluation spends on not being fooled; prints tables.

    python benchmarks/protections.py [PROBLEM KERNEL]

First the walls around one compilation and one process, each with and without them: the copies without walls
are made here, from the text of the runner and without the jail, and exist nowhere else. Then an evaluation as
the search asks for (`SEARCH`), and one with a longer race (`QUICK`), in which every part that protects is
timed where it stands: on the wall, and as CPU time of this process, which a busy machine disturbs less. The
sum leaves out what honest timing needs as well: the wash of the caches.
"""

from __future__ import annotations

import functools
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cupilot.device import cpu, inspection, native
from cupilot.device.base import Ring
from cupilot.device.block import pack_block
from cupilot.device.cpu import Cpu
from cupilot.device.jail import run_jailed
from cupilot.device.layout import lay_out
from cupilot.device.session import RUNNER_FLAGS, CpuSession, end_process
from cupilot.device.worker import Worker
from cupilot.evaluate import race
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import BuiltKernel, build
from cupilot.evaluate.effort import QUICK, SEARCH, Effort
from cupilot.evaluate.fresh import Fresh
from cupilot.evaluate.pipeline import Options, evaluate_kernel
from cupilot.evaluate.witness import Witness
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.plan import Plan
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem

SELFTEST = Path(cpu.__file__).parents[1] / "selftest"
RUNS = 9
WALLS = tuple(
    f"    {call};\n"
    for call in (
        "unmap_clock()",
        "give_up_privileges(library, address_bytes, cpu_seconds)",
        "claim_stack()",
        "allow_loading()",
        "allow_running(threads > 1)",
    )
)

spent_s: Counter[str] = Counter()
cpu_s: Counter[str] = Counter()
times: Counter[str] = Counter()


def main() -> None:
    given = [Path(name) for name in sys.argv[1:3]]
    problem_path, kernel_path = given or [SELFTEST / "problems/softmax.py", SELFTEST / "twins/softmax.cpp"]
    problem, kernel = load(problem_path), parse_kernel(kernel_path.read_text())
    built = build(kernel, first_point(kernel), problem.target, Cpu())
    assert isinstance(built, BuiltKernel), built
    walls(built, problem)
    watch()
    with Bench(problem, Cpu()) as bench:
        evaluated(bench, kernel, SEARCH)  # the first one loads torch in the baselines' process
        for name, effort in (("SEARCH", SEARCH), ("QUICK", QUICK)):
            spent_s.clear()
            cpu_s.clear()
            times.clear()
            wall_s = evaluated(bench, kernel, effort)
            report(name, wall_s)


# ---- walls: with and without ----
def walls(built: BuiltKernel, problem: Problem) -> None:
    source = "#include <cmath>\nfloat f(float x) { return expf(x); }\n"
    with tempfile.TemporaryDirectory(dir=native.cache_dir()) as folder:
        work = Path(folder)
        (work / "a.cpp").write_text(source)
        command = [str(native.compiler().path), "-O2", "-c", "a.cpp"]
        clean = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(work)}  # as in the jail
        free = fastest_s(
            lambda: subprocess.run(command, cwd=work, env=clean, check=True, capture_output=True)
        )
        jailed = fastest_s(lambda: run_jailed(command, work))
        bare = runner_without_walls(work)
        loose = fastest_s(lambda: start(bare, built, problem))
        walled = fastest_s(lambda: start(native.program("runner", *RUNNER_FLAGS), built, problem))
    print(f"| in milliseconds, best of {RUNS} | without walls | with walls | added |")
    print("| --- | --- | --- | --- |")
    for what, without_s, with_s in (
        ("one compilation in the jail", free, jailed),
        ("one runner, until it is ready", loose, walled),
    ):
        print(f"| {what} | {without_s * 1e3:.2f} | {with_s * 1e3:.2f} | {(with_s - without_s) * 1e3:.2f} |")


def fastest_s(work: Callable[[], object]) -> float:
    found = []
    for _ in range(RUNS):
        began_s = time.perf_counter()
        work()
        found.append(time.perf_counter() - began_s)
    return min(found)


def runner_without_walls(work: Path) -> Path:
    text = (native.SOURCES / "runner.cpp").read_text()
    for wall in WALLS:
        assert wall in text, f"the runner has no {wall.strip()} any more"
        text = text.replace(wall, "")
    (work / "bare.cpp").write_text(text)
    command = [str(native.compiler().path), "-O2", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-w"]
    command += [f"-I{native.SOURCES}", str(work / "bare.cpp"), "-o", str(work / "bare"), *RUNNER_FLAGS]
    subprocess.run(command, check=True)
    return work / "bare"


def start(program: Path, built: BuiltKernel, problem: Problem) -> None:
    plan = built.plan(problem.target)
    assert isinstance(plan, Plan)
    ring = Ring(3, 2)
    layout = lay_out(problem.target, plan, ring)
    process = subprocess.Popen(
        [str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={},
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(pack_block(built.compiled, plan, layout, ring, 1))
    said = Worker(process.pid, process.stdin.fileno(), process.stdout.fileno()).introduction(5.0)
    assert said is not None and said[0] == 0, said
    end_process(process)


# ---- one evaluation, its parts timed where they stand ----
def watch() -> None:
    timed(cpu, "check_source", "inspection of text and library")
    timed(inspection, "inspect_elf", "inspection of text and library")
    timed(inspection, "inspect_instructions", "disassembly, looked through")
    timed(CpuSession, "check_guards", "guard zones")
    timed(CpuSession, "prepare", "guard zones, poison and scratch at the start")
    timed(CpuSession, "poison", "poisoned outputs")
    timed(CpuSession, "read_inputs", "inputs read back")
    timed(race, "repeat", "timed calls repeated in a new process")
    timed(Witness, "look", "timed calls held against the reference")
    timed(Fresh, "refill", "new contents for timed calls")


def timed(owner: Any, name: str, part: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **more: Any) -> Any:
        began_s, cpu_began_s = time.perf_counter(), time.process_time()
        try:
            return original(*arguments, **more)
        finally:
            spent_s[part] += time.perf_counter() - began_s
            cpu_s[part] += time.process_time() - cpu_began_s
            times[part] += 1

    setattr(owner, name, wrapped)


def evaluated(bench: Bench, kernel: KernelFile, effort: Effort) -> float:
    began_s = time.perf_counter()
    found = evaluate_kernel(bench, kernel, Options(effort=effort))
    print(f"\n{found.verdict}: {found.reason}; {statistics.fsum(found.spent_s.values()):.2f} s", flush=True)
    return time.perf_counter() - began_s


def report(name: str, wall_s: float) -> None:
    print(f"\n| {name}: one evaluation of {wall_s:.2f} s | times | ms | CPU ms |")
    print("| --- | --- | --- | --- |")
    for part, seconds in spent_s.most_common():
        print(f"| {part} | {times[part]} | {seconds * 1e3:.1f} | {cpu_s[part] * 1e3:.1f} |")
    print(f"| all of these | | {sum(spent_s.values()) * 1e3:.1f} | {sum(cpu_s.values()) * 1e3:.1f} |")


if __name__ == "__main__":
    main()
