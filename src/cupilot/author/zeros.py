"""Where a product need not be computed: depth at which a triangular factor holds zeros, masked parts of the
result. Says so in C++ about the tile at `top` and `left`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cupilot.author.program import Node, Program
from cupilot.author.stages import Stage
from cupilot.problem.domains import Structure

_UPPER = (Structure.UPPER, Structure.DIAGONAL)
_LOWER = (Structure.LOWER, Structure.DIAGONAL)
_TOP, _BOTTOM, _LEFT, _RIGHT = "top", "top + ROWS", "left", "left + WIDTH"


@dataclass(frozen=True)
class Zeros:
    """Of a tile: the depth before `begins` and from `ends` on, and everything where `empty` holds."""

    begins: tuple[str, ...]
    ends: tuple[str, ...]
    empty: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.begins or self.ends or self.empty)


def zeros(program: Program, stage: Stage, total: int, left: Node, right: Node) -> Zeros:
    """What the structure of the two loaded factors and of the stores behind the sum spares."""
    depth, column = program.nodes[total].over[-1], stage.stores[0].order[-1]
    row = next((a for a in left.order[-2:] if a != depth), -1)
    bounds = list(_bounds(program, left, (row, depth), _TOP, _BOTTOM))
    bounds += _bounds(program, right, (column, depth), _LEFT, _RIGHT)
    begins = tuple(text for is_begin, text in bounds if is_begin)
    ends = tuple(text for is_begin, text in bounds if not is_begin)
    masks = (_masked(program, store.node, total, row, column) for store in stage.stores)
    empty = tuple(dict.fromkeys(masks))
    return Zeros(begins, ends, tuple(e for e in empty if e) if len(empty) == 1 else ())


def _bounds(
    program: Program, factor: Node, axes: tuple[int, int], first: str, behind: str
) -> Iterator[tuple[bool, str]]:
    """Of the depth, by the factor's own structure; `axes`: its other axis, and the depth."""
    structure = program.structures.get(factor.name, Structure.FULL)
    if factor.order[-2:] == axes:
        rising, falling = _UPPER, _LOWER
    elif factor.order[-2:] == axes[::-1]:
        rising, falling = _LOWER, _UPPER
    else:
        return
    if structure in rising:  # nothing where the depth is less than the place along the other axis
        yield True, first
    if structure in falling:
        yield False, behind


def _masked(program: Program, root: int, total: int, row: int, column: int) -> str:
    """When no element of a tile shows its sum; empty where that cannot be."""
    nodes = program.nodes
    for index in program.closure([root]):
        node = nodes[index]
        if node.op != "select" or total in program.closure([root], frozenset([index])):
            continue
        mask = nodes[node.args[0]]
        if mask.op not in ("ge", "le") or total in program.closure([node.args[2]]):
            continue
        away, bound = (nodes[a] for a in mask.args)
        ends = [nodes[a] for a in away.args]
        if away.op == "sub" and bound.op == "number" and [e.over for e in ends] == [(column,), (row,)]:
            if mask.op == "ge":
                return f"left + WIDTH - 1 - top < {int(bound.number)}"
            return f"left - (top + ROWS - 1) > {int(bound.number)}"
    return ""
