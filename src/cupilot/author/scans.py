"""Kernels of running sums and products along one axis, with elementwise operators before and behind them.

Carries are in double precision, as the framework's are.
"""

from __future__ import annotations

from collections.abc import Sequence

from cupilot.author.expressions import Text
from cupilot.author.frame import TYPES, Call, Frame
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all
from cupilot.author.walks import Walk, Written

PIECE = "PIECE = 8192 | 2048 | 32768"
STRIP = "STRIP = 512 | 128 | 2048"
_WIDE = "doubles"


def write_scan(walk: Walk) -> Written:
    scanning = _Scanning(walk)
    if walk.over[0] != walk.frame.fine[-1]:
        return scanning.across()
    return scanning.in_pieces() if walk.style.two_level else scanning.along()


class _Scanning:
    def __init__(self, walk: Walk) -> None:
        self.walk, self.frame = walk, walk.frame
        self.index = walk.stage.rounds[0][0]
        node = walk.frame.node(self.index)
        words = node.name.split()
        self.source, self.is_reverse, self.is_exclusive = (
            node.args[0],
            "reverse" in words,
            "exclusive" in words,
        )
        self.op, self.sign, self.none = ("Sums", "+", "0") if words[0] == "sum" else ("Products", "*", "1")
        self.back = "true" if self.is_reverse else "false"
        self.frame.local |= {"here", "carry", "running", "row", "first", "last", "total", "all", "at"}
        if walk.style.vector:
            self.frame.needs |= {
                "vector",
                "padded",
                "scan" if walk.over[0] == walk.frame.fine[-1] else "doubles",
            }

    # -- along memory --------------------------------------------------------------------------------------

    def along(self) -> Written:
        """Every row by itself."""
        walk, extent = self.walk, self.frame.extent(self.walk.over[0])
        with walk.items(walk.kept, extent) as (places, grid):
            self._row(places, "0", extent, self.none)
        finish(walk)
        return walk.written(["block"], grid)

    def _row(self, places: Sequence[Place], begin: str, end: str, start: str) -> None:
        frame, axis, vector = self.frame, self.walk.over[0], self.walk.style.vector
        frame.line(f"double carry = {start};")

        def body(lane: Place) -> None:
            if self.is_reverse:
                mirrored = f"{begin} + {end} - {'LANES' if vector else '1'} - {lane.variable}"
                if vector:
                    mirrored = f"sizeof...(rest) ? {begin} : {mirrored}"
                frame.line(f"const long at = {mirrored};")
                lane = Place(axis, "at")
            (self._vector if vector else self._element)(places, lane)

        self.walk.lanes(axis, begin, end, body)

    def _vector(self, places: Sequence[Place], lane: Place) -> None:
        frame = self.frame
        frame.line(f"const {self.op} here = {self._scanned(self.walk, places, lane)};")
        after = f"template up_to<{self.back}>" if self.is_exclusive else "after"
        frame.line(f"const vec running = here.{after}(carry);")
        frame.line(f"carry {self.sign}= here.template all<{self.back}>();")
        self._store(Text("running"), places, lane)

    def _scanned(self, walk: Walk, places: Sequence[Place], lane: Place) -> str:
        value = walk.bodies.values([self.source], {}, places, lane)[0]
        padded = f"padded({walk.frame.expressions.splat(value)}, {self.none}, rest...)"
        return f"{self.op}::template of<{self.back}>({padded})"

    def _element(self, places: Sequence[Place], lane: Place) -> None:
        value = self.walk.bodies.values([self.source], {}, places, lane)[0]
        lines = [f"carry {self.sign}= {value.within(1)};", "const real running = carry;"]
        for line in reversed(lines) if self.is_exclusive else lines:
            self.frame.line(line)
        self._store(Text("running", scalar=True), places, lane)

    def _store(self, running: Text, places: Sequence[Place], lane: Place) -> None:
        store_all(self.walk, self.walk.stage.stores, {self.index: running}, places, lane)

    # -- several blocks for a row --------------------------------------------------------------------------

    def in_pieces(self) -> Written:
        """What each piece of a row adds up to; what comes before each piece; the pieces themselves."""
        walk, frame = self.walk, self.frame
        names, extent = frame.names, frame.extent(walk.over[0])
        walk.tune(PIECE)
        pieces, totals = names.free("pieces"), names.free("totals")
        rows = " * ".join(frame.extents[g] for g in walk.kept) or "1"
        walk.before += [f"{pieces} = cdiv({extent}, PIECE)", f"{totals} = scratch(({rows}, {pieces}), f64)"]
        blocks = f"{rows} * {pieces}"
        kernels = [self._totals(totals, pieces, blocks), self._carries(totals, pieces, rows)]
        places = self._piece(walk, pieces)
        self._row(places, "first", "last", f"{totals}[block]")
        finish(walk)
        head, arguments = frame.signature(walk.name, ["block"])
        head = head.replace("(long block", f"(long block, const double* {totals}", 1)
        call = Call(walk.name, (blocks,), (totals, *arguments), tuple(walk.before))
        return Written("\n\n".join([*kernels, frame.text(head)]), call, tuple(walk.tunables))

    def _piece(self, walk: Walk, pieces: str) -> list[Place]:
        frame, extent = walk.frame, walk.frame.extent(walk.over[0])
        frame.use(pieces)
        frame.line(f"const long row = block / {pieces}, first = block % {pieces} * PIECE;")
        frame.line(f"const long last = first + PIECE < {extent} ? first + PIECE : {extent};")
        return walk.placed("row", walk.kept) if walk.kept else []

    def _totals(self, totals: str, pieces: str, blocks: str) -> str:
        made = self.frame
        frame = Frame(made.program, made.stage, made.style, made.names, made.needs, made.pointers)
        walk = Walk(frame, made.names.free("piece_totals"))
        frame.local |= made.local
        places = self._piece(walk, pieces)
        frame.line(f"double total = {self.none};")

        def body(lane: Place) -> None:
            if walk.style.vector:
                frame.line(
                    f"total {self.sign}= {self._scanned(walk, places, lane)}.template all<{self.back}>();"
                )
            else:
                value = walk.bodies.values([self.source], {}, places, lane)[0]
                frame.line(f"total {self.sign}= {value.within(1)};")

        walk.lanes(walk.over[0], "first", "last", body)
        frame.line(f"{totals}[block] = total;")
        used = frame.program.closure([self.source])
        loaded = dict.fromkeys(frame.node(i).name for i in used if i in frame.loads)
        parameters = [f"const {TYPES[frame.program.tensors[t]]}* {frame.pointer(t)}" for t in loaded]
        parameters = [
            "long block",
            *parameters,
            f"double* {totals}",
            *(f"long {extent}" for extent in frame.used),
        ]
        self.walk.before.append(f"{walk.name}[{blocks}]({', '.join([*loaded, totals, *frame.used])})")
        self.walk.tunables += [t for t in walk.tunables if t not in self.walk.tunables]
        return frame.text(f'extern "C" void {walk.name}({", ".join(parameters)}) {{')

    def _carries(self, totals: str, pieces: str, rows: str) -> str:
        name = self.frame.names.free("piece_carries")
        self.walk.before.append(f"{name}[{rows}]({totals}, {pieces})")
        loop = "long p = pieces - 1; p >= 0; p--" if self.is_reverse else "long p = 0; p < pieces; p++"
        return f"""// Every piece's total becomes what comes before it.
extern "C" void {name}(long row, double* totals, long pieces) {{
    double carry = {self.none};
    for ({loop}) {{
        const double here = totals[row * pieces + p];
        totals[row * pieces + p] = carry;
        carry {self.sign}= here;
    }}
}}"""

    # -- across memory -------------------------------------------------------------------------------------

    def across(self) -> Written:
        """Neighbouring columns side by side, a strip of them in each block."""
        walk, frame = self.walk, self.frame
        *outer, lane = walk.kept
        strip, width = walk.tune(STRIP), frame.extent(lane)
        places = walk.placed("item", outer) if outer else []
        frame.line(f"const long first = strip * {strip};")
        frame.line(f"const long last = first + {strip} < {width} ? first + {strip} : {width};")
        if walk.style.line_by_line:
            self._lines(places, lane)
        else:
            self._columns(places, lane)
        finish(walk)
        count = " * ".join(frame.extents[g] for g in outer)
        grid = (f"cdiv({width}, {strip})", *([count] if outer else []))
        return walk.written(["strip", *(["item"] if outer else [])], grid)

    @property
    def _down(self) -> str:
        extent = self.frame.extent(self.walk.over[0])
        return (
            f"for (long at = {extent} - 1; at >= 0; at--)"
            if self.is_reverse
            else f"for (long at = 0; at < {extent}; at++)"
        )

    def _columns(self, places: Sequence[Place], group: tuple[int, ...]) -> None:
        """Down one column (or a vector of them) after the other."""
        frame, vector = self.frame, self.walk.style.vector

        def body(lane: Place) -> None:
            frame.line(
                f"{_WIDE} carry = {self.none} - {_WIDE}{{}};" if vector else f"double carry = {self.none};"
            )
            with frame.block(self._down):
                self._step([*places, Place(self.walk.over[0], "at")], lane, "carry")

        self.walk.lanes(group, "first", "last", body)

    def _lines(self, places: Sequence[Place], group: tuple[int, ...]) -> None:
        """Line by line in the order of memory; the carries of the strip wait in the first-level cache."""
        frame, vector = self.frame, self.walk.style.vector
        kind = _WIDE if vector else "double"
        frame.line(f"{kind} carries[STRIP{' / LANES' if vector else ''}];")
        frame.line(f"for ({kind}& carry : carries) carry = {self.none} - {kind}{{}};")
        with frame.block(self._down):
            here = [*places, Place(self.walk.over[0], "at")]

            def body(lane: Place) -> None:
                index = f"({lane.variable} - first)" + (" / LANES" if vector else "")
                self._step(here, lane, f"carries[{index}]")

            self.walk.lanes(group, "first", "last", body)

    def _step(self, places: Sequence[Place], lane: Place, carry: str) -> None:
        frame, vector = self.frame, self.walk.style.vector
        value = self.walk.bodies.values([self.source], {}, places, lane)[0]
        text, kind = (frame.expressions.splat(value), "vec") if vector else (value.text, "real")
        wide = f"__builtin_convertvector({text}, {_WIDE})" if vector else text
        shown = f"__builtin_convertvector({carry}, vec)" if vector else carry
        lines = [f"{carry} {self.sign}= {wide};", f"const {kind} running = {shown};"]
        for line in reversed(lines) if self.is_exclusive else lines:
            frame.line(line)
        self._store(Text("running", scalar=not vector), places, lane)
