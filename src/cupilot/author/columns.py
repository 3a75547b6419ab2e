"""Kernels that reduce across memory: vectors lie along what is kept, and a block owns a tile of columns.

Results of a tile stay in local arrays, one element per column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cupilot.author.accumulators import initial, is_place, is_wide, start, taken, vector_type
from cupilot.author.axes import Group
from cupilot.author.bodies import Known, flat
from cupilot.author.expressions import Text
from cupilot.author.frame import Frame
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all
from cupilot.author.rows import linear
from cupilot.author.walks import DOUBLE_LANES, LANES, Walk, Written

TILE = "TILE = 512 | 256 | 1024 | 2048"  # columns of a block
SWEPT_TILE = "TILE = 256 | 512 | 1024 | 2048"  # where it is swept more than once, and is to stay in the cache
_FLUSH = 256  # rows between two transfers to totals in double precision


def is_across(frame: Frame) -> bool:
    """Whether the stage reduces across memory, and is to be written with vectors."""
    over = frame.stage.over
    return bool(over) and frame.style.vector and bool(frame.fine) and frame.fine[-1][0] not in over


def write_columns(walk: Walk) -> Written:
    return _Columns(walk).write()


class _Columns:
    def __init__(self, walk: Walk) -> None:
        self.walk, self.frame, self.bodies = walk, walk.frame, walk.bodies
        *self.outer, self.lane = walk.kept
        walk.tune(DOUBLE_LANES if self.frame.program.is_double else LANES)
        self.sweeps = len(walk.stage.rounds) + any(map(walk.stage.is_map, walk.stage.stores))
        tile = TILE if self.sweeps == 1 else SWEPT_TILE
        self.tile = walk.tune(tile) if walk.style.tiles else "LANES"
        self.known: Known = {}
        self.frame.needs |= {"vector", "load", "store"}

    def write(self) -> Written:
        frame, walk, stage = self.frame, self.walk, self.walk.stage
        extent = frame.extent(self.lane)
        frame.line(f"const long first = tile * {self.tile};")
        frame.line(f"const long width = {extent} - first < {self.tile} ? {extent} - first : {self.tile};")
        places = walk.placed("block", self.outer) if self.outer else []
        roots = [frame.node(r).args[0] for level in stage.rounds for r in level]
        self.bodies.ahead(roots, {*stage.over, *self.lane}, self.known, places)
        maps = [s for s in stage.stores if stage.is_map(s)]
        for number, level in enumerate(stage.rounds, 1):
            self._settle([frame.node(r).args[0] for r in level], places)
            with self.bodies.prefetching(self._distance(number)):
                self._reduce(level, places)
        results = [s for s in stage.stores if not stage.is_map(s)]
        if maps:
            self._settle([s.node for s in maps], places)
            with walk.loops(walk.over) as more, self.bodies.prefetching(self._distance(self.sweeps)):
                self._lanes(lambda place: store_all(walk, maps, self.known, [*places, *more], place))
        for want in results:
            if is_place(frame.node(want.node).op):
                at = frame.offset(want.order, [*places, Place(self.lane, "(first + l)")])
                name = self.known[want.node].text
                frame.line(f"for (long l = 0; l < width; l++) {frame.pointer(want.name)}[{at}] = {name}[l];")
        plain = [want for want in results if not is_place(frame.node(want.node).op)]
        if plain:
            self._lanes(lambda place: store_all(walk, plain, self.known, places, place))
        finish(walk)
        tiles = f"cdiv({extent}, {self.tile})"
        if self.outer:
            return walk.written(["block", "tile"], (frame.extent(flat(self.outer)), tiles))
        return walk.written(["tile"], (tiles,))

    def _distance(self, number: int) -> str:
        """How far ahead a sweep asks. Of several over a tile the last asks for the next tile, the others find
        theirs in the cache."""
        if self.sweeps == 1:
            return "AHEAD"
        return self.tile if number == self.sweeps else ""

    def _lanes(self, body: Callable[[Place], None]) -> None:
        """The body for each vector of the tile; `j` is its first column there."""
        frame = self.frame
        name = frame.local_name("each")
        inline = "__attribute__((always_inline))"
        frame.line(f"const auto {name} = [&](long j, auto... rest) {inline} {{")
        with frame.deeper():
            body(Place(self.lane, "(first + j)"))
        frame.line("};")
        if not self.walk.style.tiles:
            frame.line(f"{name}(0, width);")
            return
        here = frame.local_name("v")
        frame.line(f"long {here} = 0;")
        frame.line(f"for (; {here} + LANES <= width; {here} += LANES) {name}({here});")
        frame.line(f"if ({here} < width) {name}({here}, width - {here});")

    def _array(self, index: int, text: str) -> None:
        """A value of every column, kept in an array."""
        frame = self.frame
        name = frame.local_name(f"{frame.node(index).op}1")
        frame.line(f"real {name}[{self.tile}];")
        frame.line(f"for (long l = 0; l < {self.tile}; l++) {name}[l] = {text};")
        self.known[index] = Text(f"load({name} + j)")

    def _settle(self, roots: Sequence[int], places: list[Place]) -> None:
        """Compute for every column what follows from results and does not vary along what is reduced."""
        frame = self.frame
        ready = [
            i
            for i in self.bodies.unmoved(roots, self.walk.stage.over, self.known)
            if self.bodies.is_ready(i, self.known) and self._follows(i) and frame.program.kind(i) == "real"
        ]
        names = {i: frame.local_name(f"{frame.node(i).op}1") for i in ready}
        for name in names.values():
            frame.line(f"real {name}[{self.tile}];")

        def body(place: Place) -> None:
            values = self.bodies.values(ready, self.known, places, place)
            for index, value in zip(ready, values, strict=True):
                frame.line(f"store({names[index]} + j, {frame.expressions.splat(value)});")

        if ready:
            self._lanes(body)
        self.known |= {i: Text(f"load({name} + j)") for i, name in names.items()}

    def _follows(self, index: int) -> bool:
        """Whether there is something to compute, from a reduction."""
        if index in self.known:
            return False
        return any(i in self.known for i in self.frame.program.closure([index], frozenset(self.known)))

    def _reduce(self, level: Sequence[int], places: list[Place]) -> None:
        frame, walk = self.frame, self.walk
        ops = {index: frame.node(index).op for index in level}
        parts = {index: frame.local_name("part") for index in level}
        totals = {index: frame.local_name("total") for index in level if is_wide(ops[index])}
        for index, name in parts.items():
            frame.line(f"{vector_type(ops[index])} {name}[{self.tile} / LANES];")
            frame.line(f"for (auto& p : {name}) p = {initial(ops[index], True)};")
        for index, name in totals.items():
            frame.line(f"double {name}[{self.tile}];")
            frame.line(f"for (double& t : {name}) t = {start(ops[index])};")
        args = [frame.node(index).args[0] for index in level]
        *outer, inner = walk.over
        with walk.loops(outer, places) as more, self._rows(inner, bool(totals), places) as (row, flush):
            inside = [*more, row]

            def body(place: Place) -> None:
                values = self.bodies.values(args, self.known, [*places, *inside], place)
                for (index, op), value in zip(ops.items(), values, strict=True):
                    where = f"ivec{{}} + (whole)({linear(walk, more, row)})"
                    target = f"{parts[index]}[j / LANES]"
                    text = frame.expressions.splat(value) if value.scalar else value.within(5)
                    frame.line(taken(op, target, text, where, frame.needs))

            self._lanes(body)
            flush.extend(self._flushing(ops[i], parts[i], totals[i]) for i in totals)
        for index, op in ops.items():
            name = parts[index]
            if is_place(op):
                found = frame.local_name("place")
                frame.line(f"long {found}[{self.tile}];")
                frame.line(
                    f"for (long l = 0; l < {self.tile}; l++) {found}[l] = {name}[l / LANES].at[l % LANES];"
                )
                self.known[index] = Text(found)
            elif op == "mean":
                count = frame.count(frame.node(index).over)
                self._array(index, f"(real)({totals[index]}[l] / ({count}))")
            elif is_wide(op):
                self._array(index, f"(real){totals[index]}[l]")
            else:
                self.known[index] = Text(f"{name}[j / LANES]")

    @contextmanager
    def _rows(self, group: Group, wide: bool, places: Sequence[Place]) -> Iterator[tuple[Place, list[str]]]:
        """A loop over one reduced group. Lines given to it run after every few rows."""
        frame, flush = self.frame, list[str]()
        first, extent = self.walk.range(group, places)
        name = frame.local_name("k")
        if not wide:
            with frame.block(f"for (long {name} = {first}; {name} < {extent}; {name}++)"):
                yield Place(group, name), flush
            return
        begin, end = frame.local_name("start"), frame.local_name("end")
        with frame.block(f"for (long {begin} = {first}; {begin} < {extent}; {begin} += {_FLUSH})"):
            frame.line(f"const long {end} = {begin} + {_FLUSH} < {extent} ? {begin} + {_FLUSH} : {extent};")
            with frame.block(f"for (long {name} = {begin}; {name} < {end}; {name}++)"):
                yield Place(group, name), flush
            for text in flush:
                frame.line(text)

    def _flushing(self, op: str, part: str, total: str) -> str:
        """Move what was gathered to the totals."""
        sign = "*" if op == "prod" else "+"
        one = f"((const real*){part})[l]"
        width = self.tile
        empty = f"for (auto& p : {part}) p = {initial(op, True)};"
        return f"for (long l = 0; l < {width}; l++) {total}[l] {sign}= {one}; {empty}"
