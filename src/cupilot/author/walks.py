"""How a kernel walks its stage: the blocks of the launch, the items of a block, the lanes of an item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from cupilot.author.axes import Group
from cupilot.author.bodies import Bodies, flat
from cupilot.author.frame import Call, Frame
from cupilot.author.layout import Place

BLOCK = "BLOCK = 65536 | 16384"
LANES, DOUBLE_LANES = "LANES = 16 | 8", "LANES = 8 | 4"
CHUNK = "CHUNK = 4096 | 8192 | 1024"  # elements between two transfers to the running totals
KEPT_CHUNK = "CHUNK = 8192 | 4096 | 1024"  # where exponentials are kept: fewer maxima to settle
KEEP = "KEEP = 131072 | 32768"  # elements of a row
AHEAD = "AHEAD = 1024 | 512 | 2048"  # elements
UNROLL = "UNROLL = 4 | 2 | 8"


@dataclass(frozen=True)
class Written:
    """A kernel's text, its launch, and the tunables that appear in them."""

    text: str
    call: Call
    tunables: tuple[str, ...]


class Walk:
    """What all kernels do alike. The kernels of a kind are functions over one of these."""

    def __init__(self, frame: Frame, name: str, hints: Mapping[Group, str] | None = None) -> None:
        self.frame, self.name = frame, name
        self.style, self.stage = frame.style, frame.stage
        self.bodies = Bodies(frame)
        self.kept = [g for g in frame.fine if g[0] not in frame.stage.over]
        self.over = [g for g in frame.fine if g[0] in frame.stage.over]
        self.tunables: list[str] = []
        self.before: list[str] = []
        names = (
            ["outer", "rows", "cols"] if len(frame.fine) < 4 else [f"n{i}" for i in range(len(frame.fine))]
        )
        ordinary = ["n"] if len(frame.fine) == 1 else names[-len(frame.fine) :] if frame.fine else []
        wanted = dict(zip(frame.fine, ordinary, strict=True)) | dict(hints or {})
        frame.name_extents(wanted.items())

    def tune(self, tunable: str) -> str:
        """The name of a tunable, which the kernel file then declares."""
        if tunable not in self.tunables:
            self.tunables.append(tunable)
        return tunable.split()[0]

    # -- items ---------------------------------------------------------------------------------------------

    @contextmanager
    def items(self, groups: Sequence[Group], each: str) -> Iterator[tuple[list[Place], tuple[str, ...]]]:
        """A loop over a block's share of the items of these groups, each of which has `each` elements.

        Yields the items' places; the grid is known then, too.
        """
        frame = self.frame
        if not groups:
            yield [], ("1",)
            return
        count = frame.extent(flat(groups))
        share = frame.use(frame.names.free("share"))
        self.before.append(f"{share} = max(1, {self.tune(BLOCK)} // max(1, {each}))")
        frame.line(f"const long last = (block + 1) * {share} < {count} ? (block + 1) * {share} : {count};")
        with frame.block(f"for (long item = block * {share}; item < last; item++)"):
            yield self.placed("item", groups), (f"cdiv({count}, {share})",)

    def placed(self, index: str, groups: Sequence[Group]) -> list[Place]:
        """The places that a running index stands for."""
        if len(groups) == 1:
            return [Place(groups[0], index)]
        places = []
        for at, group in enumerate(groups):
            inner = self.frame.extent(flat(groups[at + 1 :]))
            text = index if at == len(groups) - 1 else f"{index} / ({inner})"
            if at:
                text += f" % {self.frame.extent(group)}"
            name = self.frame.local_name("abcdefgh"[at])
            self.frame.line(f"const long {name} = {text};")
            places.append(Place(group, name))
        return places

    def range(self, group: Group, places: Sequence[Place]) -> tuple[str, str]:
        """From where to where a reduced group is walked: a part walks its share of the outermost."""
        frame, extent = self.frame, self.frame.extent(group)
        if self.stage.part is None or group != self.over[0]:
            return "0", extent
        parts = frame.extent((self.stage.part,))
        part = next(place.variable for place in places if self.stage.part in place.group)
        begin, end = frame.local_name("begin"), frame.local_name("stop")
        frame.line(f"const long {begin} = {extent} * {part} / {parts};")
        frame.line(f"const long {end} = {extent} * ({part} + 1) / {parts};")
        return begin, end

    @contextmanager
    def loops(self, groups: Sequence[Group], around: Sequence[Place] = ()) -> Iterator[list[Place]]:
        """Nested loops over groups."""
        with ExitStack() as stack:
            places = []
            for group in groups:
                name = self.frame.local_name("k")
                begin, end = self.range(group, around)
                head = f"for (long {name} = {begin}; {name} < {end}; {name}++)"
                stack.enter_context(self.frame.block(head))
                places.append(Place(group, name))
            yield places

    # -- lanes ---------------------------------------------------------------------------------------------

    def lanes(
        self,
        group: Group,
        begin: str,
        end: str,
        body: Callable[[Place], None],
        *,
        parts: bool = False,
        aligned: str = "",
    ) -> None:
        """Vectors (or single elements) of a group from `begin` to `end`. With `parts` the body may use `u`,
        the accumulator's number. `aligned`: a pointer; whole vectors then start where it is aligned."""
        frame = self.frame
        name = frame.local_name("i")
        if not self.style.vector:
            with frame.block(f"for (long {name} = {begin}; {name} < {end}; {name}++)"):
                body(Place(group, name))
            return
        frame.needs.add("vector")
        self.tune(DOUBLE_LANES if frame.program.is_double else LANES)
        each = frame.local_name("each")
        number = ", int u" if parts else ""
        frame.line(
            f"const auto {each} = [&](long {name}{number}, auto... rest) __attribute__((always_inline)) {{"
        )
        with frame.deeper():
            body(Place(group, name))
        frame.line("};")
        here = frame.local_name("j")
        frame.line(f"long {here} = {begin};")
        zero = ", 0" if parts else ""
        if aligned:
            frame.line(f"const long ahead = unaligned({aligned}, {end} - {here});")
            frame.line(f"if (ahead) {each}({here}{zero}, ahead);")
            frame.line(f"{here} += ahead;")
        if (parts and self.style.accumulators) or (not parts and self.style.unroll):
            unroll = self.tune(UNROLL)
            with frame.block(f"for (; {here} + {unroll} * LANES <= {end}; {here} += {unroll} * LANES)"):
                frame.line(f"#pragma GCC unroll {16}")
                argument = ", u" if parts else ""
                frame.line(f"for (int u = 0; u < {unroll}; u++) {each}({here} + u * LANES{argument});")
        frame.line(f"for (; {here} + LANES <= {end}; {here} += LANES) {each}({here}{zero});")
        frame.line(f"if ({here} < {end}) {each}({here}{zero}, {end} - {here});")

    # -- the result ----------------------------------------------------------------------------------------

    def written(
        self, coordinates: Sequence[str], grid: tuple[str, ...], extra: Sequence[str] = ()
    ) -> Written:
        head, arguments = self.frame.signature(self.name, coordinates, extra)
        if self.bodies.prefetches:
            self.tune(AHEAD)
        call = Call(self.name, grid, arguments, tuple(self.before))
        return Written(self.frame.text(head), call, tuple(self.tunables))
