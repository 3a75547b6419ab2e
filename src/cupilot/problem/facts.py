"""What is known of every value in a graph before anything runs: zeros, repetitions, and who needs it.

Forward: the matrix structure that the domains of the leaves imply (a product of upper triangular matrices is
upper triangular), and the dimensions along which a value only repeats. Backward: whether a product's elements
are needed one by one, or only in linear reductions that could be done first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cupilot.problem.axes import broadcast_dims, reshaped
from cupilot.problem.canonical import REDUCTIONS
from cupilot.problem.domains import Structure
from cupilot.problem.graph import Graph, Node, Ref
from cupilot.problem.operators import (
    FLIPS,
    LINEAR,
    LINEAR_REDUCTIONS,
    POINTWISE,
    POOLS,
    SCALAR_AFFINE,
    SCANS,
    SOFTMAXES,
    SORTS,
    SPLITS,
)

_TRANSPOSED = {Structure.UPPER: Structure.LOWER, Structure.LOWER: Structure.UPPER}
# What these return varies along every dimension when their inputs do; a gather or a repeat may not.
_RENEWS = SOFTMAXES | SORTS | POOLS | FLIPS | SPLITS | frozenset(SCANS) | {
    "layer_norm", "batch_norm", "group_norm", "convolution", "select", "slice", "cat", "stack", "triu",
    "tril", "mv",
}  # fmt: skip
# f(0) = 0, so that zeros stay zeros.
_KEEPS_ZEROS = frozenset(
    {
        "neg",
        "abs",
        "relu",
        "sqrt",
        "tanh",
        "sin",
        "erf",
        "cast",
        "clone",
        "sign",
        "leaky_relu",
        "expm1",
        "silu",
    }
    | {"gelu", "softsign", "selu", "elu", "square"}
)


@dataclass(frozen=True)
class Facts:
    """About one value: its zeros, and for each dimension whether it varies along it (None: not known)."""

    structure: Structure
    varies: tuple[bool, ...] | None
    distinct: int  # a lower bound of how many different elements it has
    data: bool  # depends on inputs or weights at all


def learn_facts(graph: Graph, structures: Mapping[str, Structure]) -> dict[Ref, Facts]:
    """Facts of every value; `structures` are those of the leaves, by name, without the constant ones."""
    facts: dict[Ref, Facts] = {}
    for index, node in enumerate(graph.nodes):
        inputs = [facts[ref] for ref in node.inputs]
        for output, value in enumerate(node.outputs):
            data = any(fact.data for fact in inputs) or node.attributes.get("name") in structures
            varies = _varies(graph, node, inputs, output)
            if varies is None:
                distinct = max((fact.distinct for fact in inputs), default=1)
            else:
                distinct = math.prod(n for n, moves in zip(value.shape, varies, strict=True) if moves)
            structure = _structure(graph, node, inputs, structures) if output == 0 else Structure.FULL
            facts[Ref(index, output)] = Facts(structure, varies, min(distinct, value.numel), data)
    return facts


def nonzeros(shape: tuple[int, ...], structure: Structure) -> int:
    """Elements that carry information: one triangle of a triangular or symmetric matrix."""
    if structure is Structure.FULL or len(shape) < 2:
        return math.prod(shape)
    rows, columns = shape[-2:]
    if structure is Structure.DIAGONAL:
        count = min(rows, columns)
    elif structure is Structure.LOWER:
        count = triangle(columns, rows)
    else:
        count = triangle(rows, columns)
    return math.prod(shape[:-2]) * count


def nonzero_lines(shape: tuple[int, ...], structure: Structure) -> tuple[int, int]:
    """Rows and columns of a matrix that hold anything."""
    rows, columns = shape[-2:]
    least = min(rows, columns)
    return (
        least if structure in (Structure.UPPER, Structure.DIAGONAL) else rows,
        least if structure in (Structure.LOWER, Structure.DIAGONAL) else columns,
    )


def triangle(rows: int, columns: int) -> int:
    """Elements with row <= column."""
    full = min(rows, columns)
    return columns * full - full * (full - 1) // 2


def needed_singly(graph: Graph) -> list[bool]:
    """For each node, whether its elements are needed one by one, by a nonlinear operator or by the caller."""
    singly = [False] * len(graph.nodes)
    for ref in graph.outputs:
        singly[ref.node] = True
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if node.op in LINEAR_REDUCTIONS:
            continue
        for ref in node.inputs:
            if singly[index] or node.op not in LINEAR or (node.op == "div" and node.input("other") == ref):
                singly[ref.node] = True
    return singly


def is_scalar_affine(node: Node) -> bool:
    """Adds or multiplies by one number, which a neighbouring operation often absorbs."""
    return node.op in SCALAR_AFFINE and len(node.inputs) == 1


def is_transpose(node: Node) -> bool:
    dims = node.integers("dims")
    rank = len(dims)
    return node.op == "permute" and rank >= 2 and dims == (*range(rank - 2), rank - 1, rank - 2)


def _structure(
    graph: Graph, node: Node, inputs: list[Facts], structures: Mapping[str, Structure]
) -> Structure:
    kinds = [fact.structure for fact in inputs]
    if node.is_leaf:
        return structures.get(str(node.attributes.get("name")), Structure.FULL)
    if node.op in ("triu", "tril") and node.integer("diagonal") == 0:
        one, other = Structure.UPPER, Structure.LOWER
        made, met = (one, other) if node.op == "triu" else (other, one)
        return Structure.DIAGONAL if kinds[0] in (met, Structure.DIAGONAL) else made
    if node.op == "diag_embed" and node.integer("offset") == 0:
        return Structure.DIAGONAL
    if is_transpose(node):
        return _TRANSPOSED.get(kinds[0], kinds[0])
    if node.op in ("mm", "bmm"):
        return _product(*kinds)
    if node.op in ("add", "sub") and len(kinds) == 2 and _same_shapes(graph, node):
        return kinds[0] if kinds[0] == kinds[1] else Structure.FULL
    if node.op == "mul" and _same_shapes(graph, node):
        zeros = [kind for kind in kinds if kind in (Structure.UPPER, Structure.LOWER, Structure.DIAGONAL)]
        return zeros[0] if zeros else kinds[0] if len(set(kinds)) == 1 else Structure.FULL
    scales = node.op in ("mul", "div") and len(node.inputs) == 1
    return kinds[0] if scales or node.op in _KEEPS_ZEROS else Structure.FULL


def _product(one: Structure, two: Structure) -> Structure:
    if one is Structure.DIAGONAL and two is not Structure.SYMMETRIC:
        return two
    if two is Structure.DIAGONAL and one is not Structure.SYMMETRIC:
        return one
    return one if one == two and one in (Structure.UPPER, Structure.LOWER) else Structure.FULL


def _same_shapes(graph: Graph, node: Node) -> bool:
    return all(graph.value(ref).shape == node.outputs[0].shape for ref in node.inputs)


def _varies(graph: Graph, node: Node, inputs: list[Facts], output: int) -> tuple[bool, ...] | None:
    shape = node.outputs[output].shape
    if node.is_leaf:
        return tuple("name" in node.attributes for _ in shape)
    known = [fact.varies for fact in inputs if fact.varies is not None]
    if not inputs or len(known) < len(inputs):
        return None if inputs else (False,) * len(shape)
    before = graph.value(node.inputs[0]).shape
    match node.op:
        case "view" | "squeeze" | "unsqueeze":
            return _reshaped_varies(known[0], before, shape)
        case "permute":
            return tuple(known[0][dim] for dim in node.integers("dims"))
        case "mm":
            return known[0][0], known[1][1]
        case "bmm":
            return known[0][0] or known[1][0], known[0][1], known[1][2]
        case op if op in REDUCTIONS:
            dims = node.integers("dims")
            if node.attributes["keepdim"]:
                return tuple(moves and dim not in dims for dim, moves in enumerate(known[0]))
            return tuple(moves for dim, moves in enumerate(known[0]) if dim not in dims)
        case op if op in POINTWISE or op == "expand":
            moving = [False] * len(shape)
            for ref, varies in zip(node.inputs, known, strict=True):
                for dim, outer in enumerate(broadcast_dims(graph.value(ref).shape, shape)):
                    if outer is not None and varies[dim]:
                        moving[outer] = True
            return tuple(moving)
    return (True,) * len(shape) if node.op in _RENEWS and all(all(varies) for varies in known) else None


def _reshaped_varies(
    varies: tuple[bool, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[bool, ...] | None:
    found = [False] * len(after)
    for left, right in reshaped(before, after):
        moving = {varies[dim] for dim in left if before[dim] > 1}
        if len(moving) > 1:
            return None
        for dim in right:
            found[dim] = True in moving
    return tuple(found)
