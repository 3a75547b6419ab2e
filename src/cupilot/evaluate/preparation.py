"""Prepares a problem for verdicts: draws inputs, computes references, sees what they cover, tries nulls.

Runs once per problem; a problem on which no honest verdict is possible is refused here, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from cupilot.errors import ProblemError
from cupilot.evaluate.coverage import AIMS, Masks, Tally, aimed_inputs, strengths
from cupilot.evaluate.inputs import Distribution, derived_seed, distributions, draw_inputs
from cupilot.evaluate.nullgate import Trial, failing_gates
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.rivals import Rivalry, Strengths, compete, rival_inputs
from cupilot.evaluate.rounding import rounding_of
from cupilot.evaluate.suite import (
    Case,
    Coverage,
    Suite,
    case_key,
    load_suite,
    store_case,
    store_suite,
    suite_key,
)
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem

FEWEST_LIVE = 8
DEAD_SHARE = 0.5  # of an output's elements that prove nothing
HOPELESS_SHARE = 1.0  # of an element's value: an error allowed beyond it leaves nothing to check
FEW = 8  # distributions at a shape that is neither the smallest nor the target
FEWEST_AT_TARGET, MOST_AT_TARGET = 4, 12
NUMEL_AT_TARGET = 1 << 26  # inputs and outputs of all cases at the target together
MOST_ROUNDS = 48  # further inputs at one shape, until every element has won, and again until all are covered
AIMED_NUMEL = 1 << 23  # inputs and outputs of all of them together
FEW_TURNS = (
    2  # inputs for elements that compete along a dimension, where letting each win would take too many
)
SMALL_NUMEL = 1 << 20  # a shape at which a few more inputs cost next to nothing
MEMORY_SHARE = 0.5  # of what is free
LARGEST_REFERENCE_BYTES = 3 << 30  # beyond it one reference takes minutes, and a few fill the cache
FIRST_NUMEL = 64  # elements of the first shape, at least: one element alone tells little

Progress = Callable[[str], None]
Tensors = Mapping[str, torch.Tensor]


def prepare(
    problem: Problem, cache: ReferenceCache, progress: Progress = lambda _: None, *, again: bool = False
) -> Suite:
    """The suite of a problem, from the cache if it is there; `again` brings back cases that were evicted."""
    shapes, scaled = planned_shapes(problem)
    key = suite_key(problem, shapes[-1] if scaled else None)
    suite = None if again else load_suite(cache, key, shapes)
    if suite is None or suite.scaled is not scaled:
        suite = _Preparation(problem, shapes, scaled, key, cache, progress).run()
        store_suite(cache, key, suite)
    return suite


def admit(problem: Problem, cache: ReferenceCache) -> None:
    """The quick part of `prepare`, at the first shape alone: raises where no honest verdict is possible."""
    shapes, scaled = planned_shapes(problem)
    key = suite_key(problem, shapes[-1] if scaled else None)
    _Preparation(problem, shapes[:1], scaled, key, cache, lambda _: None).run()


def planned_shapes(problem: Problem) -> tuple[tuple[ShapeCase, ...], bool]:
    """The one for every input first, the targets last; whether a target had to be scaled to fit."""
    free_bytes = int(_memory_available() * MEMORY_SHARE)
    # In powers of two, so that the plan, and with it the suite, does not change with every process that runs.
    free_bytes = min(1 << (free_bytes.bit_length() - 1), LARGEST_REFERENCE_BYTES)
    held_out = sorted(problem.shapes[len(problem.targets) :], key=lambda case: case.numel)
    held_out.sort(key=lambda case: (case.numel < FIRST_NUMEL, case.name != "small"))
    if problem.target_fits(free_bytes):
        return (*held_out, *problem.targets), False
    limit = free_bytes
    while (scaled := problem.scaled(limit)) is not None and problem.reference_bytes(scaled) > free_bytes:
        limit //= 2
    if scaled is None:
        need, have = problem.reference_bytes(problem.targets[0]) >> 20, free_bytes >> 20
        raise ProblemError(
            f"{problem.name}: the reference needs about {need} MB at a fixed shape, {have} MB are available",
            hint="use a smaller size of the problem (`--size`), or a machine with more memory",
        )
    return (*held_out, scaled), True


def _memory_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 4 << 30


class _Preparation:
    """The state of one preparation: cases so far, what was dropped, what is covered."""

    def __init__(
        self,
        problem: Problem,
        shapes: tuple[ShapeCase, ...],
        scaled: bool,
        key: str,
        cache: ReferenceCache,
        progress: Progress,
    ) -> None:
        self._shapes, self._scaled, self._key = shapes, scaled, key
        self._problem, self._cache, self._progress = problem, cache, progress
        self._rounding = rounding_of(problem.precision)
        self._seed = derived_seed(cache.base_seed, problem.name)
        self._own = problem.draw_values(self._seed % 2**31, shapes[-1])
        self._cases: list[Case] = []
        self._trials: list[Trial] = []
        self._live: set[Distribution] = set()
        self._dead: dict[str, str] = {}
        self._sketched: set[str] = set()
        self._rivalries: list[Rivalry] = []

    def run(self) -> Suite:
        every = distributions(self._problem)
        coverage = {}
        for place, shape in enumerate(self._shapes):
            first, target = place == 0, shape.name.startswith(("target", "scaled"))
            most = min(MOST_AT_TARGET, max(FEWEST_AT_TARGET, NUMEL_AT_TARGET // max(1, shape.numel)))
            chosen = every if first else every[: most if target else FEW]
            if not first and shape.numel <= SMALL_NUMEL:
                chosen = (*chosen, *(d for d in every if d.needs_room and d in self._live))
            coverage[shape.name] = self._shape(shape, chosen, gate=first)
            if first:
                self._refuse_idle_kernels()
        self._refuse_blindness(every)
        dropped = {d.name: self._dead[d.name] for d in every if d not in self._live and d.name in self._dead}
        return Suite(
            tuple(self._cases), dropped, coverage, tuple(sorted(self._sketched)), self._scaled, self._shapes
        )

    def _shape(self, shape: ShapeCase, chosen: Sequence[Distribution], *, gate: bool) -> Coverage:
        tally = Tally()
        base: Tensors | None = None
        for distribution in chosen:
            self._progress(f"{shape.name}: {distribution.name}")
            seed = derived_seed(self._seed, shape.name, distribution.name)
            tensors = draw_inputs(self._problem, shape, distribution, seed, self._own)
            reference = self._reference(tensors, shape, coherent=distribution.is_coherent)
            reason = why_dead(reference, distribution)
            if reason:
                self._dead.setdefault(distribution.name, reason)
                continue
            faint = why_faint(reference)
            if faint:
                self._dead.setdefault(distribution.name, faint)
            else:
                self._live.add(distribution)
            base = base or tensors
            self._keep(shape, distribution.name, distribution.exposes, seed, tensors, reference)
            if tally.missing() or not tally.exercised:
                tally.add(strengths(self._problem, shape, tensors, reference))
            if gate and not faint and distribution.is_finite:
                self._trials.append(Trial(tensors, reference, self._halved(tensors)))
        if base is not None and gate:
            self._rivalries = self._found_rivalries(shape, base)
        if base is not None:
            self._let_win(shape, base, tally)
        exhausted = base is not None and self._aim(shape, base, tally)
        return tally.counts(exhausted=exhausted)

    def _found_rivalries(self, shape: ShapeCase, base: Tensors) -> list[Rivalry]:
        """The dimensions along which elements compete, as one input each at the first shape tells."""
        self._progress(f"{shape.name}: what competes")
        lines = [(d.tensor, d.dim) for d in distributions(self._problem) if d.pattern == "selection"]
        plain = self._strengths(shape, base)
        found = []
        for tensor, dim in lines:
            for rivalry in (Rivalry(tensor, dim, 1), Rivalry(tensor, dim, -1)):
                crowned = rival_inputs(self._problem, shape, base, rivalry, 0)
                felt = self._strengths(shape, crowned)
                if tensor not in plain or tensor not in felt:
                    continue
                before = Strengths(base[tensor].double(), plain[tensor])
                if compete(before, Strengths(crowned[tensor].double(), felt[tensor])):
                    found.append(rivalry)
                    break
        return found

    def _strengths(self, shape: ShapeCase, tensors: Tensors) -> Masks:
        """Empty where the input proves nothing."""
        reference = self._reference(tensors, shape, coherent=False)
        return {} if why_dead(reference, None) else strengths(self._problem, shape, tensors, reference)

    def _let_win(self, shape: ShapeCase, base: Tensors, tally: Tally) -> None:
        """Adds inputs in which every place along the dimensions that compete wins by far."""
        left = min(MOST_ROUNDS, AIMED_NUMEL // max(1, shape.numel))
        for rivalry in self._rivalries:
            needed = rivalry.turns(shape)
            turns = needed if needed <= left else min(FEW_TURNS, left)
            left -= turns
            for turn in range(turns):
                self._progress(f"{shape.name}: {rivalry.name}, {turn + 1} of {turns}")
                tensors = rival_inputs(self._problem, shape, base, rivalry, turn)
                reference = self._reference(tensors, shape, coherent=False)
                if why_dead(reference, None):
                    break
                name = f"{rivalry.name} ({turn + 1})"
                self._keep(shape, name, "places that are overlooked", self._seed, tensors, reference)
                if tally.missing():
                    tally.add(strengths(self._problem, shape, tensors, reference))

    def _aim(self, shape: ShapeCase, base: Tensors, tally: Tally) -> bool:
        """Adds inputs that put elements not yet exercised where they count; True when all was tried."""
        sizes = dict.fromkeys(AIMS, max(1, tally.missing() // 4))
        barren: set[str] = set()
        for turn in range(max(0, min(MOST_ROUNDS, AIMED_NUMEL // max(1, shape.numel)))):
            if not tally.missing() or not sizes:
                break
            aim = max(sizes, key=lambda name: sizes[name])
            seed = derived_seed(self._seed, shape.name, "aimed", turn)
            tensors = aimed_inputs(self._problem, shape, base, tally, aim, sizes[aim], seed)
            reference = self._reference(tensors, shape, coherent=False)
            gain = 0
            if not why_dead(reference, None):
                gain = tally.add(strengths(self._problem, shape, tensors, reference))
            if gain:
                name = f"aimed {turn + 1} ({aim})"
                self._keep(shape, name, "elements that other inputs miss", seed, tensors, reference)
            barren = barren - {aim} if gain else barren | {aim}
            if gain * 4 < sizes[aim]:
                sizes[aim] //= 4
            if sizes[aim] == 0:
                del sizes[aim]
        return not tally.missing() or len(barren) == len(AIMS)

    def _reference(self, tensors: Tensors, shape: ShapeCase, *, coherent: bool) -> Reference:
        names = [spec.name for spec in shape.signature.outputs]
        reference = build_reference(
            self._problem.reference, tensors, names, self._rounding, coherent=coherent
        )
        self._sketched.update(reference.sketched)
        return reference

    def _keep(
        self, shape: ShapeCase, name: str, exposes: str, seed: int, tensors: Tensors, reference: Reference
    ) -> None:
        key = case_key(self._key, shape, name, seed)
        store_case(self._cache, key, tensors, reference)
        self._cases.append(Case(shape.name, name, exposes, key))

    def _halved(self, tensors: Tensors) -> tuple[torch.Tensor, ...]:
        """What comes out when the second half of every floating input is missing."""
        cut = {}
        for name, tensor in tensors.items():
            cut[name] = tensor.clone()
            if tensor.is_floating_point() and name in self._problem.targets[0].shapes:
                cut[name].view(-1)[(tensor.numel() + 1) // 2 :] = 0
        return self._problem.reference(cut, torch.float32)

    def _refuse_blindness(self, every: Sequence[Distribution]) -> None:
        """Refuses a problem that too few inputs test."""
        live = [d for d in self._live if d.is_finite]
        if len(live) < FEWEST_LIVE:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in list(self._dead.items())[:4])
            raise ProblemError(
                f"{self._problem.name} cannot be checked: only {len(live)} of {len(every)} kinds of input "
                f"prove anything ({reasons})",
                hint="keep intermediate values finite in single precision, or shorten sums that cancel",
            )

    def _refuse_idle_kernels(self) -> None:
        """Refuses a problem that a kernel solves by doing nothing."""
        passing = failing_gates(self._trials, self._rounding.storage)
        if passing:
            raise ProblemError(
                f"{self._problem.name} cannot be checked: {' and '.join(passing)} would pass as right",
                hint="return more than a constant, at an extent above one",
            )


def why_dead(reference: Reference, distribution: Distribution | None) -> str:
    """Why an input proves nothing here and is dropped, or an empty string."""
    if distribution is not None and distribution.pattern == "masked":
        if any(output.nonfinite_share for output in reference.outputs):
            return "minus infinity reaches the result"
    elif distribution is None or not distribution.places_nonfinite:
        if all(output.nonfinite_share > DEAD_SHARE for output in reference.outputs):
            return "the reference is not finite"
    elif not any(output.nonfinite_share for output in reference.outputs):
        return "no NaN or infinity reaches the result"
    if all(output.vagueness(HOPELESS_SHARE) > DEAD_SHARE for output in reference.outputs):
        return "rounding alone may change half of the result by as much as its value"
    return ""


def why_faint(reference: Reference) -> str:
    """Why an input proves so little that it does not count as live, although it is checked."""
    if all(output.vagueness() > DEAD_SHARE for output in reference.outputs):
        return "rounding alone may change half of the result by more than 1 % (checked, not counted)"
    return ""
