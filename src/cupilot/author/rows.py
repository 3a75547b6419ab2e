"""Kernels that reduce along memory: each item is a row (or several pieces), swept once or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cupilot.author.bodies import Known, flat
from cupilot.author.expressions import Text
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all, sweep
from cupilot.author.stages import is_pair
from cupilot.author.walks import UNROLL, Walk, Written

CHUNK = "CHUNK = 4096 | 1024 | 16384"  # elements between two transfers to the running totals
_START = {
    "sum": "0",
    "mean": "0",
    "prod": "1",
    "max": "-(real)__builtin_inf()",
    "min": "(real)__builtin_inf()",
}


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
        pairs: list[tuple[int, int, str]] = []
        behind = rounds[at + 1] if at + 1 < len(rounds) else []
        if walk.style.online:
            for tail in list(behind):
                for head in here:
                    kind = is_pair(walk.frame.program, head, tail)
                    if kind and all(head != h for h, _, _ in pairs):
                        pairs.append((head, tail, kind))
                        behind.remove(tail)
                        break
        alone = [r for r in here if all(r != h for h, _, _ in pairs)]
        if alone or pairs:
            made.append(Pass(tuple(alone), tuple(pairs)))
    return made


def write_rows(walk: Walk) -> Written:
    frame, stage = walk.frame, walk.stage
    with walk.items(walk.kept, frame.extent(flat(walk.over))) as (places, grid):
        known: Known = {}
        for one in passes(walk):
            _Reducing(walk, one, places, known).write()
        maps = [s for s in stage.stores if stage.is_map(s)]
        results = [s for s in stage.stores if not stage.is_map(s)]
        if maps:
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

    def __init__(self, walk: Walk, one: Pass, places: Sequence[Place], known: Known) -> None:
        self.walk, self.frame, self.one, self.places, self.known = walk, walk.frame, one, places, known
        self.nodes = walk.frame.program.nodes
        self.running: dict[int, str] = {}

    def write(self) -> None:
        frame = self.frame
        roots = [self.nodes[r].args[0] for r in self._all()]
        self.walk.bodies.ahead(roots, self.walk.stage.over, self.known, self.places)
        for index in self.one.alone:
            op = self.nodes[index].op
            name = self.running[index] = frame.local_name(
                {"sum": "total1", "mean": "total1"}.get(op, f"{op}1")
            )
            kind = "double" if op in ("sum", "mean", "prod") else "real"
            frame.line(f"{kind} {name} = {_START[op]};")
        for head, _, kind in self.one.pairs:
            name = self.running[head] = frame.local_name(kind)
            frame.needs.add(kind)
            frame.line(f"{kind.capitalize()} {name};")
        *outer, lane = self.walk.over
        with self.walk.loops(outer) as more:
            self._along(lane, [*self.places, *more])
        self._results()

    def _all(self) -> list[int]:
        return [*self.one.alone, *(r for head, tail, _ in self.one.pairs for r in (head, tail))]

    def _along(self, lane: tuple[int, ...], places: list[Place]) -> None:
        frame, extent = self.frame, self.frame.extent(lane)
        if not self.walk.style.vector and not self.one.pairs:
            self._simple(self.one.alone, lane, places, "0", extent, self.known)
            return
        chunk = self.walk.tune(CHUNK)
        start, end = frame.local_name("start"), frame.local_name("end")
        with frame.block(f"for (long {start} = 0; {start} < {extent}; {start} += {chunk})"):
            frame.line(f"const long {end} = {start} + {chunk} < {extent} ? {start} + {chunk} : {extent};")
            found = self._sums(
                [*self.one.alone, *(h for h, _, _ in self.one.pairs)], lane, places, start, end
            )
            self._into_running(found)
            if self.one.pairs:
                self._merge_pairs(found, lane, places, start, end)

    def _merge_pairs(
        self, found: dict[int, str], lane: tuple[int, ...], places: list[Place], start: str, end: str
    ) -> None:
        """The second halves around what the first halves are within this chunk."""
        frame, inside = self.frame, dict(self.known)
        for head, _, kind in self.one.pairs:
            name = frame.local_name("here")
            text = f"below({found[head]})" if kind == "peak" else f"{found[head]} / ({end} - {start})"
            frame.line(f"const real {name} = {text};")
            inside[head] = Text(name, scalar=True)
        saved, self.known = self.known, inside
        tails = self._sums([tail for _, tail, _ in self.one.pairs], lane, places, start, end)
        self.known = saved
        for head, tail, kind in self.one.pairs:
            first = found[head] if kind == "peak" else f"{end} - {start}, {inside[head].text}"
            frame.line(f"{self.running[head]}.add({first}, {tails[tail]});")

    def _sums(
        self, wanted: Sequence[int], lane: tuple[int, ...], places: list[Place], start: str, end: str
    ) -> dict[int, str]:
        """These reductions of one chunk, as expressions for one element."""
        if not wanted:
            return {}
        frame, vector = self.frame, self.walk.style.vector
        parts: dict[int, str] = {}
        many = vector and self.walk.style.accumulators
        for index in wanted:
            op = self.nodes[index].op
            name = parts[index] = frame.local_name("part")
            if not vector:
                frame.line(f"{'double' if op in ('sum', 'mean', 'prod') else 'real'} {name} = {_START[op]};")
            elif many:
                unroll = self.walk.tune(UNROLL)
                frame.line(f"vec {name}[{unroll}];")
                frame.line(f"for (vec& p : {name}) p = splat({_START[op]});")
            else:
                frame.line(f"vec {name} = splat({_START[op]});")
        self._simple(wanted, lane, places, start, end, self.known, parts)
        if not vector:
            return parts
        return {index: self._folded(index, name, many) for index, name in parts.items()}

    def _folded(self, index: int, part: str, many: bool) -> str:
        op, frame = self.nodes[index].op, self.frame
        if many:
            combined = _combined(op, f"{part}[0]", f"{part}[u]", frame.needs)
            frame.line(f"for (int u = 1; u < UNROLL; u++) {part}[0] = {combined};")
            part += "[0]"
        snippet = {"sum": "total", "mean": "total", "prod": "product", "max": "highest", "min": "lowest"}[op]
        frame.needs.add("highest" if op in ("max", "min") else "horizontal")
        name = frame.local_name("found")
        frame.line(f"const real {name} = {snippet}({part});")
        return name

    def _into_running(self, found: dict[int, str]) -> None:
        for index in self.one.alone:
            name = self.running[index]
            self.frame.line(
                f"{name} = {_combined(self.nodes[index].op, name, found[index], self.frame.needs)};"
            )

    def _simple(
        self,
        wanted: Sequence[int],
        lane: tuple[int, ...],
        places: list[Place],
        start: str,
        end: str,
        known: Known,
        into: dict[int, str] | None = None,
    ) -> None:
        """One loop that adds every element to where its reduction gathers."""
        frame, walk = self.frame, self.walk
        inside, targets = dict(known), into or self.running
        args = [self.nodes[r].args[0] for r in wanted]
        walk.bodies.ahead(args, lane, inside, places)
        many = walk.style.vector and walk.style.accumulators

        def body(place: Place) -> None:
            values = walk.bodies.values(args, inside, places, place)
            for index, value in zip(wanted, values, strict=True):
                op, target = self.nodes[index].op, targets[index] + ("[u]" if many else "")
                text = value.text
                if walk.style.vector:
                    frame.needs.add("padded")
                    text = f"padded({frame.expressions.splat(value)}, {_START[op]}, rest...)"
                frame.line(f"{target} = {_combined(op, target, text, frame.needs)};")

        walk.lanes(lane, start, end, body, parts=many)

    def _results(self) -> None:
        frame = self.frame
        for index in self.one.alone:
            op, name = self.nodes[index].op, self.running[index]
            if op == "mean":
                self._found(index, f"(real)({name} / ({frame.count(self.nodes[index].over)}))")
            else:
                self._found(index, name if op in ("max", "min") else f"(real){name}")
        for head, tail, kind in self.one.pairs:
            name = self.running[head]
            if kind == "peak":
                self._found(head, f"{name}.high")
                self._found(tail, f"(real){name}.sum")
            else:
                self._found(head, f"(real){name}.mean")
                mean = self.nodes[tail].op == "mean"
                self._found(tail, f"(real)({name}.squares{f' / {name}.count' if mean else ''})")

    def _found(self, index: int, text: str) -> None:
        name = self.frame.local_name({"sum": "sum1", "mean": "mean1"}.get(self.nodes[index].op, "found"))
        self.frame.line(f"const real {name} = {text};")
        self.known[index] = Text(name, scalar=True)


def _combined(op: str, one: str, two: str, needs: set[str]) -> str:
    match op:
        case "sum" | "mean":
            return f"{one} + {two}"
        case "prod":
            return f"{one} * ({two})"
    needs.add("extremes")
    return f"{'larger' if op == 'max' else 'smaller'}({two}, {one})"
