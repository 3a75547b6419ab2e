"""The least any kernel must do for a problem: bytes that influence the outputs, and operations.

Everything here is a lower bound, made for floors that a correct kernel must not fall below:
- bytes: each input element that some output depends on, once, and each output element, once; zeros and mirror
  images that the domains promise are not read;
- contractions: the multiply-adds of the classical algorithm on what is not known to be zero, without the
  padding; convolutions by the fast algorithm on tiles of four (Winograd's), which saves multiplications;
- a product that only linear reductions follow may be reassociated: one operation per operand element;
- adding or multiplying by one number counts nothing unless that is the result: neighbours absorb it;
- selections by data and unknown operators count nothing, nor does what they alone read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cupilot.problem.demand import NOTHING, Demand
from cupilot.problem.domains import Domain, Structure
from cupilot.problem.facts import Facts, learn_facts, needed_singly, nonzeros
from cupilot.problem.graph import Graph, Ref
from cupilot.problem.needs import Needs, needs
from cupilot.problem.operations import Work, operations_of
from cupilot.problem.operators import Operation
from cupilot.types import Role, Signature


@dataclass(frozen=True)
class Counts:
    """What must be read, written and computed at least, at one set of shapes."""

    read_elements: Mapping[str, int]  # by tensor
    bytes_read: int
    bytes_written: int
    operations: Mapping[Operation, int]  # in the declared arithmetic
    unknown: tuple[str, ...]  # operators that were given nothing


def count(
    graph: Graph, signature: Signature, domains: Mapping[str, Domain], idle: Collection[str] = ()
) -> Counts:
    """Counts for the graph captured at `signature`; tensors in `idle` are known to influence nothing."""
    structures = {name: domain.structure for name, domain in domains.items() if domain.fixed is None}
    facts = learn_facts(graph, structures)
    needed = needs(graph, facts)
    read = {
        name: _read(graph, ref, facts[ref], needed.values.get(ref, NOTHING))
        for name, ref in graph.leaves.items()
    }
    sizes = {spec.name: spec.dtype.size_bytes for spec in signature.tensors}
    totals, uncounted = _operations(graph, facts, needed)
    if not any(
        read[spec.name] for spec in signature.tensors if spec.role is Role.INPUT and spec.name in read
    ):
        totals = {}  # the outputs follow from the weights alone
    return Counts(
        read,
        sum(elements * sizes[name] for name, elements in read.items()),
        sum(spec.size_bytes for spec in signature.outputs),
        totals,
        tuple(dict.fromkeys((*needed.unknown, *uncounted))),
    )


def _read(graph: Graph, ref: Ref, facts: Facts, demand: Demand) -> int:
    """Elements of a leaf that must be fetched: demanded, and not known from others."""
    shape = graph.value(ref).shape
    numel, informative = math.prod(shape), nonzeros(shape, facts.structure)
    if demand.elements == numel or demand.triangle is facts.structure:
        return min(informative, demand.elements)
    if facts.structure is Structure.SYMMETRIC:
        return -(-demand.elements // 2)
    return max(0, demand.elements + informative - numel)


def _operations(
    graph: Graph, facts: Mapping[Ref, Facts], needed: Needs
) -> tuple[dict[Operation, int], tuple[str, ...]]:
    singly = needed_singly(graph)
    totals: dict[Operation, float] = dict.fromkeys(Operation, 0.0)
    unknown: dict[str, None] = {}
    seen: set[object] = set()
    for index, node in enumerate(graph.nodes):
        outputs = [Ref(index, output) for output in range(len(node.outputs))]
        elements = max(needed.values.get(ref, NOTHING).elements for ref in outputs)
        same = (node.op, node.inputs, tuple(sorted(node.attributes.items(), key=str)))
        if node.is_leaf or not elements or not facts[outputs[0]].data or same in seen:
            continue
        seen.add(same)
        cost = operations_of(Work(graph, index, facts, needed, singly[index]))
        if cost is None:
            unknown[node.op] = None
            continue
        for kind, amount in cost.items():
            totals[kind] += amount
    return {kind: int(amount) for kind, amount in totals.items() if amount >= 1}, tuple(unknown)
