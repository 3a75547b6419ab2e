"""Tunables: the compile-time constants a kernel leaves open, and the space of their valid combinations.

A point gives every tunable a value. Points are ordered as they are written: first values first, the last
tunable varying fastest. The space is walked lazily; a condition is applied as soon as its names are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from cupilot.kernel import limits
from cupilot.kernel.expressions import parse_expressions, suggest
from cupilot.kernel.nodes import NOWHERE, Expr, Position, mistake, names_in
from cupilot.kernel.syntax import Section
from cupilot.kernel.values import Fuel, Scope, TooLongError, number

Point = dict[str, int]

_LINE = re.compile(r"([A-Z][A-Z0-9_]*)[ \t]*=[ \t]*([0-9]+(?:[ \t]*\|[ \t]*[0-9]+)*)")
_EXAMPLE = "write THREADS = 128 | 256 | 512: an uppercase name and whole numbers"
_FUEL_PER_POINT = 500  # what each point found adds to the search for the next


@dataclass(frozen=True)
class Tunable:
    name: str
    values: tuple[int, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} = {' | '.join(map(str, self.values))}"


class Tuned(Protocol):
    """Whatever has tunables and conditions on them: a kernel file."""

    @property
    def tune(self) -> tuple[Tunable, ...]: ...

    @property
    def where(self) -> tuple[Expr, ...]: ...


def parse_tune(section: Section) -> tuple[Tunable, ...]:
    tunables: dict[str, Tunable] = {}
    for number_, line in enumerate(section.lines, section.first_line):
        code = line.partition("#")[0].strip(" \t")
        if not code:
            continue
        tunable = _parse_tunable(code, Position(number_, line.index(code[0]) + 1))
        if tunable.name in tunables:
            raise mistake(f"'{tunable.name}' is there twice", tunable.at, "list all its values on one line")
        if len(tunables) == limits.MAX_TUNABLES:
            raise mistake("too many tunables", tunable.at, f"at most {limits.MAX_TUNABLES}")
        tunables[tunable.name] = tunable
    return tuple(tunables.values())


def _parse_tunable(code: str, at: Position) -> Tunable:
    match = _LINE.fullmatch(code)
    if match is None:
        raise mistake("this is not a tunable", at, _EXAMPLE)
    texts = [text.strip() for text in match[2].split("|")]
    if len(texts) > limits.MAX_VALUES:
        raise mistake(f"too many values for '{match[1]}'", at, f"at most {limits.MAX_VALUES}")
    if any(len(text) > 10 or int(text) > limits.MAX_TUNABLE_VALUE for text in texts):
        raise mistake(f"a value of '{match[1]}' is too large", at, f"at most {limits.MAX_TUNABLE_VALUE}")
    values = tuple(int(text) for text in texts)
    if len(set(values)) < len(values):
        raise mistake(f"'{match[1]}' has the same value twice", at, "list every value once")
    return Tunable(match[1], values, at)


def parse_where(section: Section, tune: tuple[Tunable, ...]) -> tuple[Expr, ...]:
    conditions = parse_expressions(section)
    known = [tunable.name for tunable in tune]
    for name in names_in(conditions):
        if name.id not in known:
            hint = suggest(name.id, known, f"tunables are {', '.join(known)}" if known else "there are none")
            raise mistake(f"'{name.id}' is not a tunable", name.at, hint)
    return conditions


def first_point(file: Tuned) -> Point:
    """The valid point that comes first: where tuning starts; the kernel fails only if this one is wrong."""
    for point in points(file, 1):
        return point
    raise mistake(
        "no combination of the tunables satisfies `where`",
        file.where[0].at,
        "relax a condition or add a value",
    )


def points(file: Tuned, limit: int) -> Iterator[Point]:
    """Valid points in order: at most `limit`, fewer where the search for further ones costs too much."""
    fuel = Fuel(limits.MAX_SEARCH_STEPS, "no valid combination of the tunables is found in reasonable time")
    found = 0
    try:
        for point in islice(_search(file, fuel), limit):
            found += 1
            fuel.add(_FUEL_PER_POINT)
            yield point
    except TooLongError:
        if not found:
            raise


def count_points(file: Tuned, limit: int) -> int:
    """How many points `points` would give."""
    return sum(1 for _ in points(file, limit))


def is_valid(file: Tuned, point: Mapping[str, int]) -> bool:
    """Whether the point gives every tunable one of its values and satisfies every condition."""
    if set(point) != {tunable.name for tunable in file.tune}:
        return False
    known = all(point[tunable.name] in tunable.values for tunable in file.tune)
    fuel = Fuel(limits.MAX_SEARCH_STEPS, "the conditions are too long")
    return known and all(number(condition, Scope(point, fuel)) for condition in file.where)


def neighbours(file: Tuned, point: Mapping[str, int]) -> list[Point]:
    """The valid points one step away: one tunable at its previous or next value."""
    near = []
    for tunable in file.tune:
        at = tunable.values.index(point[tunable.name])
        for value in (*tunable.values[max(at - 1, 0) : at], *tunable.values[at + 1 : at + 2]):
            near.append({**point, tunable.name: value})
    return [candidate for candidate in near if is_valid(file, candidate)]


def _search(file: Tuned, fuel: Fuel) -> Iterator[Point]:
    order = [tunable.name for tunable in file.tune]
    decided: list[list[Expr]] = [[] for _ in range(len(order) + 1)]  # conditions by the names they wait for
    for condition in file.where:
        decided[max((order.index(name.id) + 1 for name in names_in(condition)), default=0)].append(condition)

    def extend(point: Point) -> Iterator[Point]:
        depth = len(point)
        if not all(number(condition, Scope(point, fuel)) for condition in decided[depth]):
            return
        if depth == len(order):
            yield point
            return
        for value in file.tune[depth].values:
            fuel.burn(file.tune[depth].at)
            yield from extend({**point, order[depth]: value})

    return extend({})
