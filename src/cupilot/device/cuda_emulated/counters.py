"""The emulator's raw counters as `device.counted` values: by line, by kind of instruction, by kernel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupilot.device.counted import Access, Counted, KernelCounts, Space
from cupilot.device.cuda_emulated.encode.frame import FIRST_TENSOR_BUFFER
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.gate import GatedKernel
from cupilot.device.cuda_emulated.nvrtc import FILE_NAME
from cupilot.device.cuda_emulated.occupancy import occupancy
from cupilot.device.cuda_emulated.ptx.model import Instruction
from cupilot.kernel.plan import Launch

_SECTOR_BYTES = 32
_TOTALS = 3  # barriers, atomics, conflicts, as native/emulator.cpp writes them
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "prefetch"})
_MATRIX = frozenset({"mma", "wmma"})
_CONTROL = frozenset({"bra", "brx", "call", "ret", "exit", "bar", "barrier", "membar", "fence", "nanosleep"})
_WARP = frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"})
_SPECIAL = frozenset({"ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt"})
_BITS = {"v2": 2, "v4": 4}

Words = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class Executed:
    """One kernel with its launches and what the emulator counted."""

    kernel: GatedKernel
    program: Program
    launches: tuple[Launch, ...]
    words: Words
    machine_code: Mapping[str, int]
    races_followed: bool


def digest(executed: Mapping[str, Executed], arch: str, multiprocessors: int) -> Counted:
    kernels = tuple(_kernel(name, one, arch) for name, one in executed.items() if one.launches)
    words = next(iter(executed.values())).words
    program = next(iter(executed.values())).program
    start = 2 * len(program.code) + 3 * len(program.sites)
    barriers, atomics, conflicts = (int(v) for v in words[start : start + _TOTALS])
    touched = words[start + _TOTALS + FIRST_TENSOR_BUFFER :]
    unique = int(touched.sum()) * _SECTOR_BYTES
    return Counted(kernels, barriers, atomics, conflicts, unique, multiprocessors)


def _kernel(name: str, one: Executed, arch: str) -> KernelCounts:
    program, words = one.program, one.words
    per_instruction = words[: 2 * len(program.code)].reshape(-1, 2)
    mix: Counter[str] = Counter()
    warps = lanes = 0
    for origin, (by_warp, by_lane) in zip(program.origins, per_instruction.tolist(), strict=True):
        if origin is not None and by_warp:
            mix[kind_of(origin)] += by_warp
            warps += by_warp
            lanes += by_lane
    sites = words[2 * len(program.code) : 2 * len(program.code) + 3 * len(program.sites)].reshape(-1, 3)
    largest = max(one.launches, key=lambda launch: math.prod(launch.grid))
    threads = math.prod(largest.block or (1,))
    shared = program.static_shared + largest.attributes.get("shared", 0)
    resources = one.kernel.resources
    fits = occupancy(arch, threads, resources.registers, shared)
    return KernelCounts(
        name=name,
        warp_instructions=warps,
        thread_instructions=lanes,
        mix=dict(mix.most_common()),
        accesses=tuple(
            access
            for position, counts in zip(program.sites, sites.tolist(), strict=True)
            if (access := _access(program.places[position], *counts)) is not None
        ),
        blocks=math.prod(largest.grid),
        threads=threads,
        registers=resources.registers,
        spilled_bytes=resources.spilled_bytes,
        shared_bytes=shared,
        occupancy=fits.fraction,
        limited_by=str(fits.limiter),
        machine_code=one.machine_code,
        races_followed=one.races_followed,
    )


def _access(ins: Instruction, requests: int, lanes: int, units: int) -> Access | None:
    """None for local memory and for what was never executed. Generic accesses count as global ones."""
    parts = ins.opcode
    if not requests or "local" in parts:
        return None
    shared = parts[0] != "cp" and any(part.startswith("shared") for part in parts)
    line = ins.place.line if ins.place.file.endswith(FILE_NAME) else 0
    space = Space.SHARED if shared or parts[0] in ("ldmatrix", "stmatrix") else Space.GLOBAL
    return Access(
        line, ins.text, space, _lane_bytes(ins), requests, lanes, units, parts[0] in ("atom", "red")
    )


def _lane_bytes(ins: Instruction) -> int:
    parts = ins.opcode
    if parts[0] == "cp":
        return int(ins.operands[2], 0)
    if parts[0] in ("ldmatrix", "stmatrix"):
        return 16
    if parts[0] == "wmma":
        return 16 if parts[-1] not in ("f32", "s32", "f64") else 32
    bits = 32 if parts[-1].endswith("x2") else int(parts[-1].lstrip("bfsu"))
    return bits // 8 * next((_BITS[part] for part in parts if part in _BITS), 1)


def kind_of(ins: Instruction) -> str:
    """The kind of unit that executes it, in words."""
    op, types = ins.opcode[0], ins.opcode[1:]
    for kind, members in (("memory", _MEMORY), ("matrix", _MATRIX), ("control", _CONTROL), ("warp", _WARP)):
        if op in members:
            return kind
    if op == "cvt":
        return "conversion"
    if op in _SPECIAL or "approx" in types:
        return "special"
    last = types[-1] if types else ""
    if last in ("f16", "f16x2", "bf16", "bf16x2"):
        return "half"
    return last if last in ("f32", "f64") else "integer"
