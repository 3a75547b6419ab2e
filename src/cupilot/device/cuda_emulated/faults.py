"""What the emulator found wrong, as a sentence for a person: where, who, what, and how to fix it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cupilot.device.cuda_emulated.encode.frame import FIRST_TENSOR_BUFFER, WORKSPACE_BUFFER
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.nvrtc import FILE_NAME

_LANES = 32


@dataclass(frozen=True)
class Fault:
    kind: str
    line: int  # of the kernel file; 0 when the compiler does not say
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    address: int
    what: str  # completes "thread ... of block ..."
    fix: str
    ptx: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}thread {self.thread} of block {self.block} {self.what}. {self.fix}"


@dataclass(frozen=True)
class Setting:
    """What the numbers in a fault refer to."""

    program: Program
    buffers: Mapping[int, str]  # tensors by buffer number
    block: tuple[int, int, int]
    grid: tuple[int, int, int]

    def line_of(self, instruction: int) -> int:
        place = self.program.places[instruction].place
        return place.line if place.file.endswith(FILE_NAME) else 0

    def thread_at(self, linear: int) -> tuple[int, int, int]:
        x, y, _ = self.block
        return linear % x, linear // x % y, linear // (x * y)

    def block_at(self, linear: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return linear % x, linear // x % y, linear // (x * y)


def explain(raw: Mapping[str, Any], setting: Setting) -> Fault:
    kind = raw["kind"]
    what, fix = _WORDS[kind](raw, setting)
    return Fault(
        kind=kind,
        line=setting.line_of(raw["ins"]),
        thread=_triple(raw["thread"]),
        block=_triple(raw["block"]),
        address=raw["address"],
        what=what,
        fix=fix,
        ptx=setting.program.places[raw["ins"]].text,
    )


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    return values[0], values[1], values[2]


def _tensor(number: int, setting: Setting) -> str:
    if number < FIRST_TENSOR_BUFFER:
        return "the grid's workspace" if number == WORKSPACE_BUFFER else "a constant of the module"
    return f"`{setting.buffers.get(number, 'no tensor')}`"


def _out_of_bounds(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
    verb = "writes" if raw["store"] else "reads"
    name, offset, size = _tensor(raw["buffer"], setting), raw["offset"], raw["size"]
    side = f"{-offset} bytes before the start" if offset < 0 else f"at byte {offset}, past the end"
    return (
        f"{verb} {raw['bytes']} bytes {side} of {name} ({size} bytes; address {raw['address']:#x})",
        "Compare the index with the tensor's extent before the access.",
    )


def _write_to_input(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
    name = _tensor(raw["buffer"], setting)
    if raw["buffer"] < FIRST_TENSOR_BUFFER:
        return (
            f"writes a `__device__` variable (address {raw['address']:#x}): nothing is kept between calls",
            "Use a scratch() tensor of the launch program.",
        )
    return (
        f"writes to the input {name} at byte {raw['offset']} (address {raw['address']:#x})",
        "Write to an output or to scratch().",
    )


def _simple(what: str, fix: str) -> Any:
    """Words whose placeholders are the fault's own fields."""

    def words(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
        known = dict(raw)
        if "other" in raw:
            other = (
                setting.block_at(raw["other"]) if "global" in raw["kind"] else setting.thread_at(raw["other"])
            )
            same_warp = raw["other"] // _LANES == _linear(raw["thread"], setting) // _LANES
            known["other"] = other
            known["barrier"] = "__syncwarp()" if same_warp else "__syncthreads()"
        if "buffer" in raw:
            known["tensor"] = _tensor(raw["buffer"], setting)
        if "other_ins" in raw:
            known["other_line"] = setting.line_of(raw["other_ins"])
        return what.format(**known), fix.format(**known)

    return words


def _linear(thread: Sequence[int], setting: Setting) -> int:
    x, y, _ = setting.block
    return thread[0] + x * (thread[1] + y * thread[2])


def _barrier_count(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
    fix = "All threads that meet at a barrier give the same count, a multiple of 32."
    if "expected" in raw:
        return (
            f"waits at barrier {raw['barrier']} for {raw['given']} threads, others for {raw['expected']}",
            fix,
        )
    return f"waits at barrier {raw['barrier']} for {raw['given']} threads", fix


def _deadlock(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
    waiting = raw["waiting"]
    places = sorted(
        {(setting.line_of(w["ins"]), setting.program.places[w["ins"]].opcode[0]) for w in waiting}
    )
    lines = ", ".join(f"line {line}" for line, _ in places if line) or "an unknown line"
    divergent = [w for w in waiting if w["converging"]]
    if divergent:
        missing = divergent[0]["missing"].bit_count()
        barrier = setting.program.places[divergent[0]["ins"]].opcode[0] in ("bar", "barrier")
        warp_barrier = "warp" in setting.program.places[divergent[0]["ins"]].opcode
        name = "__syncthreads()" if barrier and not warp_barrier else "a warp-wide operation"
        return (
            f"waits in {name} for {missing} threads of its warp that wait elsewhere (waiting at {lines})",
            "Move it out of the branch, so that all of these threads reach the same one.",
        )
    return (
        f"waits at a barrier that never completes: no thread of the block can go on (waiting at {lines})",
        "Let every thread that the barrier counts reach it.",
    )


def _runaway(raw: Mapping[str, Any], setting: Setting) -> tuple[str, str]:
    what = f"has not finished after {raw['executed']} warp instructions"
    if not setting.program.may_spin:
        return what, "Check that the loop ends."
    return what, (
        "Check that what it waits for can come. A block may only wait for blocks that began before it: "
        "number them with an atomic ticket, or launch with cooperative=1."
    )


_RACE_FIX = "Put {barrier} between the two accesses."
_GLOBAL_FIX = "Use an atomic, a second launch, or publish it with __threadfence() and an atomic flag."
_WORDS: Mapping[str, Any] = {
    "out-of-bounds": _out_of_bounds,
    "write-to-input": _write_to_input,
    "wild-address": _simple(
        "uses the address {address:#x}, which belongs to no tensor",
        "Check the pointer arithmetic of this access.",
    ),
    "out-of-bounds-shared": _simple(
        "accesses {bytes} bytes at byte {address} of {size} bytes of shared memory",
        "Compare the index with the array's extent, or give the launch a larger shared=.",
    ),
    "out-of-bounds-local": _simple(
        "accesses {bytes} bytes at byte {address} of its {size} bytes of local arrays",
        "Compare the index with the array's extent.",
    ),
    "misaligned": _simple(
        "accesses {bytes} bytes at the address {address:#x}, which is not a multiple of {bytes}",
        "Vector accesses need aligned addresses: row length and offset must be multiples of the vector.",
    ),
    "uninitialised-shared": _simple(
        "reads byte {address} of shared memory, which nobody has written in this block",
        "Write it first, also where the tile sticks out of the tensor.",
    ),
    "uninitialised-local": _simple(
        "reads byte {address} of its local arrays, which it has not written", "Initialise the array."
    ),
    "race-shared-read": _simple(
        "reads byte {address} of shared memory while thread {other} writes it (a race)", _RACE_FIX
    ),
    "race-shared-write": _simple(
        "writes byte {address} of shared memory while thread {other} writes it (a race)", _RACE_FIX
    ),
    "race-shared-write-after-read": _simple(
        "writes byte {address} of shared memory while thread {other} may still read it (a race)", _RACE_FIX
    ),
    "async-in-flight": _simple(
        "touches byte {address} of shared memory, where a copy of thread {other} is still in flight",
        "Wait for the copy (__pipeline_wait_prior, cp.async.wait_group), then __syncthreads().",
    ),
    "race-global-read": _simple(
        "reads byte {offset} of {tensor}, which block {other} writes in the same launch (a race)", _GLOBAL_FIX
    ),
    "race-global-write": _simple(
        "writes byte {offset} of {tensor}, which block {other} writes too in a launch (a race)", _GLOBAL_FIX
    ),
    "race-global-write-after-read": _simple(
        "writes byte {offset} of {tensor}, which block {other} reads in the same launch (a race)", _GLOBAL_FIX
    ),
    "divergent-barrier": _simple(
        "reaches this __syncthreads() while others of its block wait in the one at line {other_line}",
        "All threads of a block must reach the same __syncthreads(): move it out of the branch.",
    ),
    "barrier-count": _barrier_count,
    "barrier-number": _simple("uses barrier {barrier}: there are 16", "Use barriers 0 to 15."),
    "not-a-member": _simple(
        "takes part in a warp-wide operation whose mask {members:#010x} does not contain it",
        "Give the mask of the threads that execute it, computed before the branch.",
    ),
    "deadlock": _deadlock,
    "runaway": _runaway,
    "assert": _simple("fails the assertion `{condition}`", "The kernel's own condition does not hold."),
    "trap": _simple(
        "executes a trap", "The kernel stopped itself, or the compiler proved that it goes wrong here."
    ),
    "out-of-memory": _simple(
        "cannot start: too many blocks must run at the same time for this machine", "Launch fewer blocks."
    ),
    "async-alignment": _simple(
        "copies {bytes} bytes asynchronously with an address {address:#x} that is not a multiple of them",
        "Align both addresses to the size of the copy.",
    ),
    "incomplete-warp": _simple(
        "takes part in a matrix operation of only {lanes} of the 32 threads of its warp",
        "All 32 threads execute it: launch full warps, and move it out of branches.",
    ),
    "mbarrier": _simple("uses an mbarrier wrongly: {why}", "Initialise it once, before any thread arrives."),
}  # fmt: skip
