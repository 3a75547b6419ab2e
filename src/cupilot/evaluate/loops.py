"""Finds what is slow in the innermost loops of a kernel. One function per cause, from a loop to advice.

Gains are what the loop itself could win, estimated from instruction counts of a typical out-of-order core;
whether the loop matters, and how much the roofline leaves, the caller decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cupilot.device.assembly import Loop
from cupilot.evaluate.advice import Action, Advice, Tactic
from cupilot.roofline import Zone

_FMA_LATENCY, _FMA_PER_CYCLE, _ISSUE_PER_CYCLE = 4, 2, 4
_DIVIDE_COST = 8  # in multiply-adds
_LANES = 8  # f32 in the common vector
_VECTOR_LIBRARY = "_ZGV"  # how its functions begin
_BLOCK_COPIES = {"memcpy", "memmove", "memset"}
_ONE_INSTRUCTION = re.compile(r"(?:fmax|fmin|fabs|floor|ceil|trunc|rint|nearbyint|round|fma|sqrt)f?")


def loop_advice(loops: Iterable[Loop], zone: Zone) -> tuple[Advice, ...]:
    """For every cause, the loop that suffers most."""
    loops = tuple(loops)
    by_cause = ([advice for loop in loops if (advice := cause(loop, zone))] for cause in _CAUSES)
    return tuple(max(found, key=lambda advice: advice.expected_gain) for found in by_cause if found)


def _scalar(loop: Loop, zone: Zone) -> Advice | None:
    if not loop.scalar or loop.packed or loop.calls:
        return None
    action = Action(Tactic.VECTORIZE, "write the loop so that neighbours are computed together", _LANES)
    if loop.accumulators:
        why = "the fixed order of a floating-point sum forbids vectors: give every lane a sum of its own"
        action = Action(Tactic.MULTIPLE_ACCUMULATORS, why, _LANES)
    return Advice(f"{_name(loop)} works on one element at a time", (action,))


def _narrow(loop: Loop, zone: Zone) -> Advice | None:
    if not loop.packed or loop.vector_bits >= 256:
        return None
    why = "wider vectors: longer inner loops over contiguous memory"
    return Advice(
        f"{_name(loop)} uses {loop.vector_bits}-bit vectors",
        (Action(Tactic.VECTORIZE, why, 256 / max(loop.vector_bits, 64)),),
    )


def _calls(loop: Loop, zone: Zone) -> Advice | None:
    names = sorted(n for n in set(loop.calls) - _BLOCK_COPIES if not _ONE_INSTRUCTION.fullmatch(n))
    if not names:
        return None
    gain = 1.5 if all(name.startswith(_VECTOR_LIBRARY) for name in names) else float(_LANES)
    why = "a polynomial in line works on whole vectors and keeps registers alive"
    return Advice(
        f"{_name(loop)} calls {', '.join(names)} every time round",
        (Action(Tactic.INLINE_TRANSCENDENTALS, why, gain),),
    )


def _needless_calls(loop: Loop, zone: Zone) -> Advice | None:
    names = sorted(n for n in set(loop.calls) if _ONE_INSTRUCTION.fullmatch(n))
    if not names:
        return None
    why = "written out it is one vector instruction; the function minds NaN, signs and errno"
    return Advice(
        f"{_name(loop)} calls {', '.join(names)} every time round",
        (Action(Tactic.VECTORIZE, why, _LANES),),
    )


def _spills(loop: Loop, zone: Zone) -> Advice | None:
    """A call saves every vector register: then the call is the cause."""
    if not loop.spills or loop.calls:
        return None
    gain = 1 / (1 - min(0.75, 2 * loop.spills / loop.instructions))
    return Advice(
        f"{_name(loop)} keeps vectors on the stack: {loop.spills} of {loop.instructions} instructions",
        (Action(Tactic.REGISTER_TILE, "a smaller tile of accumulators fits the registers", gain),),
    )


def _divides(loop: Loop, zone: Zone) -> Advice | None:
    if not loop.divides:
        return None
    others = loop.instructions / _ISSUE_PER_CYCLE
    multiplies = loop.divides / _FMA_PER_CYCLE
    why = "multiply by a reciprocal computed once, or by an approximation that is refined"
    return Advice(
        f"{_name(loop)} divides or takes roots, {loop.divides} times a round",
        (Action(Tactic.AVOID_DIVISION, why, (others + multiplies * _DIVIDE_COST) / (others + multiplies)),),
    )


def _gathers(loop: Loop, zone: Zone) -> Advice | None:
    if not loop.gathers:
        return None
    why = "swap loops, or transpose a tile once, so that vectors load whole"
    return Advice(
        f"{_name(loop)} gathers single elements from memory",
        (Action(Tactic.CONTIGUOUS_ACCESS, why, _LANES / 2),),
    )


def _chains(loop: Loop, zone: Zone) -> Advice | None:
    busy = max(loop.arithmetic / _FMA_PER_CYCLE, loop.instructions / _ISSUE_PER_CYCLE)
    gain = loop.chain * _FMA_LATENCY / busy
    if not loop.packed or gain <= 1.2:
        return None
    return Advice(
        f"{_name(loop)} waits for its own sums: accumulators {loop.accumulators}, "
        f"dependent operations a round {loop.chain}",
        (
            Action(Tactic.MULTIPLE_ACCUMULATORS, "independent sums, added up after the loop", gain),
            Action(Tactic.UNROLL, "more independent work in one round", gain),
        ),
    )


def _reuse(loop: Loop, zone: Zone) -> Advice | None:
    """Arithmetic binds, yet every multiply-add brings a load of its own."""
    if zone not in (Zone.COMPUTE, Zone.MIDDLE) or not loop.packed or not 0 < loop.fused <= loop.loads:
        return None
    why = "a tile of outputs in registers uses every loaded value several times"
    return Advice(
        f"{_name(loop)} loads {loop.loads} times for {loop.fused} multiply-adds",
        (
            Action(Tactic.REGISTER_TILE, why, 2.0 * loop.loads / loop.fused),
            Action(Tactic.CACHE_TILES, "blocks that stay in the cache while they are reused", 1.5),
        ),
    )


_CAUSES: tuple[Callable[[Loop, Zone], Advice | None], ...] = (
    _scalar,
    _narrow,
    _calls,
    _needless_calls,
    _spills,
    _divides,
    _gathers,
    _chains,
    _reuse,
)


def _name(loop: Loop) -> str:
    return f"{'the inner loop' if loop.depth > 1 else 'the loop'} of {loop.function}"
