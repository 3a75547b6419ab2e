"""Entries for matrix products: each is a sum of products, and its dimensions say which kind it is."""

from __future__ import annotations

from cupilot.author.axes import Dims
from cupilot.author.lowering import Lowering, Tensor, entry, number
from cupilot.problem.graph import Node


@entry("mm", "bmm", "mv", "dot")
def _product(low: Lowering, node: Node) -> None:
    one, two = (low.values[ref] for ref in node.inputs)
    low.give_all(_contracted(low, one, two, batched=node.op == "bmm"))


@entry("addmm", "addmv", "baddbmm")
def _added_product(low: Lowering, node: Node) -> None:
    m, added = low.math, low.operand(node, "self")
    one, two = (low.values[ref] for ref in node.inputs[1:])
    product = _contracted(low, one, two, batched=node.op == "baddbmm")
    scaled = m.scaled(product.node, number(node, "alpha", 1))
    result = m.add(scaled, m.scaled(added.node, number(node, "beta", 1)))
    low.give(result, low.together(added, Tensor(scaled, product.dims)))


def _contracted(low: Lowering, one: Tensor, two: Tensor, *, batched: bool) -> Tensor:
    """The last dimension of one against the first of two, behind the batch."""
    unite, first = low.build.axes.unite, int(batched)
    batch: Dims = (unite(one.dims[0], two.dims[0]),) if batched else ()
    over = unite(one.dims[-1], two.dims[first])
    product = low.math.mul(low.math.real(one.node), low.math.real(two.node))
    total = low.build.reduce("sum", product, over)
    return Tensor(total, (*batch, *one.dims[first:-1], *two.dims[first + 1 :]))
