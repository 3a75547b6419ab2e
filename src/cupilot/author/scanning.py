"""Entries for running sums and products, and for the flips, slices and joins that turn and shift them.

A scan is a node "scan", named "sum" or "prod", perhaps "reverse", perhaps "exclusive". Flips and slices are
nodes that live only until the scan they belong to has taken them in.
"""

from __future__ import annotations

from dataclasses import replace

from cupilot.author.axes import Group, UnsupportedError
from cupilot.author.lowering import Lowering, Tensor, entry
from cupilot.author.program import Node as Made
from cupilot.problem.graph import Node


@entry("cumsum", "cumprod")
def _scan(low: Lowering, node: Node) -> None:
    x, dim = low.operand(node, "self"), node.integer("dim")
    if not node.outputs[0].dtype.is_floating or not x.dims[dim]:
        raise UnsupportedError(f"{node.op} of {node.outputs[0]}")
    over = low.over(x, [dim])
    source = low.build.nodes[x.node]
    name = "sum" if node.op == "cumsum" else "prod"
    if source.op == "flip" and low.build.axes.resolve(source.over) == over:
        scanned = _scanned(low, source.args[0], over, f"{name} reverse")
        low.give(_flipped(low, scanned, over), x.dims)
    else:
        low.give(_scanned(low, x.node, over, name), x.dims)


def _scanned(low: Lowering, x: int, over: Group, name: str) -> int:
    x = low.math.real(x)
    return low.build.add(Made("scan", (x,), low.build.nodes[x].axes | set(over), name=name, over=over))


def _flipped(low: Lowering, x: int, over: Group) -> int:
    node = low.build.nodes[x]
    if node.op == "flip" and low.build.axes.resolve(node.over) == over:
        return node.args[0]
    return low.build.add(Made("flip", (x,), node.axes, over=over))


@entry("flip")
def _flip(low: Lowering, node: Node) -> None:
    x, dims = low.operand(node, "self"), node.integers("dims")
    low.give(_flipped(low, x.node, low.over(x, dims)), x.dims)


@entry("slice")
def _slice(low: Lowering, node: Node) -> None:
    """All but the last (number 1) or all but the first (number -1) of a dimension."""
    x, dim = low.operand(node, "self"), node.integer("dim")
    extent = low.graph.value(node.inputs[0]).shape[dim]
    span = (node.integer("start"), node.integer("end"))
    if node.integer("step", 1) != 1 or span not in ((0, extent - 1), (1, extent)):
        raise UnsupportedError("a part of a tensor")
    over, rest = low.over(x, [dim]), low.build.axes.new(extent - 1)
    made = Made("slice", (x.node,), frozenset(rest), over=over, number=1 if span[0] == 0 else -1)
    low.give(low.build.add(made), (*x.dims[:dim], rest, *x.dims[dim + 1 :]))


@entry("cat")
def _cat(low: Lowering, node: Node) -> None:
    """A zero before, or behind, a running sum without its far end: everything before the element."""
    parts, dim = [low.values[ref] for ref in node.inputs], node.integer("dim")
    if len(parts) != 2:
        raise UnsupportedError("tensors joined")
    for one, two, side in ((parts[0], parts[1], 1), (parts[1], parts[0], -1)):
        shift = low.build.nodes[two.node]
        single = not low.build.axes.resolve(one.dims[dim]) and low.build.value_of(one.node) == 0
        if single and shift.op == "slice" and shift.number == side:
            low.give(*_exclusive(low, two, shift, side, dim))
            return
    raise UnsupportedError("tensors joined")


def _exclusive(
    low: Lowering, part: Tensor, shift: Made, side: int, dim: int
) -> tuple[int, tuple[Group, ...]]:
    scan = low.build.nodes[shift.args[0]]
    reverse = scan.name.endswith("reverse")
    if scan.op != "scan" or not scan.name.startswith("sum") or "exclusive" in scan.name:
        raise UnsupportedError("tensors joined")
    over = low.build.axes.resolve(shift.over)
    if low.build.axes.resolve(scan.over) != over or reverse != (side == -1):
        raise UnsupportedError("tensors joined")
    made = low.build.add(replace(scan, name=f"{scan.name} exclusive"))
    return made, (*part.dims[:dim], over, *part.dims[dim + 1 :])


@entry("zeros", "new_zeros", "ones", "full")
def _constant(low: Lowering, node: Node) -> None:
    value = {"ones": 1.0, "full": node.attributes.get("fill_value")}.get(node.op, 0.0)
    if not isinstance(value, bool | int | float):
        raise UnsupportedError(f"{node.op} of something unknown")
    low.give(low.build.number(float(value)), tuple(map(low.build.axes.new, node.outputs[0].shape)))
