"""Held-out shapes: where else than at the target a kernel must be right.

Ranks stay. Extents that are equal at the target stay equal; those that equal an extent of a weight or a
number of the module, or that the module rejects when they change, stay as they are. The rest become primes,
ones, long and short. The module itself decides: a shape it rejects is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cupilot.errors import ProblemError
from cupilot.problem.capture import capture
from cupilot.problem.cases import ShapeCase
from cupilot.problem.program import Program
from cupilot.problem.terms import longest_reduction

_SMALL_REDUCTION = 1024
_BUDGET = 1 << 17  # elements of inputs and outputs together: the reference with its bound is slow
_LONGEST = 4099
_LONG_CASES = 3
_WINDOW = 16
_GRAINS = (1, 2, 4, 8, 16, 32, 64)

Extents = tuple[int, ...]  # one per free group


@dataclass(frozen=True)
class _Group:
    """Extents that are one number to the module: multiples of `grain`, from `least` on."""

    places: tuple[tuple[str, int], ...]
    extent: int
    grain: int = 1
    least: int = 1


def held_out_cases(program: Program, targets: Sequence[ShapeCase]) -> tuple[ShapeCase, ...]:
    """Cases beside the targets, each accepted by the module, none twice."""
    space = _Space(program, targets)
    found: dict[frozenset[tuple[str, tuple[int, ...]]], ShapeCase] = {}
    known = {_key(case) for case in targets}
    for name, extents in space.proposals():
        case = space.case(name, extents)
        if case is not None and _key(case) not in known:
            found.setdefault(_key(case), case)
    return tuple(found.values())


def scaled_case(program: Program, targets: Sequence[ShapeCase], limit_bytes: int) -> ShapeCase | None:
    """The first target with its free extents halved, longest first, until all fit into `limit_bytes`."""
    space = _Space(program, targets)
    extents = [group.extent for group in space.groups]
    while True:
        case = space.case("scaled", tuple(extents))
        if case is not None and _bytes(case) <= limit_bytes:
            return case
        longest = max(range(len(extents)), key=lambda at: extents[at] // space.groups[at].grain, default=None)
        if longest is None or extents[longest] // space.groups[longest].grain < 2:
            return None
        grain = space.groups[longest].grain
        extents[longest] = extents[longest] // 2 // grain * grain


def _bytes(case: ShapeCase) -> int:
    return sum(spec.size_bytes for spec in (*case.signature.tensors, *case.signature.outputs))


def _key(case: ShapeCase) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset(case.shapes.items())


class _Space:
    """The free extents of a problem, and the cases that a choice of them makes."""

    def __init__(self, program: Program, targets: Sequence[ShapeCase]) -> None:
        self._program = program
        self._target = targets[0]
        pinned = _pinned_numbers(program)
        self.groups = self._free(group for group in _groups(targets) if group.extent not in pinned)
        if not self.groups:
            # Everything coincides with a number of the module; perhaps by chance: dimension by dimension.
            self.groups = self._free(_groups(targets, by_position=True))

    def proposals(self) -> Iterator[tuple[str, Extents]]:
        if not self.groups:
            return
        odd = self._primes(self._shrunk([group.extent for group in self.groups]))
        yield "odd", odd
        for at in sorted(range(len(odd)), key=lambda at: -self.groups[at].extent)[:_LONG_CASES]:
            short = [3 + 2 * index for index in range(len(self.groups))]
            short[at] = min(self.groups[at].extent, _LONGEST)
            yield f"long-{at + 1}", self._primes(self._shrunk(short))
        yield "single", (self.groups[0].least, *odd[1:])
        yield "ones", tuple(group.least for group in self.groups)
        yield "small", self._small()

    def case(self, name: str, extents: Extents) -> ShapeCase | None:
        """The case with these extents, or None when the module rejects them."""
        shapes = self._shapes(dict(zip(self.groups, extents, strict=True)))
        try:
            return ShapeCase(name, shapes, self._program.signature(shapes))
        except ProblemError:
            return None

    def _shapes(self, extents: Mapping[_Group, int]) -> dict[str, tuple[int, ...]]:
        shapes = {name: list(shape) for name, shape in self._target.shapes.items()}
        for group, extent in extents.items():
            for name, dim in group.places:
                shapes[name][dim] = extent
        return {name: tuple(shape) for name, shape in shapes.items()}

    def _free(self, groups: Iterable[_Group]) -> list[_Group]:
        """The groups the module lets change alone, with the smallest step and the least extent it accepts."""
        free = []
        for group in groups:
            for grain in _GRAINS:
                # Odd multiples below the target and beyond it: one alone may fit by chance.
                below = _prime_at_most(max(group.extent * 3 // 4 // grain, 3))
                beyond = group.extent // grain + 1 | 1
                if all(self._accepts(group, grain * count) for count in (below, beyond)):
                    counts = (1, 3, 7, 15, 31, 63, 127)
                    least = next(
                        (grain * c for c in counts if self._accepts(group, grain * c)), grain * below
                    )
                    free.append(replace(group, grain=grain, least=least))
                    break
        return free

    def _accepts(self, group: _Group, extent: int) -> bool:
        try:
            self._program.signature(self._shapes({group: extent}))
        except ProblemError:
            return False
        return True

    def _shrunk(self, extents: list[int]) -> list[int]:
        """Halve the longest until inputs and outputs are within the budget."""
        while max(extents) > 4:
            case = self.case("", self._steps(extents, lambda count: count))
            if case is not None and case.numel <= _BUDGET:
                break
            at = extents.index(max(extents))
            extents = [*extents[:at], extents[at] // 2, *extents[at + 1 :]]
        return extents

    def _primes(self, extents: Sequence[int]) -> Extents:
        """Prime multiples of each grain, no two groups alike."""
        taken: set[int] = set()

        def choose(count: int) -> int:
            prime = _prime_at_most(count)
            while prime in taken and prime > 3:
                prime = _prime_at_most(prime - 1)
            taken.add(prime)
            return prime

        return self._steps(extents, choose)

    def _steps(self, extents: Sequence[int], choose: Callable[[int], int]) -> Extents:
        return tuple(
            max(group.grain * choose(max(extent // group.grain, 1)), group.least)
            for group, extent in zip(self.groups, extents, strict=True)
        )

    def _small(self) -> Extents:
        """Short enough that every reduction has fewer than `_SMALL_REDUCTION` terms, if weights allow it."""
        extents = [min(group.extent, 31) for group in self.groups]
        while True:
            proposal = self._primes(extents)
            case = self.case("small", proposal)
            if case is None or max(extents) <= 3:
                return proposal
            if longest_reduction(capture(self._program, case.signature)) < _SMALL_REDUCTION:
                return proposal
            extents = [max(extent // 2, 3) for extent in extents]


def _groups(targets: Sequence[ShapeCase], *, by_position: bool = False) -> Iterator[_Group]:
    """Places of equal extents (equal in every target), without those of extent one or zero."""
    places: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    for name, shape in targets[0].shapes.items():
        for dim in range(len(shape)):
            key = tuple(case.shapes[name][dim] for case in targets)
            places.setdefault((*key, dim) if by_position else key, []).append((name, dim))
    for key, found in places.items():
        if key[0] > 1:
            yield _Group(tuple(found), key[0])


def _pinned_numbers(program: Program) -> set[int]:
    """Extents of weights and large whole numbers of the module; an extent equal to one counts as tied to it.

    A small number is rather a window or a stride than an extent; the module's own checks must do for those.
    """
    extents = {extent for spec in program.state for extent in spec.shape}
    return extents | {value for value in program.scalars.values() if type(value) is int and value > _WINDOW}


def _prime_at_most(number: int) -> int:
    """The largest odd prime up to `number`; three where there is none, one for one."""
    if number < 3:
        return 1 if number < 2 else 3
    candidate = number if number % 2 else number - 1
    while any(candidate % divisor == 0 for divisor in range(3, int(candidate**0.5) + 1, 2)):
        candidate -= 2
    return candidate
