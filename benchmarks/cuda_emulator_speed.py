"""How fast the CUDA emulator executes, and how long a verdict takes; prints a table.

    python benchmarks/cuda_emulator_speed.py [rates | verdicts]

Thread-instructions per second of the emulator's CPU time on a 256 x 256 x 256 product with tiles of 16 x 16,
best of seven launches: with counters only, and with every check, for each set of vector instructions.
Verdicts are wall time, the first time and the best of three more.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from cupilot.device.cuda_emulated.build import Vectors
from cupilot.device.cuda_emulated.device import CudaEmulated, EmulatedCompiled
from cupilot.device.cuda_emulated.encode.frame import buffer_address
from cupilot.device.cuda_emulated.launching import pack_parameters, triple
from cupilot.device.cuda_emulated.process import EmulatorProcess, LaunchRequest
from cupilot.evaluate.pipeline import evaluate
from cupilot.kernel.binding import bind
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Launch
from cupilot.problem.loading import load
from cupilot.types import DType, Role, Signature, TensorSpec

EXAMPLES = Path(__file__).parents[1] / "examples" / "cuda"
RUNS = 7


def square(n: int) -> Signature:
    a, b = (TensorSpec(name, (n, n), DType.F32, Role.INPUT) for name in "ab")
    return Signature((a, b), {}, (TensorSpec("out", (n, n), DType.F32, Role.OUTPUT),))


def rate(vectors: Vectors, checks: bool) -> tuple[float, float]:
    """Thread-instructions per second in units of 10^9, and milliseconds of the best run."""
    signature = square(256)
    file = parse_kernel((EXAMPLES / "matmul" / "tiled.cu").read_text())
    point = {"TILE": 16}
    compiled = CudaEmulated().compile(file, point, signature)
    assert isinstance(compiled, EmulatedCompiled), compiled
    plan = run(file.launch, bind(file, signature, point), grid_style=GridStyle.CUDA)
    step = next(step for step in plan.steps if isinstance(step, Launch))
    kernel, program = compiled.gated.kernels[step.kernel], compiled.programs[step.kernel]
    with EmulatorProcess(vectors) as process:
        for size in (256, 32 << 10, 64):
            process.add_buffer(size, writable=False, races=False)
        process.load(program)
        buffers = {
            spec.name: process.add_buffer(spec.size_bytes, writable=True, races=True)
            for spec in (*signature.tensors, *signature.outputs)
        }
        for name in "ab":
            process.write(buffers[name], np.ones((256, 256), np.float32))
        addresses = {name: buffer_address(number) for name, number in buffers.items()}
        request = LaunchRequest(
            program=0, grid=triple(step.grid), block=triple(step.block or (1,)), dynamic_shared=0,
            cooperative=False, parameters=pack_parameters(step, kernel, program, addresses),
            buffers=tuple(buffers.values()), seed=1, checks=checks,
        )  # fmt: skip
        best, executed = float("inf"), 0
        for _ in range(RUNS):
            start_ns = cpu_ns(process.pid)
            outcome = process.launch(request)
            best, executed = min(best, (cpu_ns(process.pid) - start_ns) / 1e9), outcome.executed
            assert outcome.fault is None, outcome
    return 32 * executed / best / 1e9, 1000 * best


def cpu_ns(pid: int) -> int:
    return time.clock_gettime_ns((~pid << 3) | 2)


def verdict_s(folder: Path, kernel: str, size: str | None) -> tuple[float, float]:
    """Seconds from source to verdict, imports apart: the first time, and the best of three more."""
    spent = []
    text = (folder / kernel).read_text()
    for _ in range(4):
        start = time.perf_counter()
        found = evaluate(load(str(folder / "problem.py"), size), text, CudaEmulated())
        spent.append(time.perf_counter() - start)
        assert found.passed, found.reason
    return spent[0], min(spent[1:])


def print_rates() -> None:
    print("| 256^3 tiled matmul, one core | 10^9 thread-instructions/s | ms |\n| --- | --- | --- |")
    for vectors in Vectors:
        for checks in (False, True):
            speed, spent = rate(vectors, checks)
            what = "all checks" if checks else "counters"
            print(f"| {vectors}, {what} | {speed:.2f} | {spent:.1f} |", flush=True)


def print_verdicts() -> None:
    print("\n| from source to verdict | s, the first time | s, again |\n| --- | --- | --- |")
    for folder, kernel, size in (
        ("softmax", "shared_tree.cu", "wide"),
        ("softmax", "shared_tree.cu", None),
        ("vector_add", "plain.cu", None),
    ):
        first, again = verdict_s(EXAMPLES / folder, kernel, size)
        name = f"{folder}/{kernel}{f', size {size}' if size else ''}"
        print(f"| {name} | {first:.2f} | {again:.2f} |", flush=True)


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if wanted != "verdicts":
        print_rates()
    if wanted != "rates":
        print_verdicts()
    return 0


if __name__ == "__main__":
    sys.exit(main())
