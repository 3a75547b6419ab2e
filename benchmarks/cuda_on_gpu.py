"""Runs the kernels of examples/cuda on an NVIDIA GPU: right or wrong on inputs of the suite, and how fast.

    python benchmarks/cuda_on_gpu.py --prepare FOLDER --arch sm_90   anywhere: compile, no GPU needed
    python benchmarks/cuda_on_gpu.py --prepared FOLDER --json FILE   with a GPU and its driver
    python benchmarks/cuda_on_gpu.py --arch sm_90 --json FILE        both, where NVRTC is installed too

Talks to the driver's library directly; torch computes the references on the CPU. Every kernel runs three
times on each input at each shape, must agree bit for bit, stay inside its buffers and within the error bound.
Times are medians of device events at the size "gpu" of each problem; they are shown, not judged.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cupilot.device.base import NUMPY_TYPES, Array
from cupilot.device.cpu import launched
from cupilot.device.cuda_emulated.gate import pass_gate
from cupilot.evaluate.compare import compare
from cupilot.evaluate.inputs import Distribution, distributions, draw_inputs
from cupilot.evaluate.preparation import why_dead
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.rounding import rounding_of
from cupilot.evaluate.suite import raw_arrays
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Launch, Plan, TensorArg, Zero
from cupilot.kernel.tunables import first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.types import Failed, Signature

EXAMPLES = Path(__file__).parents[1] / "examples" / "cuda"
PATTERNS = ("own", "normal", "low bits", "negative", "position-coded", "wide", "sparse", "nan", "infinite")
REPEATS = 3
GUARD_BYTES = 4096
TARGET_BATCH_US = 2000.0
POINTER = "pointer"


@dataclass(frozen=True)
class Ready:
    """A compiled kernel file: entries and parameters ("pointer", or a numpy type) by launched name."""

    path: Path
    file: KernelFile
    cubin: bytes
    entries: Mapping[str, str]
    parameters: Mapping[str, tuple[str, ...]]


# ---- compiling ----
def compile_all(arch: str, only: str) -> Iterator[Ready]:
    for path in sorted(EXAMPLES.glob("*/*.cu")):
        if only not in str(path):
            continue
        file = parse_kernel(path.read_text())
        gated = pass_gate(
            file.source, file.source_line, launched(file.launch.statements), arch, first_point(file)
        )
        if isinstance(gated, Failed):
            raise SystemExit(f"{path}: {gated.reason}\n{gated.log}")
        kinds = {1: "f", 2: "i", 3: "u", 4: "u"}
        parameters = {
            name: tuple(
                POINTER if p.is_pointer else f"{kinds[p.kind.value]}{p.width_bytes}"
                for p in kernel.parameters
            )
            for name, kernel in gated.kernels.items()
        }
        entries = {name: kernel.entry for name, kernel in gated.kernels.items()}
        yield Ready(path, file, gated.cubin.read_bytes(), entries, parameters)


def store(folder: Path, arch: str, only: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, ready in enumerate(compile_all(arch, only)):
        (folder / f"{number}.cubin").write_bytes(ready.cubin)
        name = str(ready.path.relative_to(EXAMPLES))
        index.append({"name": name, "entries": ready.entries, "parameters": ready.parameters})
    (folder / "kernels.json").write_text(json.dumps(index))
    print(f"{len(index)} kernels compiled for {arch} in {folder}")


def stored(folder: Path, only: str) -> Iterator[Ready]:
    for number, item in enumerate(json.loads((folder / "kernels.json").read_text())):
        path = EXAMPLES / item["name"]
        if only in str(path):
            parameters = {name: tuple(kinds) for name, kinds in item["parameters"].items()}
            cubin = (folder / f"{number}.cubin").read_bytes()
            yield Ready(path, parse_kernel(path.read_text()), cubin, item["entries"], parameters)


# ---- the driver ----
class DriverError(Exception):
    pass


class Gpu:
    """The few calls of the CUDA driver that launching needs."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            raise DriverError(f"{function}: {(text.value or b'?').decode()} ({status})")

    def allocate(self, size_bytes: int) -> int:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size_bytes))
        return pointer.value

    def free(self, pointer: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def write(self, pointer: int, data: Array) -> None:
        data = np.ascontiguousarray(data)
        where = data.ctypes.data_as(ctypes.c_void_p)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), where, ctypes.c_size_t(data.nbytes))

    def read(self, pointer: int, into: Array) -> None:
        where = into.ctypes.data_as(ctypes.c_void_p)
        self.call("cuMemcpyDtoH_v2", where, ctypes.c_uint64(pointer), ctypes.c_size_t(into.nbytes))

    def fill(self, pointer: int, value: int, size_bytes: int) -> None:
        self.call("cuMemsetD8Async", ctypes.c_uint64(pointer), ctypes.c_ubyte(value),
                  ctypes.c_size_t(size_bytes), None)  # fmt: skip

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        return module

    def function(self, module: ctypes.c_void_p, entry: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def launch(self, function: ctypes.c_void_p, step: Launch, values: list[Any]) -> None:
        grid, block = (*step.grid, 1, 1)[:3], (*(step.block or (1,)), 1, 1)[:3]
        shared = step.attributes.get("shared", 0)
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, shared)
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values)
        )
        if step.attributes.get("cooperative", 0):
            self.call("cuLaunchCooperativeKernel", function, *grid, *block, shared, None, pointers)
        else:
            self.call("cuLaunchKernel", function, *grid, *block, shared, None, pointers, None)

    def synchronise(self) -> None:
        self.call("cuCtxSynchronize")

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def elapsed_ms(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        elapsed = ctypes.c_float()
        self.call("cuEventSynchronize", last)
        self.call("cuEventElapsedTime_v2" if hasattr(self._cuda, "cuEventElapsedTime_v2")
                  else "cuEventElapsedTime", ctypes.byref(elapsed), first, last)  # fmt: skip
        return elapsed.value


class Mounted:
    """A kernel file with its buffers at one signature."""

    def __init__(self, gpu: Gpu, ready: Ready, signature: Signature) -> None:
        self.gpu, self.ready, self.signature = gpu, ready, signature
        bound = bind(ready.file, signature, first_point(ready.file))
        self.plan: Plan = run(ready.file.launch, bound, grid_style=GridStyle.CUDA)
        self.module = gpu.load(ready.cubin)
        self.functions = {name: gpu.function(self.module, entry) for name, entry in ready.entries.items()}
        self.sizes = {
            t.name: t.size_bytes for t in (*signature.tensors, *signature.outputs, *self.plan.scratch)
        }
        self.at = {name: gpu.allocate(size + 2 * GUARD_BYTES) for name, size in self.sizes.items()}
        self.steps = [self._prepared(step) for step in self.plan.steps]
        for name, size in self.sizes.items():
            gpu.fill(self.at[name], 0xA5, size + 2 * GUARD_BYTES)

    def _address(self, name: str) -> int:
        return self.at[name] + GUARD_BYTES

    def _prepared(self, step: Launch | Zero) -> tuple[Launch | Zero, list[Any]]:
        if isinstance(step, Zero):
            return step, []
        kinds = self.ready.parameters[step.kernel]
        return step, [self._value(kind, given) for kind, given in zip(kinds, step.args, strict=True)]

    def _value(self, kind: str, given: TensorArg | int | float) -> Any:
        if isinstance(given, TensorArg):
            return ctypes.c_uint64(self._address(given.name))
        types: Mapping[str, Any] = {
            "f4": ctypes.c_float, "f8": ctypes.c_double, "i8": ctypes.c_int64, "u8": ctypes.c_uint64,
            "i4": ctypes.c_int32, "u4": ctypes.c_uint32, "i2": ctypes.c_int16, "u2": ctypes.c_uint16,
            "i1": ctypes.c_int8, "u1": ctypes.c_uint8,
        }  # fmt: skip
        return types[kind](given)

    def call(self) -> None:
        for step, values in self.steps:
            if isinstance(step, Zero):
                self.gpu.fill(self._address(step.name), 0, self.sizes[step.name])
            else:
                self.gpu.launch(self.functions[step.kernel], step, values)

    def write(self, tensors: Mapping[str, Array]) -> None:
        for name, data in tensors.items():
            self.gpu.write(self._address(name), data)

    def results(self, poison: int) -> dict[str, Array]:
        """One call on poisoned outputs and scratch."""
        for spec in (*self.signature.outputs, *self.plan.scratch):
            self.gpu.fill(self._address(spec.name), poison, spec.size_bytes)
        self.call()
        self.gpu.synchronise()
        found = {}
        for spec in self.signature.outputs:
            found[spec.name] = np.empty(spec.shape, NUMPY_TYPES[spec.dtype])
            self.gpu.read(self._address(spec.name), found[spec.name])
        return found

    def overrun(self) -> str | None:
        guard = np.empty(GUARD_BYTES, np.uint8)
        for name, size in self.sizes.items():
            for at in (self.at[name], self._address(name) + size):
                self.gpu.read(at, guard)
                if (guard != 0xA5).any():
                    return f"wrote outside {name}"
        return None

    def close(self) -> None:
        self.gpu.synchronise()
        for pointer in self.at.values():
            self.gpu.free(pointer)
        self.gpu.call("cuModuleUnload", self.module)


# ---- right or wrong ----
@cache
def problem_of(folder: Path, size: str | None) -> Problem:
    return load(str(folder / "problem.py"), size)


@cache
def materials(folder: Path) -> list[tuple[ShapeCase, str, dict[str, Array], Reference]]:
    """Inputs with their references; those that prove nothing are left out."""
    problem, found = problem_of(folder, None), []
    rounding = rounding_of(problem.precision)
    chosen = [d for d in distributions(problem) if d.pattern in PATTERNS]
    for case in problem.shapes:
        names = [spec.name for spec in case.signature.outputs]
        for seed, distribution in enumerate(chosen):
            tensors = draw_inputs(problem, case, distribution, 1000 + seed)
            reference = build_reference(
                problem.reference, tensors, names, rounding, coherent=distribution.is_coherent
            )
            if not why_dead(reference, distribution):
                found.append((case, distribution.name, raw_arrays(tensors), reference))
    return found


def judge(gpu: Gpu, ready: Ready) -> tuple[str, float, int]:
    """What is wrong ("" when nothing), the worst ratio to the bound, and the number of inputs tried."""
    worst, tried, mounted, shown = 0.0, 0, None, ""
    for case, name, tensors, reference in materials(ready.path.parent):
        if mounted is None or shown != case.name:
            if mounted is not None:
                mounted.close()
            mounted, shown = Mounted(gpu, ready, case.signature), case.name
        mounted.write(tensors)
        runs = [mounted.results(poison) for poison in (0xFF, 0x7B, 0x81)[:REPEATS]]
        tried += 1
        where = f"{case.name}, {name}"
        for spec, expected in zip(case.signature.outputs, reference.outputs, strict=True):
            raw = [found[spec.name] for found in runs]
            if any(raw[0].tobytes() != other.tobytes() for other in raw[1:]):
                return f"runs differ ({where})", math.inf, tried
            found = compare(raw[0], spec.dtype, expected)
            worst = max(worst, found.ratio)
            if not found.is_right:
                element = f"{spec.name}{list(found.index)} is {found.got}, not {found.expected}"
                return f"wrong ({where}): {element}", found.ratio, tried
        outside = mounted.overrun()
        if outside is not None:
            return f"{outside} ({where})", math.inf, tried
    if mounted is not None:
        mounted.close()
    return "", worst, tried


# ---- how fast ----
def time_us(gpu: Gpu, ready: Ready) -> tuple[float, float]:
    """Microseconds per call, and GB/s counting every tensor in and out once."""
    problem = problem_of(ready.path.parent, "gpu")
    mounted = Mounted(gpu, ready, problem.target)
    mounted.write(raw_arrays(draw_inputs(problem, problem.targets[0], Distribution("normal"), 1)))
    first, last = gpu.event(), gpu.event()

    def batch(calls: int) -> float:
        gpu.call("cuEventRecord", first, None)
        for _ in range(calls):
            mounted.call()
        gpu.call("cuEventRecord", last, None)
        return 1000 * gpu.elapsed_ms(first, last) / calls

    batch(3)
    calls = max(3, min(500, int(TARGET_BATCH_US / batch(3))))
    spent = statistics.median(batch(calls) for _ in range(7))
    moved = sum(t.size_bytes for t in (*problem.target.tensors, *problem.target.outputs))
    mounted.close()
    return spent, moved / spent / 1000


def eager_us(problem: Problem) -> float:
    """Microseconds of torch's own kernels for the reference, replayed as a graph so that dispatch is free."""
    if not torch.cuda.is_available():
        return math.nan
    drawn = draw_inputs(problem, problem.targets[0], Distribution("normal"), 1)
    tensors = {name: tensor.cuda() for name, tensor in drawn.items()}
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            problem.program.call(tensors)
        with torch.cuda.graph(graph, stream=stream):
            problem.program.call(tensors)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch(calls: int) -> float:
        first.record()
        for _ in range(calls):
            graph.replay()
        last.record()
        last.synchronize()
        return 1000 * first.elapsed_time(last) / calls

    batch(3)
    calls = max(3, min(500, int(TARGET_BATCH_US / batch(3))))
    return statistics.median(batch(calls) for _ in range(7))


@cache
def eager_of(folder: Path) -> float:
    try:
        return eager_us(problem_of(folder, "gpu"))
    except RuntimeError as error:
        print(f"eager cannot be timed: {str(error).splitlines()[0]}", file=sys.stderr)
        return math.nan


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--arch", default="sm_90")
    arguments.add_argument("--prepare", type=Path)
    arguments.add_argument("--prepared", type=Path)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--only", default="")
    chosen = arguments.parse_args()
    if chosen.prepare:
        store(chosen.prepare, chosen.arch, chosen.only)
        return 0
    gpu = Gpu()
    kernels = (
        stored(chosen.prepared, chosen.only) if chosen.prepared else compile_all(chosen.arch, chosen.only)
    )
    print(f"{gpu.name}\n\n| kernel | verdict | inputs | worst error of allowed | us | GB/s | eager us |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for ready in kernels:
        name = str(ready.path.relative_to(EXAMPLES))
        wrong, worst, tried = judge(gpu, ready)
        spent, rate = (math.nan, math.nan) if wrong else time_us(gpu, ready)
        eager = eager_of(ready.path.parent)
        rows.append({"kernel": name, "wrong": wrong, "worst": worst, "inputs": tried, "us": spent,
                     "gb_per_s": rate, "eager_us": eager})  # fmt: skip
        verdict = wrong or "right"
        print(
            f"| {name} | {verdict} | {tried} | {worst:.2g} | {spent:.1f} | {rate:.0f} | {eager:.1f} |",
            flush=True,
        )
        if chosen.json:
            chosen.json.write_text(json.dumps({"gpu": gpu.name, "kernels": rows}, indent=1))
    bad = sum(bool(row["wrong"]) for row in rows)
    print(f"\n{len(rows) - bad} of {len(rows)} kernels are right on {gpu.name}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
