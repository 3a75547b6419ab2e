"""Drops what the outputs of a graph do not need: nodes, and unused results of those that return several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cupilot.problem.graph import Graph, Node, Ref
from cupilot.problem.operators import SPLITS

_VALUES_ONLY = {"max": "amax", "min": "amin"}
_INDICES_ONLY = {"max": "argmax", "min": "argmin"}


def pruned(
    nodes: Sequence[Node], outputs: Sequence[Ref], mutated: Sequence[str], random: Mapping[int, str]
) -> Graph:
    """The graph of `outputs`; `random` names the operators among `nodes` that draw random numbers."""
    needed = _reachable(nodes, outputs)
    number = {old: new for new, old in enumerate(sorted(needed))}
    used = {ref for index in needed for ref in nodes[index].inputs} | set(outputs)
    kept: list[Node] = []
    shifts: list[int] = []  # by how much the numbers of a node's outputs fall

    def moved(ref: Ref) -> Ref:
        index = number[ref.node]
        return Ref(index, ref.output - shifts[index])

    for old in number:
        node, shift = _only_used(nodes[old], {ref.output for ref in used if ref.node == old})
        kept.append(replace(node, inputs=tuple(map(moved, node.inputs))))
        shifts.append(shift)
    drawn = tuple(op for old, op in random.items() if old in needed)
    return Graph(tuple(kept), tuple(map(moved, outputs)), tuple(mutated), random=drawn)


def _reachable(nodes: Sequence[Node], outputs: Sequence[Ref]) -> set[int]:
    needed: set[int] = set()
    pending = [ref.node for ref in outputs]
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            pending += [ref.node for ref in nodes[index].inputs]
    return needed


def _only_used(node: Node, used: set[int]) -> tuple[Node, int]:
    """`x.max(1).values` is `amax`, `x.max(1).indices` is `argmax`; unused statistics are dropped."""
    if node.op in _VALUES_ONLY and used == {0}:
        return replace(node, op=_VALUES_ONLY[node.op], outputs=node.outputs[:1]), 0
    if node.op in _INDICES_ONLY and used == {1}:
        return replace(node, op=_INDICES_ONLY[node.op], outputs=node.outputs[1:]), 1
    if node.op in SPLITS or node.is_leaf:
        return node, 0
    return replace(node, outputs=node.outputs[: max(used) + 1]), 0
