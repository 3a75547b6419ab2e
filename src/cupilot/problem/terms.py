"""How many terms of its inputs go into one output of an operator: the length of its reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

from cupilot.problem.canonical import REDUCTIONS
from cupilot.problem.graph import Graph, Node

_ALONG_DIM = frozenset(
    {
        "softmax",
        "log_softmax",
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "cummax",
        "cummin",
        "sort",
        "topk",
        "kthvalue",
    }
)
_LOSSES = frozenset(
    {
        "nll_loss",
        "nll_loss2d",
        "mse_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "soft_margin_loss",
    }
)


def longest_reduction(graph: Graph) -> int:
    return max((reduction_length(graph, node) for node in graph.nodes), default=1)


def reduction_length(graph: Graph, node: Node) -> int:
    """One for operators that combine nothing along a dimension."""
    if not node.inputs:
        return 1
    shapes = [graph.value(ref).shape for ref in node.inputs]
    if node.op in REDUCTIONS:
        return math.prod(shapes[0][dim] for dim in node.integers("dims"))
    if node.op in _ALONG_DIM:
        return shapes[0][node.integer("dim", -1)] if shapes[0] else 1
    if node.op in _LOSSES:
        return math.prod(shapes[0]) if not node.outputs[0].shape else 1
    rule = _RULES.get(node.op)
    return rule(node, shapes) if rule is not None else 1


def _inner(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return shapes[0][-1] if shapes[0] else 1


def _convolution(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return math.prod(shapes[1][1:])


def _window(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return math.prod(node.integers("kernel_size"))


def _layer_norm(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return math.prod(shapes[0][dim] for dim in node.integers("dims"))


def _batch_norm(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return math.prod(shapes[0]) // max(shapes[0][1], 1) if node.attributes.get("training") else 1


def _group_norm(node: Node, shapes: list[tuple[int, ...]]) -> int:
    return math.prod(shapes[0][1:]) // node.integer("group")


_RULES: dict[str, Callable[[Node, list[tuple[int, ...]]], int]] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "addmm", "baddbmm"), _inner),
    **dict.fromkeys(
        ("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"), _window
    ),
    "convolution": _convolution,
    "layer_norm": _layer_norm,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
}
