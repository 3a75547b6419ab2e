"""Advice from counts, for devices without a clock: what a kernel asks of memory, said by line.

Gains are upper estimates for kernels bound by what is counted, never predictions of a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cupilot.device.base import Died, Ring
from cupilot.device.counted import Access, Counted, Counting, KernelCounts, Space
from cupilot.evaluate.advice import Action, Advice, Tactic
from cupilot.evaluate.built import BuiltKernel
from cupilot.evaluate.inputs import Distribution, draw_inputs
from cupilot.evaluate.suite import raw_arrays
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Failed

_WASTE = 1.5  # units per least unit from which an access is worth naming
_SHARE = 0.1  # of all units of its space
_MOST_GAIN = 4.0
_MOST_ADVICE = 6
_REUSE = 2.0
_SCALAR_BYTES = 4


@dataclass(frozen=True)
class Digest:
    facts: Mapping[str, float | str]
    advice: tuple[Advice, ...]


def count(problem: Problem, built: BuiltKernel, case: ShapeCase) -> Digest | None:
    """One call on ordinary inputs; None where the device does not count."""
    opened = built.open(case.signature, Ring(1, 1))
    if isinstance(opened, Failed):
        return None
    with opened as session:
        if not isinstance(session, Counting):
            return None
        session.write(0, raw_arrays(draw_inputs(problem, case, Distribution("normal"), secrets.randbits(32))))
        if isinstance(session.run(0, 1), Died):
            return None
        counted = session.counted()
    return Digest(_facts(counted), advise(counted))


def advise(counted: Counted) -> tuple[Advice, ...]:
    """Most promising first."""
    found = [advice for kernel in counted.kernels for advice in _kernel(kernel, counted)]
    found += _reuse(counted)
    found += _atomics(counted)
    return tuple(sorted(found, key=lambda advice: -advice.expected_gain)[:_MOST_ADVICE])


def _facts(counted: Counted) -> Mapping[str, float | str]:
    every = [access for kernel in counted.kernels for access in kernel.accesses]
    outer = [access for access in every if access.space is Space.GLOBAL]
    shared = [access for access in every if access.space is Space.SHARED]
    warps = sum(kernel.warp_instructions for kernel in counted.kernels)
    facts: dict[str, float | str] = {
        "counted": "emulated, one call",
        "warp instructions": warps,
        "active lanes": _ratio(sum(k.thread_instructions for k in counted.kernels), 32 * warps),
        "global bytes asked": sum(access.asked_bytes for access in outer),
        "global bytes moved": sum(access.moved_bytes for access in outer),
        "global bytes touched": counted.unique_bytes,
        "sectors per request": _ratio(sum(a.units for a in outer), sum(a.requests for a in outer)),
        "wavefronts per shared request": _ratio(
            sum(a.units for a in shared), sum(a.requests for a in shared)
        ),
        "barriers": counted.barriers,
        "atomics": counted.atomics,
        "atomics at another lane's address": counted.atomic_conflicts,
    }
    for kernel in counted.kernels:
        mix = ", ".join(f"{kind} {_ratio(n, kernel.warp_instructions):.0%}" for kind, n in kernel.mix.items())
        facts[f"{kernel.name}: blocks"] = kernel.blocks
        facts[f"{kernel.name}: threads"] = kernel.threads
        facts[f"{kernel.name}: shared bytes"] = kernel.shared_bytes
        facts[f"{kernel.name}: occupancy"] = f"{kernel.occupancy:.0%}, limited by {kernel.limited_by}"
        facts[f"{kernel.name}: executed"] = mix
        if not kernel.races_followed:
            facts[f"{kernel.name}: races between blocks"] = "not followed here: too many blocks with fences"
        code = ", ".join(f"{opcode} {n}" for opcode, n in kernel.machine_code.items())
        facts[f"{kernel.name}: machine code"] = code
    return facts


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 3) if whole else 0.0


def _kernel(kernel: KernelCounts, counted: Counted) -> Iterator[Advice]:
    for space in Space:
        inside = [access for access in kernel.accesses if access.space is space]
        total = sum(access.units for access in inside)
        for access in inside:
            wasted = access.units - access.least_units
            heavy = access.units >= _SHARE * total and access.units > _WASTE * access.least_units
            if heavy and not access.is_atomic:
                yield _wasteful(kernel, access, min(_MOST_GAIN, total / max(1, total - wasted)))
    yield from _narrow(kernel)
    yield from _shape(kernel, counted)


def _wasteful(kernel: KernelCounts, access: Access, gain: float) -> Advice:
    units, least = access.units / access.requests, access.least_units / access.requests
    where = f"{kernel.name}, line {access.line}" if access.line else kernel.name
    if access.space is Space.GLOBAL:
        cause = f"{where}: {units:.1f} sectors per request where {least:.1f} would do (emulated)"
        why = "let neighbouring threads touch neighbouring addresses, or stage through shared memory"
        return Advice(cause, (Action(Tactic.COALESCED_ACCESS, why, gain),))
    cause = (
        f"{where}: bank conflicts, {units:.1f} wavefronts per request where {least:.1f} would do (emulated)"
    )
    actions = (
        Action(Tactic.SHARED_PADDING, "one more column shifts the rows to other banks", gain),
        Action(Tactic.SHARED_SWIZZLE, "exchange columns by an exclusive or with the row", gain),
    )
    return Advice(cause, actions)


def _narrow(kernel: KernelCounts) -> Iterator[Advice]:
    """Well-shaped accesses of four bytes or less, where sixteen at a time would spare instructions."""
    outer = [a for a in kernel.accesses if a.space is Space.GLOBAL and not a.is_atomic]
    scalar = [a for a in outer if a.lane_bytes <= _SCALAR_BYTES and a.units <= _WASTE * a.least_units]
    asked = sum(a.asked_bytes for a in outer)
    requests = sum(a.requests for a in scalar)
    if asked and sum(a.asked_bytes for a in scalar) > asked / 2 and 8 * requests > kernel.warp_instructions:
        share = requests / kernel.warp_instructions
        cause = (
            f"{kernel.name}: {share:.0%} of its instructions move {_SCALAR_BYTES} bytes or less (emulated)"
        )
        why = "16 bytes per thread and access: a quarter of the requests"
        yield Advice(cause, (Action(Tactic.WIDE_LOADS, why, 1 + share / 2),))


def _shape(kernel: KernelCounts, counted: Counted) -> Iterator[Advice]:
    if kernel.blocks < counted.multiprocessors:
        few = f"{kernel.name}: {kernel.blocks} blocks for {counted.multiprocessors} multiprocessors"
        gain = min(_MOST_GAIN, counted.multiprocessors / kernel.blocks)
        yield Advice(few, (Action(Tactic.PARALLEL_GRID, "spread the work over more blocks", gain),))
    if kernel.spilled_bytes:
        cause = f"{kernel.name}: {kernel.spilled_bytes} bytes of registers are spilled to memory"
        yield Advice(cause, (Action(Tactic.OCCUPANCY, "keep fewer values per thread", 1.5),))
    elif kernel.occupancy < 0.34:
        cause = f"{kernel.name}: {kernel.occupancy:.0%} of the warps fit, limited by {kernel.limited_by}"
        yield Advice(cause, (Action(Tactic.OCCUPANCY, f"use less of: {kernel.limited_by}", 1.3),))


def _reuse(counted: Counted) -> Iterator[Advice]:
    outer = [a for kernel in counted.kernels for a in kernel.accesses if a.space is Space.GLOBAL]
    moved = sum(access.moved_bytes for access in outer)
    if counted.unique_bytes and moved > _REUSE * counted.unique_bytes:
        times = moved / counted.unique_bytes
        cause = f"global memory is moved {times:.1f} times over (emulated, caches left out)"
        why = "load a tile once, let all threads of the block reuse it"
        yield Advice(cause, (Action(Tactic.SHARED_TILES, why, min(_MOST_GAIN, times / _REUSE)),))


def _atomics(counted: Counted) -> Iterator[Advice]:
    if counted.atomics and counted.atomic_conflicts > counted.atomics / 2:
        share = counted.atomic_conflicts / counted.atomics
        cause = f"{share:.0%} of {counted.atomics} atomics meet another lane's at the same address (emulated)"
        why = "add up inside the warp first, then let one lane do it"
        yield Advice(cause, (Action(Tactic.WARP_SHUFFLE, why, 1.5),))
