"""Blocked matrix products: tiles of the result in registers, factors in panels, blocks for the caches.

A tile is ROWS x COLS vectors of the result. At the edges there is less of it: a `Part`.
"""

from __future__ import annotations

from cupilot.author.expressions import Text
from cupilot.author.frame import TYPES, Call
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all
from cupilot.author.packing import HIGH, WIDE, Packing, Product, placed, running, scaled, times
from cupilot.author.walks import DOUBLE_LANES, LANES, Walk, Written
from cupilot.author.zeros import zeros
from cupilot.types import DType

COLS = "COLS = 3 | 4 | 2 | 5 | 1"  # vectors
AREA = "AREA = 24 | 28 | 20 | 12 | 16 | 8"  # vectors
STRIPS = "STRIPS = 32 | 8 | 128"
PANELS = "PANELS = 16 | 64 | 4"
DEPTH = "DEPTH = 384 | 256 | 512 | 192"


def write_tiles(walk: Walk, product: Product) -> Written:
    return _Tiles(walk, product).write()


class _Tiles:
    def __init__(self, walk: Walk, product: Product) -> None:
        self.walk, self.frame, self.style, self.product = walk, walk.frame, walk.style, product
        double = self.frame.program.is_double
        for tunable in (DOUBLE_LANES if double else LANES, COLS, AREA):
            walk.tune(tunable)
        self.before = Packing(walk, product)
        self.real, self.panels, self.strips = self.before.real, self.before.panels, self.before.strips
        self.partial = ""
        left, right = self.frame.node(product.left.node), self.frame.node(product.right.node)
        self.zeros = zeros(self.frame.program, walk.stage, product.total, left, right)

    def write(self) -> Written:
        if self.panels:
            self.before.pack_right()
        if self.strips:
            self.before.pack_left()
        if self.style.skip_zeros and (self.zeros.begins or self.zeros.ends):
            for tensor in dict.fromkeys((self.product.left.tensor, self.product.right.tensor)):
                self.before.check(tensor)
        call = self._multiply()
        return Written("\n\n".join(self.before.kernels), call, tuple(self.walk.tunables))

    # -- multiplying ---------------------------------------------------------------------------------------

    def _multiply(self) -> Call:
        product, frame, style = self.product, self.frame, self.style
        frame.needs |= {"vector", "load", "store", "part", "tile"}
        m, n, k = (frame.extent(g) for g in (product.rows, product.cols, product.depth))
        frame.local |= {
            "tile",
            "strip",
            "panel",
            "entry",
            "top",
            "left",
            "i",
            "j",
            "l",
            "v",
            "factor",
            "line",
            "sums",
            "found",
        }
        frame.local |= {"part", "from", "to", "settle", "kept"}
        frame.local |= {"nonzero_from", "nonzero_to", "all_finite"}
        outer = placed(frame, product.outer)
        if self.before.checked:
            frame.line("bool all_finite = true;")
        for spoiled, pieces in self.before.checked:
            test = f"all_finite = all_finite && {spoiled}[t] == 0;"
            frame.line(f"for (long t = 0; t < {frame.use(pieces)}; t++) {test}")
        self._settle(outer)
        self._tile(outer, m, n, k)
        self._blocks(m, n, k)
        if frame.needs & {"stream"}:
            finish(self.walk)
        coordinates = ["strip", "panel", *(["entry"] if product.outer else [])]
        head, arguments = self._signature(coordinates)
        self.before.kernels.append(frame.text(head))
        high, wide = HIGH, WIDE
        if style.cache_tiles:
            high, wide = f"({self.walk.tune(STRIPS)} * {HIGH})", f"({self.walk.tune(PANELS)} * {WIDE})"
        grid = [f"cdiv({m}, {high})", f"cdiv({n}, {wide})"]
        if product.outer:
            grid.append(" * ".join(frame.extents[g] for g in product.outer))
        return Call(self.walk.name, tuple(grid), arguments, tuple(self.walk.before))

    def _settle(self, outer: list[Place]) -> None:
        """What becomes of finished sums: the rest of the chain, and the stores."""
        frame, product = self.frame, self.product
        frame.line(
            "const auto settle = [&](long i, long j, vec sum, auto... rest) __attribute__((always_inline)) {"
        )
        with frame.deeper():
            places, lane = [*outer, Place(product.rows, "i")], Place(product.cols, "j")
            store_all(self.walk, self.walk.stage.stores, {product.total: Text("sum")}, places, lane)
        frame.line("};")
        if self.style.depth_blocks:
            self._keep(outer)

    @property
    def _is_plain(self) -> bool:
        """Whether the sums themselves are all that is stored."""
        stores = self.walk.stage.stores
        wanted = DType.F64 if self.frame.program.is_double else DType.F32
        return len(stores) == 1 and stores[0].node == self.product.total and stores[0].dtype is wanted

    def _keep(self, outer: list[Place]) -> None:
        """Where unfinished sums wait: in the result if it can hold them."""
        frame, product, stores = self.frame, self.product, self.walk.stage.stores
        wanted = DType.F64 if frame.program.is_double else DType.F32
        fitting = next((s for s in stores if s.dtype is wanted), None)
        if fitting is not None:
            at = frame.offset(fitting.order, [*outer, Place(product.rows, "i"), Place(product.cols, "j")])
            pointer = frame.pointer(fitting.name)
        else:
            self.partial = pointer = frame.names.free("partial")
            m, n = frame.extent(product.rows), frame.extent(product.cols)
            at = f"({scaled('entry' if product.outer else '', m)}i) * {n} + j"
            count = " * ".join([*(frame.extents[g] for g in product.outer), m])
            self.walk.before.append(f"{pointer} = scratch(({count}, {n}), {self.real})")
        frame.line(f"const auto kept = [&](long i, long j) {{ return {pointer} + {at}; }};")

    def _tile(self, outer: list[Place], m: str, n: str, k: str) -> None:
        frame = self.frame
        blocks = self.style.depth_blocks
        head = "long top, long left, " + ("long from, long to, " if blocks else "")
        frame.line(f"const auto tile = [&]({head}auto... part) __attribute__((always_inline)) {{")
        with frame.deeper():
            left = self._left_pointer(outer, m, k)
            right = self._right_pointer(outer, n, k)
            frame.line("vec sums[ROWS][COLS] = {};")
            if blocks:
                with frame.block("if (from > 0)"):
                    self._each_sum(
                        "sums[i][v] = load(kept(top + i, left + v * LANES), part.lanes_at(v * LANES)...);"
                    )
            span = self._span(k)
            with frame.block(f"for (long {span}; l++)"):
                frame.line("vec line[COLS];")
                frame.line("#pragma GCC unroll 8")
                frame.line(f"for (int v = 0; v < COLS; v++) line[v] = {right};")
                frame.line("#pragma GCC unroll 32")
                with frame.block("for (int i = 0; i < ROWS; i++)"):
                    frame.line(f"const real factor = {left};")
                    frame.line("#pragma GCC unroll 8")
                    frame.line("for (int v = 0; v < COLS; v++) sums[i][v] += factor * line[v];")
            if blocks:
                with frame.block(f"if (to < {k})"):
                    self._each_sum(
                        "if ((part.has(i, v * LANES) && ...)) "
                        "store(kept(top + i, left + v * LANES), sums[i][v], part.lanes_at(v * LANES)...);"
                    )
                    frame.line("return;")
            self._finished()
        frame.line("};")

    def _span(self, k: str) -> str:
        """The depth of a tile; less of it where the strategy skips known zeros."""
        frame, style = self.frame, self.style
        begin, end = ("from", "to") if style.depth_blocks else ("0", k)
        if not style.skip_zeros:
            return f"l = {begin}; l < {end}"
        found = self.zeros
        frame.line(f"long nonzero_from = {begin}, nonzero_to = {end};")
        for text in found.begins:
            frame.line(f"if (all_finite && nonzero_from < {text}) nonzero_from = {text};")
        for text in found.ends:
            frame.line(f"if (all_finite && nonzero_to > {text}) nonzero_to = {text};")
        for text in found.empty:
            frame.line(f"if ({text}) nonzero_to = 0;")
        return "l = nonzero_from; l < nonzero_to"

    def _each_sum(self, line: str) -> None:
        self.frame.line("#pragma GCC unroll 32")
        self.frame.line("for (int i = 0; i < ROWS; i++)")
        self.frame.line("#pragma GCC unroll 8")
        self.frame.line(f"    for (int v = 0; v < COLS; v++) {line}")

    def _finished(self) -> None:
        """Sums leave the registers one by one; a longer chain runs over them in memory, as one loop."""
        inside = "if ((part.has(i, v * LANES) && ...)) "
        place = "top + i, left + v * LANES"
        if self._is_plain:
            self._each_sum(f"{inside}settle({place}, sums[i][v], part.lanes_at(v * LANES)...);")
            return
        self.frame.line("alignas(64) real found[ROWS][WIDTH];")
        self._each_sum("store(&found[i][v * LANES], sums[i][v]);")
        self.frame.line("for (int i = 0; i < ROWS; i++)")
        self.frame.line("#pragma GCC unroll 1")
        at = "load(&found[i][v * LANES])"
        self.frame.line(
            f"    for (int v = 0; v < COLS; v++) {inside}settle({place}, {at}, part.lanes_at(v * LANES)...);"
        )

    def _left_pointer(self, outer: list[Place], m: str, k: str) -> str:
        """A line that says where the tile's rows begin; element (i, l) of them."""
        frame, product, left = self.frame, self.product, self.product.left
        if self.strips:
            index = running(frame, self.before.outer_of(left), outer)
            base = f"({scaled(index, f'(({m} + ROWS - 1) / ROWS)')}top / ROWS) * {k} * ROWS"
            frame.line(f"const real* const strip_at = {self.strips} + {base};")
            return "strip_at[l * ROWS + i]"
        base = frame.offset(left.order, [*outer, Place(product.rows, "top")])
        frame.line(f"const auto* const rows_at = {frame.pointer(left.tensor)} + {base};")
        row, step = frame.stride(left.order, product.rows), frame.stride(left.order, product.depth)
        return f"rows_at[{times('row_of(i, part...)', row)} + {times('l', step)}]"

    def _right_pointer(self, outer: list[Place], n: str, k: str) -> str:
        """A line that says where the tile's columns begin; vector (l, v) of them."""
        frame, product, right = self.frame, self.product, self.product.right
        if self.panels:
            index = running(frame, self.before.outer_of(right), outer)
            base = f"({scaled(index, f'(({n} + WIDTH - 1) / WIDTH)')}left / WIDTH) * {k} * WIDTH"
            frame.line(f"const real* const panel_at = {self.panels} + {base};")
            return "load(panel_at + (l * COLS + v) * LANES)"
        base = frame.offset(right.order, [*outer, Place(product.cols, "left")])
        frame.line(f"const auto* const cols_at = {frame.pointer(right.tensor)} + {base};")
        step, stride = frame.stride(right.order, product.depth), frame.stride(right.order, product.cols)
        pointer = f"cols_at + {times('l', step)} + {times('v * LANES', stride)}"
        if stride == "1":
            return f"load({pointer}, part.lanes_at(v * LANES)...)"
        frame.needs.add("load_strided")
        return f"load_strided({pointer}, {stride}, part.lanes_at(v * LANES)...)"

    def _blocks(self, m: str, n: str, k: str) -> None:
        """The tiles of a block: one, or many that share panels in the caches."""
        frame, span = self.frame, ""
        whole = f"top + ROWS <= {m} && left + WIDTH <= {n}"
        part = f"Part{{{m} - top < ROWS ? {m} - top : ROWS, {n} - left < WIDTH ? {n} - left : WIDTH}}"
        if not self.style.cache_tiles:
            frame.line("const long top = strip * ROWS, left = panel * WIDTH;")
            frame.line(f"if ({whole}) tile(top, left);")
            frame.line(f"else tile(top, left, {part});")
            return
        frame.line("const long first = strip * STRIPS * ROWS, begin = panel * PANELS * WIDTH;")
        frame.line(f"const long bottom = first + STRIPS * ROWS < {m} ? first + STRIPS * ROWS : {m};")
        frame.line(f"const long end = begin + PANELS * WIDTH < {n} ? begin + PANELS * WIDTH : {n};")
        if self.style.depth_blocks:
            self.walk.tune(DEPTH)
            frame.line(f"for (long from = 0; from < {k}; from += DEPTH)")
            span = f", from, from + DEPTH < {k} ? from + DEPTH : {k}"
        frame.line("for (long left = begin; left < end; left += WIDTH)")
        with frame.block("for (long top = first; top < bottom; top += ROWS)"):
            frame.line(f"if ({whole}) tile(top, left{span});")
            frame.line(f"else tile(top, left{span}, {part});")

    def _signature(self, coordinates: list[str]) -> tuple[str, tuple[str, ...]]:
        """Tensors are read as they are unless they are packed."""
        frame, product = self.frame, self.product
        packed = ({product.left.node} if self.strips else set()) | (
            {product.right.node} if self.panels else set()
        )
        loaded = dict.fromkeys(frame.node(i).name for i in frame.loads if i not in packed)
        parameters = [f"long {c}" for c in coordinates]
        parameters += [f"const {TYPES[frame.program.tensors[t]]}* {frame.pointer(t)}" for t in loaded]
        checked = [name for name, _ in self.before.checked]
        parameters += [f"const real* {name}" for name in (self.strips, self.panels, *checked) if name]
        parameters += [f"{TYPES[s.dtype]}* {frame.pointer(s.name)}" for s in frame.stage.stores]
        parameters += [f"real* {self.partial}"] if self.partial else []
        parameters += [f"long {extent}" for extent in frame.used]
        scratch = [name for name in (self.strips, self.panels) if name]
        scratch += checked
        stored = [s.name for s in frame.stage.stores]
        arguments = (*loaded, *scratch, *stored, *([self.partial] if self.partial else []), *frame.used)
        return f'extern "C" void {self.walk.name}({", ".join(parameters)}) {{', arguments
