"""A problem as the author's program, good at every shape of the problem; None where an operator has no entry.

What is a number in one graph may be an extent in truth (a batch mean divides by the batch): the same graph at
other shapes tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from cupilot.author import contracting, reducing, scanning, structuring, windowing  # register operators
from cupilot.author.axes import UnsupportedError, formulas
from cupilot.author.lowering import SIZES, Lowering
from cupilot.author.program import Program
from cupilot.problem.capture import capture
from cupilot.problem.domains import Structure
from cupilot.problem.graph import Graph
from cupilot.problem.operators import PRODUCTS
from cupilot.problem.problem import Problem
from cupilot.types import DType, Signature

_OTHER_SHAPES = 2
TRIANGULAR = frozenset({Structure.UPPER, Structure.LOWER, Structure.DIAGONAL})
_SPECIAL = frozenset({"scan", "flip", "slice", "window", "diagonal"})
assert contracting and reducing and scanning and structuring and windowing
_STORED = frozenset({DType.F64, DType.F32, DType.F16, DType.BOOL, DType.I64, DType.I32, DType.U8})

Sizes = Mapping[tuple[int, str], tuple[tuple[str, int], bool]]


def understand(problem: Problem, special: str = "") -> Program | None:
    """`special`: the one operation beyond the common ones that the caller can write."""
    try:
        program = _lowered(problem)
    except UnsupportedError:
        return None
    used = program.closure(output.node for output in program.outputs)
    beyond = {program.nodes[i].op for i in used} & _SPECIAL
    return program if beyond <= {special} else None


def _lowered(problem: Problem) -> Program:
    graph, target = problem.graph, problem.target
    if not graph.complete or any(t.dtype not in _STORED for t in (*target.tensors, *target.outputs)):
        raise UnsupportedError("values or element types the author cannot see")
    others = [
        (capture(problem.program, case.signature), case.signature)
        for case in islice((c for c in problem.shapes[1:] if _is_alike(c.signature, target)), _OTHER_SHAPES)
    ]
    sizes = _sizes(graph, target, others)
    lowering, program = _lower(graph, target, sizes)
    elsewhere = None
    for other, signature in others:
        twin, same = _lower(other, signature, sizes)
        if [n.op for n in same.nodes] != [n.op for n in program.nodes]:
            raise UnsupportedError("what is computed depends on the shape")
        elsewhere = elsewhere or twin.build.axes
    build = lowering.build
    named = [*build.leaves.items(), *build.twins, *lowering.returned.items()]
    extents = formulas(build.axes, named, elsewhere)
    return replace(program, extents=extents, structures=_structures(problem))


def _structures(problem: Problem) -> Mapping[str, Structure]:
    """Of what products may skip zeros of; learning them takes draws, so nobody else asks."""
    if not any(node.op in PRODUCTS for node in problem.graph.nodes):
        return {}
    kinds = {name: domain.structure for name, domain in problem.domains.items()}
    return {name: kind for name, kind in kinds.items() if kind in TRIANGULAR}


def _is_alike(one: Signature, two: Signature) -> bool:
    """Whether the same dimensions are single: those are no axes."""
    pairs = zip((*one.tensors, *one.outputs), (*two.tensors, *two.outputs), strict=True)
    return all((a == 1) == (b == 1) for t, u in pairs for a, b in zip(t.shape, u.shape, strict=True))


def _lower(graph: Graph, signature: Signature, sizes: Sizes) -> tuple[Lowering, Program]:
    lowering = Lowering(graph, sizes)
    leaves = [(t.name, t.shape, t.dtype) for t in signature.tensors]
    program = lowering.run([output.name for output in signature.outputs], leaves)
    return lowering, program


def _sizes(graph: Graph, target: Signature, others: Sequence[tuple[Graph, Signature]]) -> Sizes:
    """Numbers that differ between the shapes, as the extent (or its inverse) that they follow."""
    found: dict[tuple[int, str], tuple[tuple[str, int], bool]] = {}
    for other, _ in others:
        if len(other.nodes) != len(graph.nodes):
            raise UnsupportedError("what is computed depends on the shape")
    for at, node in enumerate(graph.nodes):
        for key in SIZES & node.attributes.keys():
            values = [node.attributes[key], *(g.nodes[at].attributes.get(key) for g, _ in others)]
            if len(set(values)) > 1:
                found[at, key] = _follows(values, [target, *(s for _, s in others)])
    return found


def _follows(values: Sequence[object], signatures: Sequence[Signature]) -> tuple[tuple[str, int], bool]:
    first = signatures[0]
    for tensor in first.tensors:
        for dim in range(len(tensor.shape)):
            extents = [
                next(t.shape[dim] for t in signature.tensors if t.name == tensor.name)
                for signature in signatures
            ]
            for inverse in (False, True):
                if values == [1 / extent if inverse else extent for extent in extents]:
                    return (tensor.name, dim), inverse
    raise UnsupportedError("a number follows from the shape in a way that is not plain")
