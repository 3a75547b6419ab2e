"""Kernels that reduce along memory: each item is a row (or several pieces), swept once or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cupilot.author.accumulators import (
    combined,
    folded,
    initial,
    is_place,
    scalar_type,
    start,
    taken,
    vector_type,
)
from cupilot.author.axes import Group
from cupilot.author.bodies import Known, flat
from cupilot.author.expressions import Text
from cupilot.author.keeping import Keeping
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all, sweep
from cupilot.author.stages import is_nan_with, is_pair
from cupilot.author.walks import AHEAD, CHUNK, UNROLL, Walk, Written


@dataclass(frozen=True)
class Pass:
    """One sweep: reductions by themselves, and pairs whose second half needs the first."""

    alone: tuple[int, ...]
    pairs: tuple[tuple[int, int, str], ...] = ()


def passes(walk: Walk) -> list[Pass]:
    """One per round; with online reductions pairs share one."""
    rounds = [list(r) for r in walk.stage.rounds]
    made: list[Pass] = []
    for at, here in enumerate(rounds):
        behind = rounds[at + 1] if at + 1 < len(rounds) else []
        pairs: list[tuple[int, int, str]] = []
        for head in here if walk.style.online else []:
            kinds = [(tail, is_pair(walk.frame.program, head, tail)) for tail in behind]
            tail, kind = next(((t, k) for t, k in kinds if k), (-1, None))
            if kind:
                pairs.append((head, tail, kind))
                behind.remove(tail)
        alone = [r for r in here if all(r != head for head, _, _ in pairs)]
        if alone or pairs:
            made.append(Pass(tuple(alone), tuple(pairs)))
    return made


def write_rows(walk: Walk) -> Written:
    frame, stage = walk.frame, walk.stage
    with walk.items(walk.kept, frame.extent(flat(walk.over))) as (places, grid):
        known: Known = {}
        maps = [s for s in stage.stores if stage.is_map(s)]
        results = [s for s in stage.stores if not stage.is_map(s)]
        found = passes(walk)
        keeping = Keeping.of(walk, [pair for one in found for pair in one.pairs], maps)
        for one in found:
            _Reducing(walk, one, places, known, keeping).write()
        with walk.bodies.prefetching(""):  # what was reduced is in the cache, or the hardware's to fetch
            if maps and keeping is not None:
                keeping.sweep(maps, known, places)
            elif maps:
                walk.bodies.ahead([s.node for s in maps], stage.over, known, places)
                *outer, lane = walk.over
                with walk.loops(outer) as more:
                    sweep(walk, maps, known, [*places, *more], lane, "0", frame.extent(lane))
        if results:
            store_all(walk, results, known, places, None)
    finish(walk)
    return walk.written(["block"], grid)


class _Reducing:
    """One pass over an item. What it finds goes to `known`, under names."""

    def __init__(
        self, walk: Walk, one: Pass, places: Sequence[Place], known: Known, keeping: Keeping | None
    ) -> None:
        self.walk, self.frame, self.one, self.places, self.known = walk, walk.frame, one, places, known
        self.keeping = keeping
        self.plain = {  # maxima that need not see NaN: their sums do
            head
            for head, tail, kind in one.pairs
            if kind == "peak" and is_nan_with(self.frame.program, walk.stage, head, tail)
        }
        self.vector = walk.style.vector
        self.many = walk.style.vector and walk.style.accumulators
        self.running: dict[int, str] = {}

    def op(self, index: int) -> str:
        return self.frame.node(index).op

    def write(self) -> None:
        frame, pairs = self.frame, self.one.pairs
        everything = [*self.one.alone, *(r for head, tail, _ in pairs for r in (head, tail))]
        roots = [frame.node(r).args[0] for r in everything]
        self.walk.bodies.ahead(roots, self.walk.stage.over, self.known, self.places)
        for index in self.one.alone:
            op = self.op(index)
            name = self.running[index] = frame.local_name("total" if op in ("sum", "mean") else f"{op}_all")
            frame.line(f"{scalar_type(op)} {name} = {initial(op, False)};")
        for head, _, kind in pairs:
            name = self.running[head] = frame.local_name(kind)
            frame.needs.add(kind)
            frame.line(f"{kind.capitalize()} {name};")
        *outer, lane = self.walk.over
        with self.walk.loops(outer, self.places) as more:
            self._along(lane, more)
        self._results()

    def _along(self, lane: Group, more: list[Place]) -> None:
        frame, alone = self.frame, self.one.alone
        first, extent = self.walk.range(lane, self.places)
        if not self.vector and not self.one.pairs:
            self._sweep(alone, lane, more, first, extent, self.known, self.running)
            return
        chunk = self.walk.tune(CHUNK)
        begin, end = frame.local_name("start"), frame.local_name("end")
        with frame.block(f"for (long {begin} = {first}; {begin} < {extent}; {begin} += {chunk})"):
            frame.line(f"const long {end} = {begin} + {chunk} < {extent} ? {begin} + {chunk} : {extent};")
            heads = [*alone, *(head for head, _, _ in self.one.pairs)]
            # The first sweep of a pair finds what the second one of the chunk before has asked for.
            with self.walk.bodies.prefetching("" if self.one.pairs else AHEAD.split()[0]):
                parts = self._parts(heads, lane, more, begin, end, self.known)
            for index in alone:
                self._into_running(index, parts[index], lane, more, begin)
            if self.one.pairs:
                self._merge_pairs(parts, lane, more, begin, end)

    def _merge_pairs(
        self, parts: dict[int, str], lane: Group, more: list[Place], begin: str, end: str
    ) -> None:
        """The second halves around what the first halves are within this chunk."""
        frame, inside = self.frame, dict(self.known)
        found = {head: self._folded(head, parts[head]) for head, _, _ in self.one.pairs}
        for head, _, kind in self.one.pairs:
            name = frame.local_name("here")
            text = f"below({found[head]})" if kind == "peak" else f"{found[head]} / ({end} - {begin})"
            frame.line(f"const real {name} = {text};")
            inside[head] = Text(name, scalar=True)
        if self.keeping is not None:
            self.keeping.chunk(begin, found)
        with self.walk.bodies.prefetching(f"({end} - {begin})"):
            tails = self._parts([tail for _, tail, _ in self.one.pairs], lane, more, begin, end, inside)
        for head, tail, kind in self.one.pairs:
            first = found[head] if kind == "peak" else f"{end} - {begin}, {inside[head].text}"
            frame.line(f"{self.running[head]}.add({first}, {self._folded(tail, tails[tail])});")

    def _parts(
        self, wanted: Sequence[int], lane: Group, more: list[Place], begin: str, end: str, known: Known
    ) -> dict[int, str]:
        """The names of what these reductions gather from one chunk."""
        frame, parts = self.frame, dict[int, str]()
        for index in wanted:
            op = self.op(index)
            name = parts[index] = frame.local_name("part")
            if self.many:
                frame.line(f"{vector_type(op)} {name}[{self.walk.tune(UNROLL)}];")
                frame.line(f"for (auto& p : {name}) p = {initial(op, True)};")
            elif self.vector:
                frame.line(f"{vector_type(op)} {name} = {initial(op, True)};")
            else:
                frame.line(f"{scalar_type(op)} {name} = {initial(op, False)};")
        if wanted:
            self._sweep(wanted, lane, more, begin, end, known, parts)
        return parts

    def _folded(self, index: int, part: str) -> str:
        """A part as one value."""
        op, frame = self.op(index), self.frame
        if not self.vector:
            return part
        part = self._joined(op, part)
        name = frame.local_name("found")
        frame.line(f"const real {name} = {folded(op, part, frame.needs)};")
        return name

    def _joined(self, op: str, part: str) -> str:
        """Several accumulators as one."""
        if not self.many:
            return part
        where = f"{part}[u].at" if is_place(op) else ""
        value = f"{part}[u].best" if is_place(op) else f"{part}[u]"
        step = taken(op, f"{part}[0]", value, where, self.frame.needs)
        self.frame.line(f"for (int u = 1; u < UNROLL; u++) {step}")
        return f"{part}[0]"

    def _into_running(self, index: int, part: str, lane: Group, more: list[Place], begin: str) -> None:
        op, frame, name = self.op(index), self.frame, self.running[index]
        if not is_place(op):
            found = self._folded(index, part)
            frame.line(f"{name} = {combined(op, name, found, frame.needs)};")
        elif self.vector:
            frame.needs.add("place")
            place = linear(self.walk, more, Place(lane, begin))
            frame.line(f"settle({name}, {self._joined(op, part)}, {place});")
        else:
            frame.line(f"{name}.add({part}.best, {part}.at);")

    def _sweep(
        self,
        wanted: Sequence[int],
        lane: Group,
        more: list[Place],
        begin: str,
        end: str,
        known: Known,
        into: dict[int, str],
    ) -> None:
        """One loop that adds every element to where its reduction gathers."""
        frame, walk, inside = self.frame, self.walk, dict(known)
        places = [*self.places, *more]
        args = [frame.node(r).args[0] for r in wanted]
        walk.bodies.ahead(args, lane, inside, places)

        def body(place: Place) -> None:
            values = walk.bodies.values(args, inside, places, place)
            for index, value in zip(wanted, values, strict=True):
                if self.keeping is not None and index == self.keeping.tail:
                    value = self.keeping.keep(value, place, begin)
                op, target, text = self.op(index), into[index] + ("[u]" if self.many else ""), value.within(5)
                where = linear(walk, more, place)
                if self.vector:
                    frame.needs.add("padded")
                    text = f"padded({frame.expressions.splat(value)}, {start(op)}, rest...)"
                    where = f"lanes() + (whole)({place.variable} - {begin})"
                step = "peak" if index in self.plain else op
                frame.line(taken(step, target, text, where, frame.needs))

        walk.lanes(lane, begin, end, body, parts=self.many)

    def _results(self) -> None:
        for index in self.one.alone:
            op, name = self.op(index), self.running[index]
            if op == "mean":
                count = self.frame.count(self.frame.node(index).over)
                self._found(index, f"(real)({name} / ({count}))")
            elif is_place(op):
                self.known[index] = Text(f"{name}.at", scalar=True)
            else:
                self._found(index, name if op in ("max", "min") else f"(real){name}")
        for head, tail, kind in self.one.pairs:
            name = self.running[head]
            if kind == "peak":
                self._found(head, f"{name}.high")
                self._found(tail, f"(real){name}.sum")
            else:
                self._found(head, f"(real){name}.mean")
                mean = self.op(tail) == "mean"
                self._found(tail, f"(real)({name}.squares{f' / {name}.count' if mean else ''})")

    def _found(self, index: int, text: str) -> None:
        name = self.frame.local_name(f"{self.op(index)}1")
        self.frame.line(f"const real {name} = {text};")
        self.known[index] = Text(name, scalar=True)


def linear(walk: Walk, outer: Sequence[Place], inner: Place) -> str:
    """The number of an element among those that are reduced."""
    text = ""
    for place in [*outer, inner]:
        text = f"({text}) * {walk.frame.extent(place.group)} + {place.variable}" if text else place.variable
    return text
