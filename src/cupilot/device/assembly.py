"""Reads what the compiler made of a kernel: the innermost loops of a library and what happens in them.

Loops come from the control flow of a disassembly. Nothing is known here about which loop is hot, how often
it runs or what it costs. Understands x86-64 only; elsewhere, and without objdump, there is nothing to read.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cupilot.device.instructions import Instruction, parse_instruction
from cupilot.device.jail import run_jailed


@dataclass(frozen=True)
class Loop:
    """An innermost loop; counts are instructions in its body."""

    function: str
    address: int
    depth: int  # 1 for a loop that is in no other loop
    instructions: int
    vector_bits: int  # widest register worked on as a whole; 0 without any
    packed: int  # arithmetic on whole vectors
    scalar: int  # floating-point arithmetic on one element at a time
    fused: int  # multiply-adds and dot products
    divides: int  # and square roots, floating-point and integer
    gathers: int
    streaming_stores: int
    spills: int  # accesses to vectors that are kept on the stack
    loads: int
    stores: int
    accumulators: int  # registers that carry a sum, product or extremum from round to round
    chain: int  # operations per round on the busiest accumulator: each waits for the one before
    calls: tuple[str, ...]
    operations: frozenset[str]

    @property
    def arithmetic(self) -> int:
        return self.packed + self.scalar


_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_NOT_THE_KERNEL = re.compile(
    r"_init|_fini|_start|(?:de)?register_tm_clones|__do_global_dtors_aux|frame_dummy|cupilot_.*|.*@plt.*|\.plt.*"
)


def innermost_loops(library: Path, work: Path) -> tuple[Loop, ...] | None:
    """None where nothing can be read (no binutils, not x86-64). `work` is a folder to work in."""
    objdump = shutil.which("objdump")
    if objdump is None:
        return None
    listing = run_jailed([objdump, "-d", "--no-show-raw-insn", str(library)], work, read=[library])
    if listing.status != 0 or listing.ended or "x86-64" not in listing.output:
        return None
    return read_loops(listing.output)


def read_loops(listing: str) -> tuple[Loop, ...]:
    """All innermost loops of an `objdump -d --no-show-raw-insn` listing, in order."""
    return tuple(loop for name, body in _functions(listing) for loop in _loops(name, body))


def main_loops(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Without the scalar loops that only finish what a vector loop of the same function leaves over."""
    loops = tuple(loops)

    def finishes(loop: Loop, main: Loop) -> bool:
        return (
            main.function == loop.function
            and main.packed > 0
            and loop.operations <= main.operations
            and (main.accumulators > 0 or loop.accumulators == 0)
        )

    return tuple(
        loop
        for loop in loops
        if loop.packed or not loop.scalar or loop.calls or not any(finishes(loop, main) for main in loops)
    )


def facts(loops: Iterable[Loop]) -> Mapping[str, float]:
    """What the loops show together: evidence for tactics, and figures for people."""
    loops = main_loops(loops)
    if not loops:
        return {}
    packed, arithmetic = sum(loop.packed for loop in loops), sum(loop.arithmetic for loop in loops)
    return {
        "vector_bits": max(loop.vector_bits for loop in loops),
        "vector_share": packed / arithmetic if arithmetic else 1.0,
        "fused": sum(loop.fused for loop in loops),
        "divides": sum(loop.divides for loop in loops),
        "gathers": sum(loop.gathers for loop in loops),
        "streaming_stores": sum(loop.streaming_stores for loop in loops),
        "spills": sum(loop.spills for loop in loops),
        "calls": sum(len(loop.calls) for loop in loops),
        "accumulators": max(loop.accumulators for loop in loops),
        "loop_depth": max(loop.depth for loop in loops),
    }


def _functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    name, body = "", list[Instruction]()
    for line in [*listing.splitlines(), "0 <end>:"]:
        if header := _FUNCTION.match(line):
            if body and not _NOT_THE_KERNEL.fullmatch(name):
                yield name, body
            name, body = header[1], []
        elif instruction := parse_instruction(line):
            body.append(instruction)


def _loops(function: str, body: list[Instruction]) -> Iterator[Loop]:
    natural = _natural_loops(body)
    has_frame = any(i.mnemonic == "mov" and i.operands == ("%rsp", "%rbp") for i in body)
    for _, inside in sorted(natural.items()):
        if not any(other < inside for other in natural.values()):
            depth = sum(inside <= other for other in natural.values())
            yield _describe(function, depth, [body[i] for i in sorted(inside)], has_frame)


def _natural_loops(body: Sequence[Instruction]) -> dict[int, frozenset[int]]:
    """Head -> everything on a way from it to a jump back to it, as positions in `body`.

    A jump back that cannot be reached from where it goes is no loop, only code that was laid out backwards.
    One into the middle of a loop around it is no loop of its own either: its head can be bypassed, and so
    the way back leads to the function's entry. With no other loop around, it is one entered in its middle.
    """
    position = {instruction.address: i for i, instruction in enumerate(body)}
    before, after = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    jumps_back: list[tuple[int, int]] = []
    for i, instruction in enumerate(body):
        target = position.get(instruction.jump_target or -1)
        for follower in (i + 1 if instruction.falls_through else None, target):
            if follower is not None:
                before[follower].append(i)
                after[i].append(follower)
        if target is not None and target <= i:
            jumps_back.append((target, i))
    loops: dict[int, frozenset[int]] = {}
    bypassed: dict[int, frozenset[int]] = {}
    for head, jump in jumps_back:
        ahead, back = _reach(head, after), _reach(jump, before, stop=head)
        if jump in ahead:
            found = bypassed if 0 in back else loops
            found[head] = found.get(head, frozenset()) | back & ahead | {head}
    alone = {h: inside for h, inside in bypassed.items() if not any(h in other for other in loops.values())}
    return loops | alone


def _reach(start: int, edges: Mapping[int, list[int]], stop: int | None = None) -> frozenset[int]:
    seen, todo = set[int](), [start]
    while todo:
        i = todo.pop()
        if i not in seen and i != stop:
            seen.add(i)
            todo += edges.get(i, ())
    return frozenset(seen)


def _describe(function: str, depth: int, body: Sequence[Instruction], has_frame: bool) -> Loop:
    chains = _chains(body)
    return Loop(
        function=function,
        address=body[0].address,
        depth=depth,
        instructions=len(body),
        vector_bits=max(i.vector_bits for i in body),
        packed=sum(i.is_packed for i in body),
        scalar=sum(i.is_scalar for i in body),
        fused=sum(i.is_fused for i in body),
        divides=sum(i.is_divide for i in body),
        gathers=sum(i.is_gather for i in body),
        streaming_stores=sum(i.is_streaming_store for i in body),
        spills=sum(i.is_spill(has_frame) for i in body),
        loads=sum(i.is_load for i in body),
        stores=sum(i.is_store for i in body),
        accumulators=len(chains),
        chain=max(chains.values(), default=0),
        calls=tuple(i.callee for i in body if i.is_call),
        operations=frozenset[str]().union(*(i.operations for i in body)),
    )


def _chains(body: Sequence[Instruction]) -> Mapping[str, int]:
    """Accumulators, with the number of operations on each in one round.

    A register that is read before it is first written brings a value along. If arithmetic then updates it,
    and nothing overwrites it, that value is a running sum, product or extremum.
    """
    overwritten = set[str]()
    updates = Counter[str]()
    for instruction in body:
        reads, writes = instruction.vectors_used()
        if instruction.is_packed or instruction.is_scalar:
            updates.update(reads & writes - overwritten)
        for register in writes - reads:
            overwritten.add(register)
            updates.pop(register, None)
    return updates
