"""Entries for matrix products: each is a sum of products, and its dimensions say which kind it is.

A product with a diagonal matrix is no sum at all: it scales rows or columns.
"""

from __future__ import annotations

import math

from cupilot.author.axes import Dims, Group
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


def _scaled(low: Lowering, diagonal: int, matrix: int, over: Group) -> int:
    """Each row of the matrix times one number, in a sum with zero times all others: NaN and infinities in
    one place of a column spoil the whole column but, perhaps, their own place."""
    m, matrix = low.math, low.math.real(matrix)
    spoils = m.select(m.do("eq", m.sub(matrix, matrix), m.zero), m.zero, m.one)
    elsewhere = m.sub(low.build.reduce("sum", spoils, over), spoils)
    product = m.mul(diagonal, matrix)
    return m.select(m.do("gt", elsewhere, m.zero), m.num(math.nan), product)


def _contracted(low: Lowering, one: Tensor, two: Tensor, *, batched: bool) -> Tensor:
    """The last dimension of one against the first of two, behind the batch."""
    unite, first = low.build.axes.unite, int(batched)
    two = low.apart(
        one, two, [(one.dims[-1], two.dims[first]), *zip(one.dims[:first], two.dims, strict=False)]
    )
    batch: Dims = (unite(one.dims[0], two.dims[0]),) if batched else ()
    over = unite(one.dims[-1], two.dims[first])
    dims = (*batch, *one.dims[first:-1], *two.dims[first + 1 :])
    nodes = low.build.nodes
    if nodes[one.node].op == "diagonal":
        return Tensor(_scaled(low, nodes[one.node].args[0], two.node, unite(one.dims[-2], over)), dims)
    if nodes[two.node].op == "diagonal":
        return Tensor(_scaled(low, nodes[two.node].args[0], one.node, unite(two.dims[-1], over)), dims)
    product = low.math.mul(low.math.real(one.node), low.math.real(two.node))
    return Tensor(low.build.reduce("sum", product, over), dims)
