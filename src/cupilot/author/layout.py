"""Where elements lie: groups of axes that one loop can walk, offsets, and names for extents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cupilot.author.axes import Group, UnsupportedError

_WORDS = """
    alignas asm auto bool break case catch char class const continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new operator
    or and not xor private protected public register return short signed sizeof static struct switch
    template this throw true try typedef typename union unsigned using virtual void volatile while real
    whole vec ivec load store stream splat lanes first total product highest lowest larger smaller root
    each magnitude rescale inverse std main exp log tanh memcpy span padded counted widened settle unaligned
    drain transpose at_most at_least halved as_real row_of load_mask load_strided store_mask store_strided
"""
KEYWORDS = frozenset(_WORDS.split())


def collapse(space: Group, orders: Iterable[Group], apart: Collection[int] = ()) -> list[Group]:
    """The space as few groups: neighbours stay together where every tensor has both side by side or neither,
    and where both or none are in `apart`."""
    orders = list(orders)

    def joined(a: int, b: int) -> bool:
        return (a in apart) == (b in apart) and all(
            (a not in order and b not in order)
            or (a in order and b in order and order.index(b) == order.index(a) + 1)
            for order in orders
        )

    groups: list[list[int]] = []
    for axis in space:
        if groups and joined(groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return [tuple(group) for group in groups]


@dataclass
class Names:
    """Identifiers for one kernel file: extents are launch variables and kernel parameters alike."""

    formulas: Mapping[int, str]  # of axes
    taken: set[str]
    variables: dict[str, str] = field(default_factory=dict)  # formula -> name

    def free(self, wanted: str) -> str:
        name, count = wanted, 2
        while name in self.taken or name in KEYWORDS:
            name, count = f"{wanted}{count}", count + 1
        self.taken.add(name)
        return name

    def extent(self, group: Group, wanted: str = "n") -> str:
        """The name of an extent; a number when it is one at every shape."""
        if any(axis not in self.formulas for axis in group):
            raise UnsupportedError("an extent that no tensor shows")
        formula = " * ".join(_factor(self.formulas[axis]) for axis in group) or "1"
        if formula not in self.variables:
            self.variables[formula] = self.free(wanted)
        return self.variables[formula]

    def formula(self, name: str) -> str:
        return next(formula for formula, known in self.variables.items() if known == name)


def _factor(formula: str) -> str:
    return f"({formula})" if "//" in formula else formula


@dataclass(frozen=True)
class Place:
    """One loop or block coordinate: its variable walks a group."""

    group: Group
    variable: str


def offset(order: Group, places: Sequence[Place], fine: Sequence[Group], names: Mapping[Group, str]) -> str:
    """The offset of an element of a tensor at these coordinates, as text; empty for none.

    `fine`: the stage's groups, whose extents have names; every place walks one or several of them.
    """
    terms = []
    for place in places:
        mine = [g for g in fine if g[-1] in place.group and g[-1] in order]
        if mine:
            terms.append(times(place.variable, stride(order, mine[-1], fine, names)))
    return " + ".join(terms)


def stride(order: Group, group: Group, fine: Sequence[Group], names: Mapping[Group, str]) -> list[str]:
    """The extents between neighbours along a group, as factors."""
    behind = order[order.index(group[-1]) + 1 :]
    return [names[g] for g in fine if g[-1] in behind]


def times(variable: str, factors: Sequence[str]) -> str:
    return " * ".join([variable, *factors])
