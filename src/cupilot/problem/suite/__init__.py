"""The suite: a hundred operators, and a few more, as problem files that come with the package.

Every `p<number>_<name>.py` beside this file is a problem of its own, readable and loadable like a
user's. Its keyword defaults make a size one CPU thread computes in milliseconds; `SIZES["paper"]`
makes the size of the KernelBench operator with that number. From 101 on the operators are ours.
This module finds the files by number or name; it does not load them.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cupilot.errors import UsageError

_FAMILIES: dict[str, tuple[int, ...]] = {
    "gemm": (1, 2, 3, *range(6, 12), *range(13, 19), 102, 107),
    "gemv": (4,),
    "diagonal-gemm": (12,),
    "elementwise": (5, *range(19, 23), *range(25, 33), 88, 101),
    "softmax": (23, 24, 109),
    "norm": (*range(33, 41), 103, 104, 110),
    "max-pool": (41, 42, 43),
    "average-pool": (44, 45, 46),
    "reduction": (47, 48, 49, 53, 111),
    "arg-reduction": (51, 52, 108),
    "conv-1d": (67, 76),
    "conv-2d": (50, 55, 56, 62, 63, 80),
    "conv-3d": (54, 59, 60, 66),
    "conv-transposed-1d": (64, 74, 79),
    "conv-transposed-2d": (57, 65, 69, 71, 75, 78, 81),
    "conv-transposed-3d": (58, 61, 68, 70, 72, 73, 77),
    "conv-depthwise": (82, 83, 84, 85, 86),
    "conv-pointwise": (87,),
    "scan": (89, 90, 91, 92, 93),
    "loss": (*range(94, 97), 98, 99, 100, 105, 106),
    "attention": (97,),
}


@dataclass(frozen=True)
class Member:
    """One problem file of the suite."""

    number: int
    name: str
    family: str
    path: Path


@cache
def members() -> tuple[Member, ...]:
    """All members, by number."""
    family_of = {number: family for family, numbers in _FAMILIES.items() for number in numbers}
    found = []
    for path in sorted(Path(__file__).parent.glob("p[0-9][0-9][0-9]_*.py")):
        number, name = int(path.stem[1:4]), path.stem[5:]
        found.append(Member(number, name, family_of[number], path))
    return tuple(found)


def find(key: str) -> Member:
    """The member with this number ("23") or name ("softmax")."""
    for member in members():
        if key in (str(member.number), member.name):
            return member
    raise UsageError(f"the suite has no problem {key!r}", hint=_suggestion(key))


def _suggestion(key: str) -> str:
    first, last = members()[0].number, members()[-1].number
    if key.isdecimal():
        return f"numbers run from {first} to {last}"
    near = difflib.get_close_matches(
        key.lower().replace("-", "_"), [m.name for m in members()], n=3, cutoff=0.4
    )
    if near:
        return "did you mean " + " or ".join(f"suite:{name}" for name in near) + "?"
    return f"use a number from {first} to {last}, or a name such as suite:{members()[0].name}"
