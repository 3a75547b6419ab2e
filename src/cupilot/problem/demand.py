"""Which elements of a value are needed: how many, and where they lie as far as that is simple.

The vocabulary of `needs`, which says what each operator needs of its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cupilot.problem.axes import Shape
from cupilot.problem.domains import Structure
from cupilot.problem.facts import nonzeros
from cupilot.problem.graph import Node


@dataclass(frozen=True)
class Demand:
    """`elements` needed; in a full box of `box` indices per dimension if that is known, cut to a triangle."""

    elements: int
    box: Shape | None
    triangle: Structure = Structure.FULL

    def along(self, dims: tuple[int, ...], shape: Shape) -> Demand:
        """What rows are needed when everything along `dims` goes into each element."""
        length = math.prod(shape[dim] for dim in dims)
        if self.box is None:
            return Demand(min(-(-self.elements // max(length, 1)) * length, math.prod(shape)), None)
        return boxed(tuple(shape[dim] if dim in dims else count for dim, count in enumerate(self.box)))


NOTHING = Demand(0, None)
TRIANGLES = (Structure.UPPER, Structure.LOWER, Structure.DIAGONAL)


def boxed(box: Shape) -> Demand:
    return Demand(math.prod(box), box)


def cut(box: Shape, triangle: Structure) -> Demand:
    return Demand(nonzeros(box, triangle), box, triangle)


def shadow(box: Shape, triangle: Structure, outer: Shape) -> Shape:
    """Rows and columns that a triangle reaches at all."""
    if triangle is Structure.FULL or not box:
        return box
    least = min(outer[-2:])
    return tuple(min(count, least) if dim >= len(box) - 2 else count for dim, count in enumerate(box))


@dataclass(frozen=True)
class Use:
    """One input of one node, and what is wanted of the node's outputs."""

    node: Node
    shapes: list[Shape]
    structures: list[Structure]
    position: int
    wanted: Mapping[int, Demand]

    @property
    def shape(self) -> Shape:
        return self.shapes[self.position]

    @property
    def role(self) -> str:
        return self.node.roles[self.position]

    @property
    def out(self) -> Demand:
        """The most that is wanted of one output."""
        return max(self.wanted.values(), key=lambda demand: demand.elements)

    @property
    def out_shape(self) -> Shape:
        return self.node.outputs[0].shape

    @property
    def factor_structure(self) -> Structure:
        """Of the other one of two inputs; zeros there make elements here irrelevant."""
        return self.structures[1 - self.position] if len(self.structures) == 2 else Structure.FULL

    @property
    def full_out(self) -> bool:
        return self.out.elements == math.prod(self.out_shape)
