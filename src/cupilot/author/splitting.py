"""Reductions shared out to several blocks: each reduces a part, a second launch what the parts found."""

from __future__ import annotations

from dataclasses import replace

from cupilot.author.products import sides
from cupilot.author.program import Node, Output, Program
from cupilot.author.stages import Stage, Staged
from cupilot.types import DType

PARTS = "PARTS = 8 | 4 | 16"


def split_reductions(staged: Staged) -> Staged:
    """Every reducing stage as two, except products, and where places are asked for."""
    program, stages, scratch = staged.program, list[Stage](), list(staged.scratch)
    for one in staged.stages:
        if not is_splittable(one, program):
            stages.append(one)
            continue
        program, first, second = _split(program, one)
        stages += [first, second]
        scratch += first.stores
    return Staged(program, tuple(stages), tuple(scratch))


def is_splittable(one: Stage, program: Program) -> bool:
    reductions = [program.nodes[i].op for level in one.rounds for i in level]
    alone = len(one.rounds) == 1 and not any(map(one.is_map, one.stores))
    return (
        alone
        and sides(program, one) is None
        and not any(op not in ("sum", "mean", "prod", "max", "min") for op in reductions)
    )


def _split(program: Program, one: Stage) -> tuple[Program, Stage, Stage]:
    nodes = list(program.nodes)
    part = max(program.extents, default=0) + 1
    dtype = DType.F64 if program.is_double else DType.F32
    order = (part, *one.kept)
    found: list[Output] = []
    again: dict[int, int] = {}  # each reduction as the reduction of what the parts found
    sums: list[int] = []

    def add(node: Node) -> int:
        nodes.append(node)
        return len(nodes) - 1

    for index in one.rounds[0]:
        node = nodes[index]
        op = "sum" if node.op == "mean" else node.op
        name = f"parts{len(nodes)}"
        found.append(Output(name, add(replace(node, op=op)), order, dtype))
        loaded = add(Node("load", axes=frozenset(order), name=name, order=order))
        sums.append(add(Node(op, (loaded,), frozenset(one.kept), over=(part,))))
        again[index] = sums[-1]
        if node.op == "mean":
            count = add(Node("extent", over=node.over))
            again[index] = add(Node("div", (sums[-1], count), frozenset(one.kept)))
    for index in program.closure([store.node for store in one.stores]):
        if index not in again:
            again[index] = add(replace(nodes[index], args=tuple(again[a] for a in nodes[index].args)))
    stores = tuple(replace(store, node=again[store.node]) for store in one.stores)
    whole = replace(
        program,
        nodes=tuple(nodes),
        tensors={**program.tensors, **{output.name: output.dtype for output in found}},
        extents={**program.extents, part: "PARTS"},
    )
    first = Stage((part, *one.space), one.over, (tuple(o.node for o in found),), tuple(found), part=part)
    return whole, first, Stage(order, frozenset([part]), (tuple(sums),), stores)


def has_splittable(staged: Staged) -> bool:
    return any(one.over and is_splittable(one, staged.program) for one in staged.stages)
