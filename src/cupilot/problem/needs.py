"""What each operator needs of its inputs for what is wanted of its outputs.

Works backward from the outputs of a graph. Every number is a lower bound: where data decide (an index, a
selection) the least that any data need is taken, and an unknown operator is taken to need nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cupilot.problem.axes import broadcast_dims, reshaped
from cupilot.problem.canonical import REDUCTIONS
from cupilot.problem.demand import NOTHING, TRIANGLES, Demand, Use, boxed, cut, shadow
from cupilot.problem.domains import Structure
from cupilot.problem.facts import Facts, nonzero_lines
from cupilot.problem.graph import Graph, Ref
from cupilot.problem.operators import (
    ADAPTIVE_POOLS,
    FLIPS,
    LOSSES,
    POINTWISE,
    POOLS,
    PRODUCTS,
    SCANS,
    SELECTIONS,
    SOFTMAXES,
    SORTS,
    SPLITS,
)
from cupilot.problem.windows import window_sizes


@dataclass(frozen=True)
class Needs:
    """What is needed of each value, of each input by each node, and the operators that are not understood."""

    values: Mapping[Ref, Demand]
    uses: Mapping[tuple[int, int], Demand]  # by node and position of the input
    unknown: tuple[str, ...]


def needs(graph: Graph, facts: Mapping[Ref, Facts]) -> Needs:
    """From the outputs backward; of several users of a value the one that needs most counts."""
    values: dict[Ref, Demand] = {ref: boxed(graph.value(ref).shape) for ref in graph.outputs}
    uses: dict[tuple[int, int], Demand] = {}
    selected: dict[tuple[Ref, int], dict[int, Demand]] = {}  # different indices never overlap
    unknown: dict[str, None] = {}
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        outputs = [Ref(index, output) for output in range(len(node.outputs))]
        wanted = {ref.output: values[ref] for ref in outputs if ref in values}
        if node.is_leaf or not node.inputs or not any(demand.elements for demand in wanted.values()):
            continue
        rule = _RULES.get(node.op)
        if rule is None:
            unknown[node.op] = None
            continue
        shapes = [graph.value(ref).shape for ref in node.inputs]
        structures = [facts[ref].structure for ref in node.inputs]
        for position, ref in enumerate(node.inputs):
            need = rule(Use(node, shapes, structures, position, wanted))
            uses[index, position] = need
            if node.op == "select":
                parts = selected.setdefault((ref, node.integer("dim")), {})
                parts[node.integer("index")] = need
                need = _together(list(parts.values()), node.integer("dim"))
            if need.elements > values.get(ref, NOTHING).elements:
                values[ref] = need
    return Needs(values, uses, tuple(unknown))


def _pointwise(use: Use) -> Demand:
    if use.role in SELECTIONS.get(use.node.op, ()):
        return NOTHING
    numel, out = math.prod(use.shape), use.out
    if out.box is None:
        return Demand(-(-out.elements * numel // max(math.prod(use.out_shape), 1)), None)
    box = tuple(1 if at is None else out.box[at] for at in broadcast_dims(use.shape, use.out_shape))
    zeros = use.factor_structure if use.node.op == "mul" else Structure.FULL
    if (
        use.shape == use.out_shape == out.box
        and zeros in TRIANGLES
        and out.triangle in (Structure.FULL, zeros)
    ):
        return cut(box, zeros)
    if out.triangle is not Structure.FULL and use.shape[-2:] == use.out_shape[-2:]:
        return cut(box, out.triangle)
    return boxed(shadow(box, out.triangle, use.out_shape))


def _reduction(use: Use) -> Demand:
    dims, out = use.node.integers("dims"), use.out
    length = math.prod(use.shape[dim] for dim in dims)
    if out.box is None:
        return Demand(out.elements * length, None)
    if use.node.attributes["keepdim"]:
        return boxed(tuple(use.shape[dim] if dim in dims else n for dim, n in enumerate(out.box)))
    counts = iter(shadow(out.box, out.triangle, use.out_shape))
    return boxed(tuple(use.shape[dim] if dim in dims else next(counts) for dim in range(len(use.shape))))


def _rows(use: Use) -> Demand:
    rank = len(use.shape)
    return use.out.along((use.node.integer("dim", -1) % rank,) if rank else (), use.shape)


def _same(use: Use) -> Demand:
    return replace(use.out, triangle=Structure.FULL)


def _norm(use: Use) -> Demand:
    node, out, box = use.node, use.out, use.out.box
    main = use.shapes[0]
    if use.position == 0:
        if node.op == "layer_norm":
            return out.along(node.integers("dims"), main)
        if node.op == "batch_norm":
            return out.along((0, *range(2, len(main))), main) if node.attributes["training"] else _same(use)
        each = main[1] // node.integer("group")
        whole = out.along(tuple(range(2, len(main))), main)
        return boxed((whole.box[0], max(whole.box[1], each), *main[2:])) if whole.box else whole
    if use.role in ("running_mean", "running_var") and node.attributes.get("training"):
        return NOTHING
    if box is None:
        return Demand(1, None)
    return boxed(box[-len(use.shape) :] if node.op == "layer_norm" else box[1:2])


def _view(use: Use) -> Demand:
    out = use.out
    if use.full_out:
        return boxed(use.shape)
    if out.box is None or out.triangle is not Structure.FULL:
        same_tail = use.shape[-2:] == use.out_shape[-2:] and out.box == use.out_shape
        return cut(use.shape, out.triangle) if same_tail else Demand(out.elements, None)
    box = [0] * len(use.shape)
    for left, right in reshaped(use.shape, use.out_shape):
        whole = all(out.box[dim] == use.out_shape[dim] for dim in right)
        if whole:
            for dim in left:
                box[dim] = use.shape[dim]
        elif sum(use.shape[dim] > 1 for dim in left) == 1:
            count = math.prod(out.box[dim] for dim in right)
            for dim in left:
                box[dim] = count if use.shape[dim] > 1 else 1
        else:
            return Demand(out.elements, None)
    return boxed(tuple(box))


def _permute(use: Use) -> Demand:
    dims, out = use.node.integers("dims"), use.out
    if out.box is None:
        return out
    box = tuple(out.box[dims.index(dim)] for dim in range(len(dims)))
    if out.triangle is Structure.FULL:
        return boxed(box)
    rank = len(dims)
    swapped = {Structure.UPPER: Structure.LOWER, Structure.LOWER: Structure.UPPER}
    if dims[-2:] == (rank - 1, rank - 2):
        return cut(box, swapped.get(out.triangle, out.triangle))
    return cut(box, out.triangle) if dims[-2:] == (rank - 2, rank - 1) else Demand(out.elements, None)


def _select(use: Use) -> Demand:
    if use.out.box is None or use.out.triangle is not Structure.FULL:
        return Demand(use.out.elements, None)
    dim = use.node.integer("dim")
    return boxed((*use.out.box[:dim], 1, *use.out.box[dim:]))


def _together(parts: list[Demand], dim: int) -> Demand:
    """Disjoint demands at different indices of one dimension."""
    boxes = {part.box for part in parts}
    box = boxes.pop()
    if boxes or box is None:
        return Demand(sum(part.elements for part in parts), None)
    return boxed((*box[:dim], len(parts) * box[dim], *box[dim + 1 :]))


def _split(use: Use) -> Demand:
    """Outputs are disjoint: their counts along the dimension add up."""
    dim = use.node.integer("dim")
    boxes = [demand.box for demand in use.wanted.values()]
    if use.node.op == "unbind":
        boxes = [None if box is None else (*box[:dim], 1, *box[dim:]) for box in boxes]
    total = sum(demand.elements for demand in use.wanted.values())
    known = [box for box in boxes if box is not None]
    if len(known) < len(boxes) or len({(*box[:dim], *box[dim + 1 :]) for box in known}) > 1:
        return Demand(total, None)
    return boxed((*known[0][:dim], sum(box[dim] for box in known), *known[0][dim + 1 :]))


def _cat(use: Use) -> Demand:
    if use.full_out:
        return boxed(use.shape)
    rest = math.prod(use.out_shape) - math.prod(use.shape)
    return Demand(max(0, use.out.elements - rest), None)


def _triangular(use: Use) -> Demand:
    kind = Structure.UPPER if use.node.op == "triu" else Structure.LOWER
    diagonal = use.node.integer("diagonal")
    rows, columns = use.shape[-2:]
    if use.full_out and diagonal == 0:
        return cut(use.shape, kind)
    kept = sum(
        max(0, columns - max(0, row + diagonal)) if kind is Structure.UPPER
        else min(columns, max(0, row + diagonal + 1))
        for row in range(rows)
    ) * math.prod(use.shape[:-2])  # fmt: skip
    return Demand(max(0, use.out.elements + kept - math.prod(use.shape)), None)


def _diagonal(use: Use) -> Demand:
    return boxed(use.shape) if use.full_out else NOTHING


def _product(use: Use) -> Demand:
    """Rows of the first factor, columns of the second."""
    box, out_shape = use.out.box, use.out_shape
    if box is None:
        rows = -(-use.out.elements // max(out_shape[-1] if use.position == 0 and out_shape else 1, 1))
        inner = use.shapes[0][-1]
        return Demand(min(inner * (rows if use.position == 0 else 1), math.prod(use.shape)), None)
    box = shadow(box, use.out.triangle, out_shape)
    if use.node.op in ("mv", "dot"):
        return boxed((box[0], use.shape[1])) if use.position == 0 and box else boxed(use.shape)
    rows, columns = nonzero_lines(use.shapes[1 - use.position], use.factor_structure)
    if use.position == 0:
        return boxed((*box[:-1], rows))
    return boxed((*box[:-2], columns, box[-1]))


def _pool(use: Use) -> Demand:
    box = use.out.box
    if box is None:
        return Demand(use.out.elements if use.node.op.startswith("max") else 0, None)
    sizes = window_sizes(use.node, use.shape, use.out_shape)
    rank = len(sizes)
    spatial = [
        size.read if box[dim - rank] == use.out_shape[dim - rank] else min(size.read, 1)
        for dim, size in enumerate(sizes)
    ]
    return boxed((*box[:-rank], *spatial))


def _convolution(use: Use) -> Demand:
    node, box = use.node, use.out.box
    if box is None or use.out.triangle is not Structure.FULL:
        return Demand(min(1, use.out.elements), None)
    out_shape, data, weight = use.out_shape, use.shapes[0], use.shapes[1]
    sizes = window_sizes(node, data, out_shape, weight)
    full = all(box[2 + dim] == out_shape[2 + dim] for dim in range(len(sizes)))
    groups = node.integer("groups", 1)
    if use.role == "bias":
        return boxed((box[1],))
    if use.role == "weight":
        taps = tuple(size.taps if full else min(size.taps, 1) for size in sizes)
        if node.attributes["transposed"]:
            columns = min(box[1], weight[1])
            every = groups == 1 or box[1] == out_shape[1]
            return boxed((weight[0] if every else weight[0] // groups, columns, *taps))
        return boxed((box[1], weight[1], *taps))
    channels = data[1] if groups == 1 or box[1] == out_shape[1] else data[1] // groups
    return boxed((box[0], channels, *(size.read if full else min(size.read, 1) for size in sizes)))


def _whole_if_full(use: Use) -> Demand:
    return boxed(use.shape) if use.full_out else NOTHING


def _gather(use: Use) -> Demand:
    """All of the index; of the source one element along the gathered dimension, as all indices may agree."""
    if use.role == "index":
        return _same(use)
    if use.out.box is None:
        return Demand(min(1, use.out.elements), None)
    dim = use.node.integer("dim")
    return boxed((*use.out.box[:dim], min(1, use.out.box[dim]), *use.out.box[dim + 1 :]))


def _index_select(use: Use) -> Demand:
    box, dim = use.out.box, use.node.integer("dim")
    if box is None:
        return Demand(min(1, use.out.elements), None)
    return (
        boxed((box[dim],)) if use.role == "index" else boxed((*box[:dim], min(1, box[dim]), *box[dim + 1 :]))
    )


def _embedding(use: Use) -> Demand:
    box = use.out.box
    if box is None:
        return Demand(min(1, use.out.elements), None)
    return boxed((1, box[-1])) if use.role == "weight" else boxed(box[:-1])


def _scatter(use: Use) -> Demand:
    """The source as a whole, and what it leaves of the rest."""
    if use.role == "src":
        return boxed(use.shape) if use.full_out else NOTHING
    return Demand(max(0, use.out.elements - math.prod(use.shapes[-1])), None)


def _upsample(use: Use) -> Demand:
    larger = all(after >= before for before, after in zip(use.shape, use.out_shape, strict=True))
    return boxed(use.shape) if larger and use.full_out else NOTHING


def _advanced_index(use: Use) -> Demand:
    if use.role != "self":
        return boxed(use.shape) if use.full_out else NOTHING
    return Demand(min(1, use.out.elements), None)


def _nll(use: Use) -> Demand:
    """One log-probability per row; weights of classes as few as one."""
    if use.role == "weight":
        return Demand(1, None)
    if use.role == "target":
        return boxed(use.shape) if use.full_out else NOTHING
    if not use.full_out:
        return NOTHING
    return boxed((*use.shape[:1], 1, *use.shape[2:])) if len(use.shape) > 1 else boxed((1,))


_RULES: dict[str, Callable[[Use], Demand]] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(SOFTMAXES | SORTS, _rows),
    **dict.fromkeys((*SCANS, *FLIPS), _same),
    **dict.fromkeys(("layer_norm", "batch_norm", "group_norm"), _norm),
    **dict.fromkeys(("view", "squeeze", "unsqueeze"), _view),
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(SPLITS, _split),
    **dict.fromkeys(LOSSES, _whole_if_full),
    **dict.fromkeys(ADAPTIVE_POOLS, _whole_if_full),
    **dict.fromkeys(("triu", "tril"), _triangular),
    **dict.fromkeys(("diag_embed", "diagonal", "pixel_shuffle", "pixel_unshuffle"), _diagonal),
    **dict.fromkeys(("cat", "stack"), _cat),
    **dict.fromkeys(("nll_loss", "nll_loss2d"), _nll),
    "permute": _permute,
    "expand": _pointwise,
    "select": _select,
    "slice": _same,
    "constant_pad_nd": _whole_if_full,
    "convolution": _convolution,
    **dict.fromkeys(("select_scatter", "slice_scatter"), _scatter),
    **dict.fromkeys(("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"), _upsample),
    "repeat": _whole_if_full,
    "gather": _gather,
    "index_select": _index_select,
    "embedding": _embedding,
    "index": _advanced_index,
}
