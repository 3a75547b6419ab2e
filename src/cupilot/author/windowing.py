"""Entries for pools: each is a node "window", named "max" or "mean", over the axes its windows slide along.

`geometry` has (size, stride, padding, dilation) for each of them; `order` names the axes of the result.
"""

from __future__ import annotations

from cupilot.author.axes import Group, UnsupportedError
from cupilot.author.lowering import Lowering, entry
from cupilot.author.program import Node as Made
from cupilot.problem.graph import Node


@entry("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(low: Lowering, node: Node) -> None:
    _window(low, node, "max")


@entry("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _mean_pool(low: Lowering, node: Node) -> None:
    """A mean over what lies inside the tensor, over the padded window, or a sum over a number given."""
    divisor = node.attributes.get("divisor_override")
    if divisor is not None and (not isinstance(divisor, int) or divisor < 1):
        raise UnsupportedError("a divisor that is no number")
    words = ["mean"]
    words += ["padded"] if node.attributes.get("count_include_pad", True) else []
    words += ["ceil"] if node.attributes.get("ceil_mode") else []
    _window(low, node, " ".join(words), float(divisor or 0))


def _window(low: Lowering, node: Node, name: str, divisor: float = 0) -> None:
    x = low.values[node.inputs[0]]
    sizes, rank = node.integers("kernel_size"), len(x.dims)
    ones, zeros = (1,) * len(sizes), (0,) * len(sizes)
    each = (sizes, node.integers("stride") or sizes, node.integers("padding") or zeros)
    geometry = zip(*each, node.integers("dilation") or ones, strict=True)
    over, order, kept = list[int](), list[int](), list[tuple[int, ...]]()
    dims: list[Group] = list(x.dims)
    extents = low.graph.value(node.inputs[0]).shape
    for dim, shape in zip(range(rank - len(sizes), rank), geometry, strict=True):
        if extents[dim] == 1 and shape[:3] == (1, 1, 0):
            continue
        before, after = low.over(x, [dim]), low.build.axes.new(node.outputs[0].shape[dim])
        if len(before) != 1 or len(after) != 1:
            raise UnsupportedError("a pool along something that is not one dimension")
        over, order, kept = [*over, *before], [*order, *after], [*kept, shape]
        dims[dim] = after
    varies = frozenset(low.build.axes.resolve(tuple(low.build.nodes[x.node].axes)))
    axes = varies - set(over) | set(order)
    made = Made(
        "window", (x.node,), axes, name=name, number=divisor,
        over=tuple(over), order=tuple(order), geometry=tuple(kept),
    )  # fmt: skip
    low.give(low.build.add(made), tuple(dims))
