"""What comes before a blocked product: factors in panels and strips, a look for what zeros do not silence.

Also says what a product is, and which matrix of a batch `entry` stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.author.axes import Group
from cupilot.author.frame import TYPES, Frame
from cupilot.author.layout import Place
from cupilot.author.walks import Walk

WIDE, HIGH = "(COLS * LANES)", "(AREA // COLS)"  # of a tile, in the launch language
_PIECE = 65536  # elements that are looked through at once


@dataclass(frozen=True)
class Factor:
    node: int
    tensor: str
    order: Group


@dataclass(frozen=True)
class Product:
    """rows x depth times depth x cols, once for each of the outer axes."""

    total: int  # the node
    left: Factor
    right: Factor
    outer: tuple[Group, ...]
    rows: Group
    cols: Group
    depth: Group

    @property
    def names(self) -> dict[Group, str]:
        """For the extents."""
        outer = {g: f"batch{at}" if at else "batch" for at, g in enumerate(self.outer)}
        return {self.rows: "m", self.cols: "n", self.depth: "k"} | outer


class Packing:
    """The earlier launches of one product; their results have names where they are wanted."""

    def __init__(self, walk: Walk, product: Product) -> None:
        self.walk, self.frame, self.product = walk, walk.frame, product
        self.real = "f64" if walk.frame.program.is_double else "f32"
        names = walk.frame.names
        self.panels = names.free("panels") if walk.style.pack_right else ""
        self.strips = names.free("strips") if walk.style.pack_left else ""
        self.checked: list[
            tuple[str, str]
        ] = []  # for each tensor: where it is not finite, in how many pieces
        self.kernels: list[str] = []

    def _sub_frame(self) -> Frame:
        """Another kernel over the same stage."""
        frame = self.frame
        made = Frame(frame.program, frame.stage, frame.style, frame.names, frame.needs, frame.pointers)
        made.extents = frame.extents
        return made

    def pack_right(self) -> None:
        product, frame = self.product, self._sub_frame()
        frame.needs |= {"vector", "load", "store", "part", "tile"}
        right, (n, k) = product.right, (frame.extent(product.cols), frame.extent(product.depth))
        frame.line("const long left = panel * WIDTH;")
        places, index = self._entry(frame, right)
        to = f"({scaled(index, f'(({n} + WIDTH - 1) / WIDTH)')}panel) * {k} * WIDTH"
        frame.line(f"real* to = {self.panels} + {to};")
        frame.line(f"const Part part = {{1, {n} - left}};")
        at = frame.offset(
            right.order, [*places, Place(product.depth, "l"), Place(product.cols, "(left + v)")]
        )
        pointer = f"{frame.pointer(right.tensor)} + {at}"
        load = self._load(frame, right, pointer, "part.lanes_at(v)")
        start = "0"
        if frame.stride(right.order, product.depth) == "1":
            start = self._turned(frame, pointer, k, n)
        with frame.block(f"for (long l = {start}; l < {k}; l++)"):
            at_line = "to + l * WIDTH + v"
            frame.line(f"for (int v = 0; v < WIDTH; v += LANES) store({at_line}, {load});")
        self._packed(frame, "pack_right", right, self.panels, "panel", n, WIDE, k)

    def _turned(self, frame: Frame, pointer: str, k: str, n: str) -> str:
        """Whole panels of a factor that lies the other way round, square by square; how far that goes."""
        frame.needs.add("transpose")
        square, end = frame.local_name("square"), frame.local_name("squares_end")
        frame.line(f"const long {end} = left + WIDTH <= {n} ? {k} / LANES * LANES : 0;")
        with (
            frame.block("for (int v = 0; v < WIDTH; v += LANES)"),
            frame.block(f"for (long l = 0; l < {end}; l += LANES)"),
        ):
            frame.line(f"vec {square}[LANES];")
            frame.line("#pragma GCC unroll 32")
            each = pointer.replace("(left + v)", "(left + v + i)")
            frame.line(f"for (int i = 0; i < LANES; i++) {square}[i] = load({each});")
            frame.line(f"transpose({square});")
            frame.line("#pragma GCC unroll 32")
            frame.line(f"for (int i = 0; i < LANES; i++) store(to + (l + i) * WIDTH + v, {square}[i]);")
        return end

    def _load(self, frame: Frame, factor: Factor, pointer: str, lanes: str) -> str:
        stride = frame.stride(factor.order, self.product.cols)
        if stride == "1":
            return f"load({pointer}, {lanes})"
        frame.needs.add("load_strided")
        return f"load_strided({pointer}, {stride}, {lanes})"

    def pack_left(self) -> None:
        product, frame = self.product, self._sub_frame()
        left, (m, k) = product.left, (frame.extent(product.rows), frame.extent(product.depth))
        places, index = self._entry(frame, left)
        to = f"({scaled(index, f'(({m} + ROWS - 1) / ROWS)')}strip) * {k} * ROWS"
        frame.line(f"real* to = {self.strips} + {to};")
        frame.line(f"const long there = {m} - strip * ROWS;")
        at = frame.offset(
            left.order, [*places, Place(product.rows, "(strip * ROWS + i)"), Place(product.depth, "l")]
        )
        value = f"i < there ? {frame.pointer(left.tensor)}[{at}] : 0"
        rows, depth = "for (long i = 0; i < ROWS; i++)", f"for (long l = 0; l < {k}; l++)"
        along = frame.stride(left.order, product.depth) == "1"
        with frame.block(rows if along else depth):  # the inner loop reads in the order of memory
            frame.line(f"{depth if along else rows} to[l * ROWS + i] = {value};")
        self._packed(frame, "pack_left", left, self.strips, "strip", m, HIGH, k)

    def _packed(
        self,
        frame: Frame,
        title: str,
        factor: Factor,
        scratch: str,
        what: str,
        extent: str,
        each: str,
        depth: str,
    ) -> None:
        """The head of a packing kernel, its scratch and its launch."""
        name = frame.names.free(title)
        entries = self._entries(factor)
        coordinates = [what, *(["entry"] if entries else [])]
        dtype = TYPES[frame.program.tensors[factor.tensor]]
        parameters = [f"long {c}" for c in coordinates]
        parameters += [f"const {dtype}* {frame.pointer(factor.tensor)}", f"real* {scratch}"]
        parameters += [f"long {extent}" for extent in frame.used]
        self.kernels.append(frame.text(f'extern "C" void {name}({", ".join(parameters)}) {{'))
        count = f"cdiv({extent}, {each})"
        shape = f"({' * '.join([*([entries] if entries else []), count])}, {depth}, {each})"
        grid = ", ".join([count, *([entries] if entries else [])])
        arguments = ", ".join([factor.tensor, scratch, *frame.used])
        self.walk.before += [f"{scratch} = scratch({shape}, {self.real})", f"{name}[{grid}]({arguments})"]

    def outer_of(self, factor: Factor) -> list[Group]:
        return [g for g in self.product.outer if g[-1] in factor.order]

    def _entries(self, factor: Factor) -> str:
        """How many matrices there are of this factor; nothing for one."""
        return " * ".join(self.frame.extents[g] for g in self.outer_of(factor))

    def _entry(self, frame: Frame, factor: Factor) -> tuple[list[Place], str]:
        """The places of matrix number `entry`, and that number."""
        mine = self.outer_of(factor)
        if not mine:
            return [], ""
        return placed(frame, mine), "entry"

    def check(self, tensor: str) -> None:
        """An earlier launch that looks for what zeros do not silence: NaN and infinities."""
        walk, names, frame = self.walk, self.frame.names, self._sub_frame()
        frame.needs |= {"vector", "load"}
        name, spoiled, pieces = names.free("check"), names.free("spoiled"), names.free("pieces")
        frame.line(f"const long last = (block + 1) * {_PIECE} < count ? (block + 1) * {_PIECE} : count;")
        frame.line("ivec bad = {};")
        with frame.block(f"for (long i = block * {_PIECE}; i < last; i += LANES)"):
            frame.line("const vec found = i + LANES <= last ? load(x + i) : load(x + i, last - i);")
            frame.line("bad |= found - found != vec{};")
        frame.line(f"{spoiled}[block] = 0;")
        frame.line(f"for (int l = 0; l < LANES; l++) if (bad[l]) {spoiled}[block] = 1;")
        dtype = TYPES[frame.program.tensors[tensor]]
        head = f'extern "C" void {name}(long block, const {dtype}* x, real* {spoiled}, long count) {{'
        self.kernels.append(frame.text(head))
        walk.before += [
            f"{pieces} = cdiv({tensor}.numel, {_PIECE})",
            f"{spoiled} = scratch(({pieces},), {self.real})",
            f"{name}[{pieces}]({tensor}, {spoiled}, {tensor}.numel)",
        ]
        self.checked.append((spoiled, pieces))


def placed(frame: Frame, groups: list[Group] | tuple[Group, ...]) -> list[Place]:
    """The places that `entry` stands for."""
    if len(groups) == 1:
        return [Place(groups[0], "entry")]
    places = []
    for at, group in enumerate(groups):
        inner = " * ".join(frame.extent(g) for g in groups[at + 1 :])
        name = frame.local_name(f"entry{at}")
        text = f"entry / ({inner})" if inner else "entry"
        frame.line(f"const long {name} = {text}{f' % {frame.extent(group)}' if at else ''};")
        places.append(Place(group, name))
    return places


def running(frame: Frame, groups: list[Group], places: list[Place]) -> str:
    """The running index over these groups."""
    text = ""
    for group in groups:
        here = next(p.variable for p in places if p.group == group)
        text = f"({text} * {frame.extent(group)} + {here})" if text else here
    return text


def scaled(index: str, each: str) -> str:
    return f"{index} * {each} + " if index else ""


def times(variable: str, factor: str) -> str:
    return variable if factor == "1" else f"{variable} * {factor}"
