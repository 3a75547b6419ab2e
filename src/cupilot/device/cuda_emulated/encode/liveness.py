"""Packs virtual registers into slots: two registers share one when no lane can need both at the same time.

Liveness is followed over the control-flow graph, per lane as in scalar code: lanes never read each other's
slots except through instructions that all of them execute.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterator

from cupilot.device.cuda_emulated.encode.builder import Builder, Emitted, Reg

_ENDS = ("bra", "bra.if", "exit", "guard")


def allocate(builder: Builder) -> tuple[dict[int, int], int]:
    """Register number -> slot, and the number of slots. A 64-bit register takes two neighbouring slots."""
    code = builder.code
    starts = _block_starts(builder)
    live_in = _solve(builder, starts)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    wide: dict[int, bool] = {}
    for block, start in enumerate(starts):
        end = starts[block + 1] if block + 1 < len(starts) else len(code)
        for position in range(start, end):
            for reg in _registers(code[position]):
                wide[reg.number] = reg.wide
                first.setdefault(reg.number, position)
                last[reg.number] = position
    for block, start in enumerate(starts):
        end = starts[block + 1] if block + 1 < len(starts) else len(code)
        out = _join(live_in, _successors(code, starts, builder.labels, block))
        for live, at in ((live_in[block], start), (out, end - 1)):
            for number in _members(live):
                first[number] = min(first[number], at)
                last[number] = max(last[number], at)
    return _scan(first, last, wide)


def _scan(first: dict[int, int], last: dict[int, int], wide: dict[int, bool]) -> tuple[dict[int, int], int]:
    slots: dict[int, int] = {}
    free: dict[bool, list[int]] = {False: [], True: []}
    active: list[tuple[int, int]] = []
    count = 0
    for number in sorted(first, key=lambda n: first[n]):
        while active and active[0][0] < first[number]:
            _, done = heapq.heappop(active)
            free[wide[done]].append(slots[done])
        pool = free[wide[number]]
        if pool:
            slots[number] = pool.pop()
        else:
            slots[number] = count
            count += 2 if wide[number] else 1
        heapq.heappush(active, (last[number], number))
    return slots, count


def _registers(emitted: Emitted) -> Iterator[Reg]:
    for value in (*emitted.fields.values(), *emitted.extra):
        if isinstance(value, Reg):
            yield value


def _writes(emitted: Emitted) -> set[int]:
    found = {
        value.number
        for value in (*emitted.fields.values(), *emitted.extra)
        if isinstance(value, Reg) and value.out
    }
    destination = emitted.fields.get("dst")
    if isinstance(destination, Reg):
        found.add(destination.number)
    return found


def _reads(emitted: Emitted, writes: set[int]) -> set[int]:
    fields = (value for name, value in emitted.fields.items() if name != "dst")
    found = {value.number for value in (*fields, *emitted.extra) if isinstance(value, Reg) and not value.out}
    return found | writes if emitted.guarded else found  # lanes the guard excludes keep what they had


def _block_starts(builder: Builder) -> list[int]:
    starts = {0, *(at for at in builder.labels.values() if at < len(builder.code))}
    starts |= {at + 1 for at, e in enumerate(builder.code[:-1]) if e.op in _ENDS}
    return sorted(starts)


def _successors(code: list[Emitted], starts: list[int], labels: dict[str, int], block: int) -> list[int]:
    end = starts[block + 1] if block + 1 < len(starts) else len(code)
    final = code[end - 1]
    found = []
    if final.op not in ("bra", "exit") and block + 1 < len(starts):
        found.append(block + 1)
    if final.target is not None and labels[final.target] < len(code):
        found.append(_block_at(starts, labels[final.target]))
    return found


def _block_at(starts: list[int], position: int) -> int:
    return bisect.bisect_right(starts, position) - 1


def _solve(builder: Builder, starts: list[int]) -> list[int]:
    """Registers needed at the start of each block, as bits of an integer."""
    code = builder.code
    uses, kills, successors = [], [], []
    for block, start in enumerate(starts):
        end = starts[block + 1] if block + 1 < len(starts) else len(code)
        use = kill = 0
        for emitted in code[start:end]:
            writes = _writes(emitted)
            for number in _reads(emitted, writes):
                use |= (1 << number) & ~kill
            for number in writes:
                kill |= 1 << number
        uses.append(use)
        kills.append(kill)
        successors.append(_successors(code, starts, builder.labels, block))
    live_in = list(uses)
    changed = True
    while changed:
        changed = False
        for block in range(len(starts) - 1, -1, -1):
            needed = uses[block] | (_join(live_in, successors[block]) & ~kills[block])
            if needed != live_in[block]:
                live_in[block], changed = needed, True
    return live_in


def _join(live_in: list[int], blocks: list[int]) -> int:
    joined = 0
    for block in blocks:
        joined |= live_in[block]
    return joined


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
