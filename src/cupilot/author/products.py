"""Matrix products: which stages are one, and their kernels without tiles. `tiles` writes the blocked ones."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.author.axes import Group
from cupilot.author.expressions import Text
from cupilot.author.frame import Frame
from cupilot.author.layout import Place
from cupilot.author.maps import store_all
from cupilot.author.packing import Factor, Product
from cupilot.author.program import Program
from cupilot.author.stages import Stage
from cupilot.author.tiles import write_tiles
from cupilot.author.walks import Walk, Written
from cupilot.author.zeros import zeros
from cupilot.types import DType

TACTICS = frozenset({"vectorize", "register-tile", "pack-right", "pack-left", "cache-tiles", "depth-blocks"})
_REAL = (DType.F64, DType.F32, DType.F16)


@dataclass(frozen=True)
class _Sides:
    """The sum of a stage and its two factors, `right` the one that varies along the innermost result axis."""

    total: int
    left: int
    right: int

    def spares(self, program: Program, stage: Stage) -> bool:
        """Whether known zeros make some of the work superfluous."""
        left, right = program.nodes[self.left], program.nodes[self.right]
        return bool(zeros(program, stage, self.total, left, right))


def sides(program: Program, stage: Stage) -> _Sides | None:
    """None where the stage is no product of two tensors."""
    if len(stage.rounds) != 1 or len(stage.rounds[0]) != 1 or any(map(stage.is_map, stage.stores)):
        return None
    total = stage.rounds[0][0]
    node = program.nodes[total]
    term = program.nodes[node.args[0]]
    if node.op != "sum" or term.op != "mul":
        return None
    one, two = term.args
    for index in (one, two):
        factor = program.nodes[index]
        if factor.op != "load" or program.tensors[factor.name] not in _REAL:
            return None
    innermost = stage.stores[0].order[-1:]
    if any(s.order != stage.stores[0].order for s in stage.stores) or not innermost:
        return None
    mine = [innermost[0] in program.nodes[i].axes for i in (one, two)]
    if mine[0] == mine[1]:
        return None
    left, right = (two, one) if mine[0] else (one, two)
    if not program.nodes[left].axes - program.nodes[right].axes:
        return None
    return _Sides(total, left, right)


def product_of(frame: Frame) -> Product | None:
    """The product that a stage is, its axes sorted into rows, columns, depth and the rest."""
    program, found = frame.program, sides(frame.program, frame.stage)
    depth = [g for g in frame.fine if g[0] in frame.stage.over]
    if found is None or len(depth) != 1:
        return None
    left, right = program.nodes[found.left], program.nodes[found.right]
    kept = [g for g in frame.fine if g not in depth]
    cols = next(g for g in kept if g[-1] == frame.stage.stores[0].order[-1])
    rows = [g for g in kept if g[0] in left.axes and g[0] not in right.axes][-1]
    return Product(
        found.total,
        Factor(found.left, left.name, left.order),
        Factor(found.right, right.name, right.order),
        tuple(g for g in kept if g not in (rows, cols)),
        rows,
        cols,
        depth[0],
    )


def write_product(walk: Walk, product: Product) -> Written:
    return (
        write_tiles(walk, product)
        if walk.style.register_tile and walk.style.vector
        else _by_rows(walk, product)
    )


def _by_rows(walk: Walk, product: Product) -> Written:
    """Every row of the result by itself; with vectors, several of its elements at once."""
    frame = walk.frame
    groups: list[Group] = [*product.outer, product.rows]
    frame.local |= {"l", "i", "sum", "sums", "left", "wide", "factor"}
    with walk.items(groups, f"({frame.extent(product.cols)} * {frame.extent(product.depth)})") as (
        places,
        grid,
    ):
        if walk.style.vector:
            _vectors(walk, product, places)
        else:
            _elements(walk, product, places)
    return walk.written(["block"], grid)


def _vectors(walk: Walk, product: Product, places: list[Place]) -> None:
    frame = walk.frame

    def body(lane: Place) -> None:
        frame.line("vec sum = {};")
        with frame.block(f"for (long l = 0; l < {frame.extent(product.depth)}; l++)"):
            here = [*places, Place(product.depth, "l")]
            left = walk.bodies.values([product.left.node], {}, here, lane)[0]
            right = walk.bodies.values([product.right.node], {}, here, lane)[0]
            frame.line(f"sum += {left.within(5)} * {right.within(6)};")
        store_all(walk, walk.stage.stores, {product.total: Text("sum")}, places, lane)

    walk.lanes(product.cols, "0", frame.extent(product.cols), body)


def _elements(walk: Walk, product: Product, places: list[Place]) -> None:
    """A stretch of a row, so that a plain kernel is not many times slower than it need be."""
    frame, extent = walk.frame, walk.frame.extent(product.cols)
    lane = Place(product.cols, "(left + i)")
    with frame.block(f"for (long left = 0; left < {extent}; left += 64)"):
        frame.line(f"const long wide = {extent} - left < 64 ? {extent} - left : 64;")
        frame.line("real sums[64] = {};")
        with frame.block(f"for (long l = 0; l < {frame.extent(product.depth)}; l++)"):
            here = [*places, Place(product.depth, "l")]
            factor = walk.bodies.values([product.left.node], {}, here, None)[0]
            frame.line(f"const real factor = {factor.text};")
            with frame.block("for (long i = 0; i < wide; i++)"):
                right = walk.bodies.values([product.right.node], {}, here, lane)[0]
                frame.line(f"sums[i] += factor * {right.within(6)};")
        with frame.block("for (long i = 0; i < wide; i++)"):
            store_all(walk, walk.stage.stores, {product.total: Text("sums[i]", scalar=True)}, places, lane)
