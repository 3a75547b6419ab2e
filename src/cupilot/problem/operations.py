"""The operations one node of a graph costs at least, by class. `counts` says what the bounds promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cupilot.problem.demand import NOTHING, Demand
from cupilot.problem.domains import Structure
from cupilot.problem.facts import Facts, is_scalar_affine, is_transpose, nonzeros
from cupilot.problem.graph import Graph, Node, Ref
from cupilot.problem.needs import Needs
from cupilot.problem.operators import (
    ADAPTIVE_POOLS,
    AVERAGE_POOLS,
    LOSSES,
    MAX_POOLS,
    POINTWISE,
    PRODUCTS,
    REDUCTION_COSTS,
    SCANS,
    SOFTMAXES,
    SORTS,
    VIEWS,
    Cost,
    Operation,
)
from cupilot.problem.windows import window_sizes

_TILE = 4  # outputs of a fast convolution at once; larger tiles lose too many digits
_MOVES = VIEWS | {"triu", "tril", "diag_embed", "diagonal", "cat", "stack", "constant_pad_nd", "repeat"}
_MOVES |= {"gather", "index", "index_select", "embedding", "select_scatter", "slice_scatter"}
_MOVES |= {
    "pixel_shuffle",
    "pixel_unshuffle",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
}
_NORMS = {"layer_norm": 5.0, "batch_norm": 5.0, "group_norm": 5.0}  # statistics three, normalising two
_POWERS = {0.5: 1, 1.0: 0, 2.0: 1, 3.0: 2, 4.0: 2, -1.0: 1, -0.5: 1}

Amounts = dict[Operation, float]


@dataclass(frozen=True)
class Work:
    """One node with what is known around it."""

    graph: Graph
    index: int
    facts: Mapping[Ref, Facts]
    needs: Needs
    singly: bool  # its elements are needed one by one

    @property
    def node(self) -> Node:
        return self.graph.nodes[self.index]

    @property
    def demand(self) -> Demand:
        refs = [Ref(self.index, output) for output in range(len(self.node.outputs))]
        return max((self.needs.values.get(ref, NOTHING) for ref in refs), key=lambda demand: demand.elements)

    @property
    def made(self) -> int:
        """Elements that must be computed: wanted, not repeated, not known to be zero."""
        value, facts = self.node.outputs[0], self.facts[Ref(self.index)]
        return min(self.demand.elements, facts.distinct, nonzeros(value.shape, facts.structure))

    def used(self, position: int = 0) -> int:
        """Elements of an input that go into the result."""
        ref = self.node.inputs[position]
        need, facts = self.needs.uses.get((self.index, position), NOTHING), self.facts[ref]
        return min(need.elements, facts.distinct, nonzeros(self.graph.value(ref).shape, facts.structure))


def operations_of(work: Work) -> Amounts | None:
    """The least cost of the node; None when the operator is unknown."""
    op = work.node.op
    if op in _MOVES or not work.node.inputs:
        return {}
    if op in POINTWISE:
        return _pointwise(work)
    if op in REDUCTION_COSTS:
        return _reduction(work)
    if op in PRODUCTS or op == "convolution":
        return _contraction(work)
    if op in SOFTMAXES:
        rows = work.used()
        return {Operation.SPECIAL: rows, Operation.ARITHMETIC: rows + work.made}
    if op in _NORMS:
        trained = op != "batch_norm" or bool(work.node.attributes["training"])
        return {Operation.ARITHMETIC: (_NORMS[op] if trained else 2.0) * work.made}
    if op in MAX_POOLS:
        return {Operation.COMPARE: _pooled(work)}
    if op in AVERAGE_POOLS or op in ADAPTIVE_POOLS:
        return {Operation.ARITHMETIC: _pooled(work)}
    if op in SCANS:
        return _amounts(SCANS[op], max(0, work.made - work.made // max(_last_extent(work), 1)))
    if op in LOSSES:
        return _amounts(LOSSES[op], work.used())
    if op in SORTS:
        return {Operation.COMPARE: max(0, work.used() - work.used() // max(_last_extent(work), 1))}
    return {Operation.ARITHMETIC: work.used()} if op in ("nll_loss", "nll_loss2d") else None


def _amounts(cost: Cost, elements: float) -> Amounts:
    return {
        Operation.ARITHMETIC: cost.arithmetic * elements,
        Operation.COMPARE: cost.compare * elements,
        Operation.SPECIAL: cost.special * elements,
    }


def _last_extent(work: Work) -> int:
    shape = work.graph.value(work.node.inputs[0]).shape
    return shape[work.node.integer("dim", -1)] if shape else 1


def _pointwise(work: Work) -> Amounts:
    node = work.node
    if node.op == "pow":
        exponent = node.attributes.get("exponent")
        steps = _POWERS.get(float(exponent)) if isinstance(exponent, int | float) else None
        return _amounts(Cost(special=1) if steps is None else Cost(arithmetic=steps), work.made)
    if is_scalar_affine(node):
        # A chain of these folds into one, and that into a neighbour; only as the whole result it costs.
        before = work.graph.node(node.inputs[0])
        returned = Ref(work.index) in work.graph.outputs
        return _amounts(POINTWISE[node.op], work.made if returned and before.is_leaf and _acts(node) else 0)
    if not work.singly and node.op in ("add", "sub", "mul"):
        return {}
    return _amounts(POINTWISE[node.op], work.made)


def _acts(node: Node) -> bool:
    neutral = 1 if node.op in ("mul", "div") else 0
    return node.op == "rsub" or node.attributes.get("other") != neutral


def _reduction(work: Work) -> Amounts:
    """One step less than terms for each result; sums of squares two operations a term."""
    node = work.node
    terms, results = work.used(), work.made
    if node.op == "norm" and node.attributes.get("ord") == 2.0:
        return {Operation.ARITHMETIC: max(0, 2 * terms - results)}
    return _amounts(REDUCTION_COSTS[node.op], max(0, terms - results))


def _pooled(work: Work) -> float:
    """Every element read is combined once; overlapping windows share, but each result takes a step."""
    if work.demand.elements < work.node.outputs[0].numel:
        return 0
    data = work.graph.value(work.node.inputs[0]).shape
    if work.node.op in ADAPTIVE_POOLS:
        return max(0, math.prod(data) - work.made)
    sizes = window_sizes(work.node, data, work.node.outputs[0].shape)
    read = math.prod(data[: -len(sizes)]) * math.prod(size.read for size in sizes)
    wide = any(size.taps > 1 for size in sizes)
    return max(0, read - work.made, work.made // 2 if wide else 0)


def _contraction(work: Work) -> Amounts:
    """Multiplications, and one addition less for each result."""
    pairs = _convolution_pairs(work) if work.node.op == "convolution" else _product_pairs(work)
    amount = max(pairs, 2 * pairs - work.made)
    if not work.singly:
        amount = min(amount, float(sum(work.used(position) for position in range(len(work.node.inputs)))))
    return {Operation.CONTRACTION: amount}


def _product_pairs(work: Work) -> float:
    node, out, demand = work.node, work.node.outputs[0].shape, work.demand
    one, two = (work.facts[ref].structure for ref in node.inputs[:2])
    left = work.graph.value(node.inputs[0]).shape
    inner = left[-1]
    if node.op in ("mv", "dot"):
        return work.made * inner if one is Structure.FULL else work.used()
    full = demand.box == out
    if not full or (
        demand.triangle is Structure.FULL and {one, two} <= {Structure.FULL, Structure.SYMMETRIC}
    ):
        structured = one in _ZEROS or two in _ZEROS
        pairs = float(work.made * (1 if structured else inner))
    else:
        batch = math.prod(out[:-2])
        pairs = float(batch * _structured_pairs(left[-2], inner, out[-1], one, two, demand.triangle))
        pairs *= min(1.0, work.facts[Ref(work.index)].distinct / max(math.prod(out), 1))
    return (
        pairs * (out[-1] + 1) / (2 * out[-1])
        if _is_gram(work) and demand.triangle is Structure.FULL
        else pairs
    )


_ZEROS = (Structure.UPPER, Structure.LOWER, Structure.DIAGONAL)


def _is_gram(work: Work) -> bool:
    """x @ x.T: the result is symmetric, one triangle is enough."""
    first, second = work.node.inputs[:2]
    one, two = work.graph.node(first), work.graph.node(second)
    return (is_transpose(two) and two.inputs[0] == first) or (is_transpose(one) and one.inputs[0] == second)


def _structured_pairs(
    rows: int, inner: int, columns: int, one: Structure, two: Structure, triangle: Structure
) -> int:
    """Triples (i, p, j) with a nonzero factor on both sides and a wanted result, summed over p."""
    p = np.arange(inner, dtype=np.int64)
    top = p if one in (Structure.LOWER, Structure.DIAGONAL) else np.zeros_like(p)
    bottom = (
        np.minimum(p + 1, rows) if one in (Structure.UPPER, Structure.DIAGONAL) else np.full_like(p, rows)
    )
    start = p if two in (Structure.UPPER, Structure.DIAGONAL) else np.zeros_like(p)
    end = (
        np.minimum(p + 1, columns)
        if two in (Structure.LOWER, Structure.DIAGONAL)
        else np.full_like(p, columns)
    )
    bottom, end = np.maximum(bottom, top), np.maximum(end, start)
    if triangle is Structure.UPPER:
        return int(_ordered_pairs(top, bottom, start, end).sum())
    if triangle is Structure.LOWER:
        return int(_ordered_pairs(start, end, top, bottom).sum())
    if triangle is Structure.DIAGONAL:
        return int(np.maximum(0, np.minimum(bottom, end) - np.maximum(top, start)).sum())
    return int(((bottom - top) * (end - start)).sum())


_Counts = npt.NDArray[np.int64]


def _ordered_pairs(first: _Counts, last: _Counts, start: _Counts, end: _Counts) -> _Counts:
    """Pairs i <= j with i in [first, last) and j in [start, end)."""
    width = last - first
    return _sum_of_least(end - first, width) - _sum_of_least(start - first, width)


def _sum_of_least(x: _Counts, width: _Counts) -> _Counts:
    """The sum of min(y, width) for y from 1 to x."""
    short: _Counts = np.minimum(np.maximum(x, 0), width)
    total: _Counts = short * (short + 1) // 2 + (np.maximum(x, 0) - short) * width
    return total


def _convolution_pairs(work: Work) -> float:
    node, out = work.node, work.node.outputs[0].shape
    data, weight = (work.graph.value(ref).shape for ref in node.inputs[:2])
    share = min(1.0, work.made / max(math.prod(out), 1))
    transposed = bool(node.attributes["transposed"])
    per_group = weight[0] // node.integer("groups", 1) if transposed else weight[1]
    pairs = float(out[0] * out[1] * per_group) * share
    stride = node.integers("stride")
    for dim, size in enumerate(window_sizes(node, data, out, weight)):
        taps = -(-weight[2 + dim] // stride[dim])  # of each of the interleaved convolutions a stride makes
        pairs *= size.pairs * (_TILE + taps - 1) / (_TILE * taps)
    return pairs
