"""What a problem is, as far as kernels are concerned: the key under which the pool keeps and finds it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cupilot.kinship import Structure
from cupilot.problem.canonical import REDUCTIONS
from cupilot.problem.graph import Graph, Node
from cupilot.problem.operators import (
    ADAPTIVE_POOLS,
    LOSSES,
    POINTWISE,
    POOLS,
    PRODUCTS,
    SCANS,
    SOFTMAXES,
    SORTS,
    VIEWS,
)
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Zone

_NORMS = frozenset({"layer_norm", "batch_norm", "group_norm"})
_SELECTING = frozenset({"argmax", "argmin"})


def structure_of(problem: Problem, family: str, placement: Placement | None) -> Structure:
    graph = problem.graph
    nodes = [node for node in graph.nodes if not node.is_leaf]
    tensors = (*problem.target.tensors, *problem.target.outputs)
    return Structure(
        operators=tuple(_operator(graph, node) for node in nodes),
        work=tuple(_merged(kind for node in nodes for kind in _work(graph, node))),
        family=family,
        zone=placement.zone if placement else Zone.MEMORY,
        intensity_ops_per_byte=placement.intensity_ops_per_byte if placement else 0.0,
        elements=max(spec.numel for spec in tensors),
        reduced=max((_reduced(graph, node) for node in nodes), default=1),
    )


def _operator(graph: Graph, node: Node) -> str:
    """Its name; of a convolution also what decides how it is computed."""
    if node.op != "convolution":
        return node.op
    words = [f"convolution{len(node.outputs[0].shape) - 2}d"]
    if node.attributes.get("transposed"):
        words.append("transposed")
    if node.integer("groups", 1) > 1:
        words.append("grouped")
    return "-".join(words)


def _work(graph: Graph, node: Node) -> Iterator[str]:
    """The kinds of work in one operator: two operators that do the same kind are sped up alike."""
    op = node.op
    if op in POINTWISE:
        cost = POINTWISE[op]
        if cost.special or cost.arithmetic or cost.compare:
            yield "functions" if cost.special else "arithmetic"
    elif op in LOSSES:
        yield "functions" if LOSSES[op].special else "arithmetic"
        yield "reduction"
    elif op in SOFTMAXES or op == "logsumexp":
        yield from ("reduction", "functions")
    elif op in _NORMS:
        yield from ("reduction", "arithmetic")
    elif op in REDUCTIONS:
        yield "choice" if op in _SELECTING else "reduction"
    elif op in PRODUCTS:
        yield "product"
    elif op == "convolution":
        yield f"window-{_operator(graph, node).partition('-')[2] or 'product'}"
    elif op in POOLS | ADAPTIVE_POOLS:
        yield "window"
    elif op in SCANS:
        yield "scan"
    elif op in ("triu", "tril"):
        yield "triangle"
    elif op in SORTS:
        yield "sort"
    elif op not in VIEWS:
        yield op


def _merged(kinds: Iterator[str]) -> Iterator[str]:
    """Neighbours of one kind are one pass."""
    last = ""
    for kind in kinds:
        if kind != last:
            yield kind
        last = kind


def _reduced(graph: Graph, node: Node) -> int:
    """How many values go into one, where the operator reduces or scans."""
    if not node.inputs or not node.outputs:
        return 1
    shape = graph.value(node.inputs[0]).shape
    if node.op in REDUCTIONS:
        return max(1, prod(shape) // max(1, node.outputs[0].numel))
    if node.op in PRODUCTS | SOFTMAXES | frozenset(SCANS) | _NORMS:
        return int(shape[-1]) if shape else 1
    return 1
