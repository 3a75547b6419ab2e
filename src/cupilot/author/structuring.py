"""Entries for matrices of a known structure: triangles of a matrix, and diagonal matrices.

A diagonal matrix is a node "diagonal" that lives only until the product it belongs to has taken it in.
"""

from __future__ import annotations

from cupilot.author.axes import UnsupportedError
from cupilot.author.lowering import Lowering, entry
from cupilot.author.program import Node as Made
from cupilot.problem.graph import Node


@entry("triu", "tril")
def _triangle(low: Lowering, node: Node) -> None:
    m, x = low.math, low.operand(node, "self")
    if len(x.dims) != len(node.outputs[0].shape):
        raise UnsupportedError(f"{node.op} of a constant")
    row, column = map(low.build.place, x.dims[-2:])
    op = "ge" if node.op == "triu" else "le"
    inside = m.do(op, m.sub(column, row), m.num(node.integer("diagonal", 0)))
    if m.is_mask(x.node):
        low.give(m.do("and", inside, x.node), x.dims)
    else:
        low.give(m.select(inside, x.node, m.zero), x.dims)


@entry("diag_embed")
def _diagonal(low: Lowering, node: Node) -> None:
    x, rank = low.operand(node, "self"), len(node.outputs[0].shape)
    last = (rank - 2, rank - 1)
    dims = (node.integer("dim1", rank - 2), node.integer("dim2", rank - 1))
    if node.integer("offset", 0) != 0 or dims != last or not x.dims[-1]:
        raise UnsupportedError("a diagonal away from the middle")
    twin = low.build.axes.new(low.build.axes.extent(x.dims[-1]))
    made = Made("diagonal", (low.math.real(x.node),), low.build.nodes[x.node].axes | set(twin))
    low.give(low.build.add(made), (*x.dims, twin))
