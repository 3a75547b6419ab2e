"""Exponentials that a row's sum is made of, kept for what is computed of each: none is computed twice.

The first elements of a row are kept, as many as stay in the cache, relative to the maximum of their chunk;
what lies behind them is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cupilot.author.bodies import Known
from cupilot.author.expressions import Text
from cupilot.author.layout import Place
from cupilot.author.maps import sweep
from cupilot.author.program import Output, Program
from cupilot.author.stages import Stage, is_pair
from cupilot.author.walks import KEEP, KEPT_CHUNK, Walk


def kept_pair(program: Program, stage: Stage) -> tuple[int, int] | None:
    """The maximum and the sum of exponentials, if the stage uses each of these again."""
    maps = [store.node for store in stage.stores if stage.is_map(store)]
    found = frozenset(index for level in stage.rounds for index in level)
    again = program.closure(maps, found) if maps else ()
    for head in found:
        for tail in found:
            if is_pair(program, head, tail) == "peak" and program.nodes[tail].args[0] in again:
                return head, tail
    return None


@dataclass(frozen=True)
class Keeping:
    """One maximum with its sum; the names of what is kept are the kernel's own."""

    walk: Walk
    head: int
    tail: int

    @staticmethod
    def of(walk: Walk, pairs: Sequence[tuple[int, int, str]], maps: Sequence[Output]) -> Keeping | None:
        """Also declares the arrays. None where rows come in pieces, or nothing is used again."""
        style, stage = walk.style, walk.stage
        pair = kept_pair(walk.frame.program, stage)
        if not style.keep or len(walk.over) != 1 or stage.part is not None or pair is None:
            return None
        if all((head, tail) != pair for head, tail, _ in pairs):
            return None
        frame, chunk, keep = walk.frame, walk.tune(KEPT_CHUNK), walk.tune(KEEP)
        frame.needs |= {"load", "store"}
        frame.line("// The last chunk is for the rest of a long row.")
        frame.line(f"alignas(64) real kept[{keep} + {chunk}], highs[{keep} / {chunk} + 1];")
        return Keeping(walk, *pair)

    def chunk(self, begin: str, found: Mapping[int, str]) -> None:
        """A chunk's maximum is known."""
        frame = self.walk.frame
        frame.line(f"const long slot = {begin} < KEEP ? {begin} : KEEP;")
        frame.line(f"highs[slot / CHUNK] = {found[self.head]};")

    def keep(self, value: Text, place: Place, begin: str) -> Text:
        """The value under a name; it is stored."""
        frame = self.walk.frame
        name = frame.local_name("power")
        frame.line(f"const vec {name} = {frame.expressions.splat(value)};")
        frame.line(f"store(kept + slot + ({place.variable} - {begin}), {name}, rest...);")
        return Text(name)

    def sweep(self, maps: Sequence[Output], known: Known, places: Sequence[Place]) -> None:
        """All stores: first of what was kept, then of the rest."""
        walk, frame = self.walk, self.walk.frame
        walk.bodies.ahead([s.node for s in maps], walk.stage.over, known, places)
        (lane,) = walk.over
        extent, term = frame.extent(lane), frame.node(self.tail).args[0]
        held, begin, end = (frame.local_name(name) for name in ("held", "start", "end"))
        frame.line(f"const long {held} = {extent} < KEEP ? {extent} : KEEP;")
        with frame.block(f"for (long {begin} = 0; {begin} < {held}; {begin} += CHUNK)"):
            frame.line(f"const long {end} = {begin} + CHUNK < {held} ? {begin} + CHUNK : {held};")
            frame.line(f"const real factor = std::exp(highs[{begin} / CHUNK] - {known[self.head].text});")

            def kept(place: Place) -> Known:
                return {term: Text(f"load(kept + {place.variable}, rest...) * factor", 5)}

            sweep(walk, maps, known | {term: Text("")}, places, lane, begin, end, kept)
        with frame.block(f"if ({held} < {extent})"):
            sweep(walk, maps, known, places, lane, held, extent)
