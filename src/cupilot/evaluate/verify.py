"""Decides whether a kernel computes its problem's function: case by case, in a session that sees inputs only.

The candidate's process is written inputs and poisoned outputs and is read raw bytes; references and seeds
never enter it. Cases come in the order that unmasks wrong kernels soonest. Does not compile or time.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random

import numpy as np

from cupilot.device.base import Died, Ring, Session
from cupilot.device.memory import SessionOverError
from cupilot.errors import UsageError
from cupilot.evaluate.blame import sentence
from cupilot.evaluate.compare import compare
from cupilot.evaluate.inputs import Distribution, draw_inputs
from cupilot.evaluate.preparation import Progress, prepare, why_dead
from cupilot.evaluate.reference import Array, build_reference
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.rounding import rounding_of
from cupilot.evaluate.suite import Case, Coverage, Material, Suite, load_case, raw_arrays
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import ErrorFigure, Failed, Stage

OpenSession = Callable[[ShapeCase], "Session | Failed"]

FRESH = (Distribution("normal"), Distribution("low bits"), Distribution("sparse"))
REPEATS = 3  # runs of the first case of each shape, in different block orders, that must agree bit for bit


@dataclass(frozen=True)
class Verified:
    """The kernel is right on everything tried; `error` is the element that came closest to being wrong."""

    error: ErrorFigure
    suite: Suite
    time_s: Mapping[str, float]  # by part: prepare, load, fresh, run, compare

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.suite.inputs

    @property
    def dropped(self) -> Mapping[str, str]:
        return self.suite.dropped

    @property
    def shapes(self) -> tuple[str, ...]:
        return self.suite.shapes

    @property
    def coverage(self) -> Mapping[str, Coverage]:
        return self.suite.coverage

    @property
    def sketched(self) -> tuple[str, ...]:
        return self.suite.sketched

    @property
    def scaled(self) -> bool:
        return self.suite.scaled


def verify(
    problem: Problem,
    open_session: OpenSession,
    ring: Ring,
    cache: ReferenceCache,
    *,
    progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Verified | Failed:
    """Runs every case of the problem's suite, and cases with seeds that did not exist before this call."""
    return _Verification(problem, open_session, ring, cache, progress, clock).run()


class _Verification:
    """One verdict in the making."""

    def __init__(
        self,
        problem: Problem,
        open_session: OpenSession,
        ring: Ring,
        cache: ReferenceCache,
        progress: Progress,
        clock: Callable[[], float],
    ) -> None:
        self._problem, self._open, self._ring, self._cache = problem, open_session, ring, cache
        self._progress, self._clock = progress, clock
        self._random = Random(secrets.randbits(64))
        self._time_s: dict[str, float] = {}
        self._worst = ErrorFigure(-1.0, "", (), 0.0, 0.0, "", "")
        self._last_call = 0
        self._right: list[str] = []  # shapes at which every case passed

    def run(self) -> Verified | Failed:
        with self._timing("prepare"):
            suite = prepare(self._problem, self._cache, self._progress)
        for place, (name, cases) in enumerate(groupby(suite.cases, key=lambda case: case.shape)):
            shape = suite.shape(name)
            self._progress(f"checking {shape}")
            opened = self._open(shape)
            if isinstance(opened, Failed):
                return opened
            try:
                with opened as session:
                    failed = self._shape(session, shape, tuple(cases), fresh=place == 0)
            except SessionOverError:
                failed = Failed(
                    Stage.VERIFY, f"the kernel answered, and then ended its process; shape {shape}"
                )
            if failed is not None:
                return failed
            self._right.append(name)
        return Verified(self._worst, suite, self._time_s)

    def _shape(
        self, session: Session, shape: ShapeCase, cases: tuple[Case, ...], *, fresh: bool
    ) -> Failed | None:
        for place, case in enumerate(cases):
            with self._timing("load"):
                material = self._material(case)
            repeats = REPEATS if place == 0 else 1
            failed = self._case(session, shape, case, material, repeats=repeats, leave_old=place == 1)
            if failed is not None:
                return failed
        for distribution in FRESH if fresh else ():
            with self._timing("fresh"):
                case, made = self._made_now(shape, distribution)
            failed = None if made is None else self._case(session, shape, case, made)
            if failed is not None:
                return failed
        return None

    def _material(self, case: Case) -> Material:
        material = load_case(self._cache, case)
        if material is None:  # made room for others: everything is computed again, from the same seeds
            prepare(self._problem, self._cache, self._progress, again=True)
            material = load_case(self._cache, case)
        if material is None:
            raise UsageError(
                "the cache of references is too small for this problem",
                hint="point CUPILOT_CACHE at a disk with room",
            )
        return material

    def _made_now(self, shape: ShapeCase, distribution: Distribution) -> tuple[Case, Material | None]:
        """A case with a seed younger than the compiled kernel; None where the input proves nothing."""
        tensors = draw_inputs(self._problem, shape, distribution, secrets.randbits(48))
        names = [spec.name for spec in shape.signature.outputs]
        rounding = rounding_of(self._problem.precision)
        coherent = distribution.is_coherent
        reference = build_reference(self._problem.reference, tensors, names, rounding, coherent=coherent)
        case = Case(shape.name, f"fresh {distribution.name}", distribution.exposes, "")
        if why_dead(reference, distribution):
            return case, None
        return case, Material(raw_arrays(tensors), reference)

    def _case(
        self,
        session: Session,
        shape: ShapeCase,
        case: Case,
        material: Material,
        *,
        repeats: int = 1,
        leave_old: bool = False,
    ) -> Failed | None:
        first: dict[str, Array] | None = None
        for turn in range(repeats):
            with self._timing("run"):
                found = self._run(session, material, natural=turn == repeats - 1, leave_old=leave_old)
            if isinstance(found, str):
                return self._failed(shape, case, found)
            if first is None:
                first = found
            elif (name := _first_difference(first, found)) is not None:
                unwritten = self._unwritten(session, material, name)
                reason = (
                    f"{name} differs between runs on the same input: does it depend on the order of blocks?"
                )
                return self._failed(shape, case, unwritten or reason)
        assert first is not None
        with self._timing("compare"):
            return self._compare(session, shape, case, material, first)

    def _run(
        self, session: Session, material: Material, *, natural: bool, leave_old: bool
    ) -> dict[str, Array] | str:
        """One call on a random place of the ring; a string completes the sentence "the kernel ...".

        `leave_old`: where the last call wrote its result, which the kernel may not take for the right one.
        """
        call = self._random.randrange(1 << 16)
        if leave_old:
            call += (self._last_call - call) % self._ring.outputs
        self._last_call = call
        slot, output = call % self._ring.inputs, call % self._ring.outputs
        session.write(slot, material.tensors)
        if not leave_old:
            session.poison(output)
        ran = session.run(call, 1, 0 if natural else self._random.randrange(1, 1 << 31))
        if isinstance(ran, Died):
            return f"the kernel {ran.reason}"
        if (outside := session.check_guards()) is not None:
            return f"the kernel {outside}"
        after = session.read_inputs(slot)
        for name, array in material.tensors.items():
            if not np.array_equal(_bytes(array), _bytes(after[name])):
                return f"the kernel changed its input {name}"
        return session.read(output)

    def _compare(
        self, session: Session, shape: ShapeCase, case: Case, material: Material, found: Mapping[str, Array]
    ) -> Failed | None:
        types = {spec.name: spec.dtype for spec in shape.signature.outputs}
        for expected in material.reference.outputs:
            raw = found[expected.name].reshape(expected.value.shape)
            worst = compare(raw, types[expected.name], expected)
            figure = ErrorFigure(
                *(worst.ratio, expected.name, worst.index, worst.got, worst.expected, case.input, case.shape)
            )
            if worst.ratio > self._worst.ratio:
                self._worst = replace(figure, detail={"allowed": worst.allowed})
            if not worst.is_right:
                reason = sentence(case, worst, raw, types[expected.name], expected)
                unwritten = self._unwritten(session, material, expected.name)
                return self._failed(shape, case, f"{unwritten}; {reason}" if unwritten else reason, figure)
        return None

    def _unwritten(self, session: Session, material: Material, name: str) -> str:
        """How many elements still hold the poison after another run, in words; empty for none."""
        session.write(0, material.tensors)
        session.poison(0)
        before = session.read(0)[name].copy()
        call = self._ring.inputs * self._ring.outputs
        if isinstance(session.run(call, 1, 0), Died):
            return ""
        after = session.read(0)[name]
        width = before.dtype.itemsize
        same = _bytes(before).reshape(-1, width) == _bytes(after).reshape(-1, width)
        count = int(same.all(axis=1).sum())
        return f"the kernel left {count} of {before.size} elements of {name} unwritten" if count else ""

    def _failed(self, shape: ShapeCase, case: Case, reason: str, figure: ErrorFigure | None = None) -> Failed:
        if self._right and case.shape not in self._right:
            reason += f" (right at {', '.join(self._right)}: is a size taken for granted?)"
        return Failed(Stage.VERIFY, f"{reason}; input {case.input!r}, shape {shape}", error=figure)

    @contextmanager
    def _timing(self, part: str) -> Iterator[None]:
        start = self._clock()
        try:
            yield
        finally:
            self._time_s[part] = self._time_s.get(part, 0.0) + self._clock() - start


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _first_difference(first: Mapping[str, Array], second: Mapping[str, Array]) -> str | None:
    return next(
        (n for n, array in first.items() if not np.array_equal(_bytes(array), _bytes(second[n]))), None
    )
