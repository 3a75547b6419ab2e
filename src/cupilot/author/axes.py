"""The dimensions of a problem, told apart by what they mean instead of by their size.

An axis is an extent that kernels iterate over; two dimensions of different tensors are the same axis when an
operator lines them up. Views merge axes (a dimension is then several of them) or split one. Extents of one
are no axes. Formulas say how a launch program gets an axis's extent from the shapes of the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Group = tuple[int, ...]  # consecutive axes, as one dimension
Dims = tuple[Group, ...]  # of a tensor: one group per dimension


class UnsupportedError(Exception):
    """The graph does something this family cannot express; the family then declines."""


class Axes:
    """All axes of one graph, split and united while the graph is read; `resolve` tells the outcome."""

    def __init__(self) -> None:
        self.extents: list[int] = []
        self.constants: dict[int, int] = {}  # axes whose extent is the same at every shape
        self._parts: dict[int, Group] = {}

    def new(self, extent: int) -> Group:
        if extent == 1:
            return ()
        self.extents.append(extent)
        return (len(self.extents) - 1,)

    def resolve(self, group: Sequence[int]) -> Group:
        return tuple(
            end
            for axis in group
            for end in (self.resolve(self._parts[axis]) if axis in self._parts else (axis,))
        )

    def extent(self, group: Sequence[int]) -> int:
        return prod(self.extents[axis] for axis in group)

    def unite(self, one: Group, two: Group) -> Group:
        """The common axes of two dimensions that an operator lines up."""
        if not one or not two:
            return one or two
        left, right = list(self.resolve(one)), list(self.resolve(two))
        while left and right:
            a, b = left.pop(0), right.pop(0)
            if a == b:
                continue
            if self.extents[a] == self.extents[b]:
                keep, drop = min(a, b), max(a, b)
                self._parts[drop] = (keep,)
            elif self.extents[a] < self.extents[b]:
                right.insert(0, self._split(b, self.extents[a], a))
            else:
                left.insert(0, self._split(a, self.extents[b], b))
        if left or right:
            raise UnsupportedError("dimensions of different extents are lined up")
        return self.resolve(one)

    def _split(self, axis: int, head: int, known: int | None = None) -> int:
        """Split off a head of this extent (an axis there already, perhaps); the rest."""
        if self.extents[axis] % head:
            raise UnsupportedError("a view cuts across dimensions")
        first = (known,) if known is not None else self.new(head)
        rest = self.new(self.extents[axis] // head)
        self._parts[axis] = (*first, *rest)
        return rest[0]

    def split(self, group: Group, head: int) -> tuple[Group, Group]:
        """A dimension as `head` times the rest."""
        one, two = self.regroup(group, (head, self.extent(self.resolve(group)) // head))
        return one, two

    def regroup(self, group: Group, shape: Sequence[int]) -> Dims:
        """The axes of a whole tensor, dealt out to the dimensions of a view of it."""
        remaining = list(self.resolve(group))
        dims: list[Group] = []
        for extent in shape:
            taken: list[int] = []
            while self.extent(taken) < extent and remaining:
                axis = remaining.pop(0)
                need = extent // self.extent(taken)
                if self.extents[axis] > need:
                    remaining.insert(0, self._split(axis, need))
                    axis = self._parts[axis][0]
                taken.append(axis)
            if self.extent(taken) != extent:
                raise UnsupportedError("a view cuts across dimensions")
            dims.append(tuple(taken))
        if remaining:
            raise UnsupportedError("a view drops elements")
        return tuple(dims)


def formulas(axes: Axes, leaves: Sequence[tuple[str, Dims]], elsewhere: Axes | None) -> dict[int, str]:
    """Each axis's extent in the launch language. `elsewhere`: the axes of the same graph at other shapes."""
    known: dict[int, str] = {axis: str(value) for axis, value in axes.constants.items()}
    places = [
        (f"{name}.shape[{at}]", axes.resolve(group)) for name, dims in leaves for at, group in enumerate(dims)
    ]
    for text, group in places:
        if len(group) == 1:
            known.setdefault(group[0], text)
    while open_axes := sorted({axis for _, group in places for axis in group} - known.keys()):
        if not any(_solve(text, group, known) for text, group in places):
            axis = open_axes[0]
            if elsewhere is not None and (
                len(elsewhere.extents) != len(axes.extents) or elsewhere.extents[axis] != axes.extents[axis]
            ):
                raise UnsupportedError("a view splits a dimension in a way that depends on the shape")
            known[axis] = str(axes.extents[axis])
    return known


def _solve(text: str, group: Group, known: dict[int, str]) -> bool:
    """One unknown axis in a dimension is its extent over that of the others."""
    unknown = [axis for axis in group if axis not in known]
    if len(unknown) != 1:
        return False
    others = [known[axis] for axis in group if axis in known]
    known[unknown[0]] = f"{text} // ({' * '.join(others)})" if len(others) > 1 else f"{text} // {others[0]}"
    return True
