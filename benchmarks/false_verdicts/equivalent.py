"""Whether a surviving mutant is a mutant at all: its outputs beside the original's, on many inputs.

Independent of the error bound, so that the judge is not its own witness: bits are compared, then units in the
last place. A kernel within `FAITHFUL_ULP` of an honest one everywhere is honest itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from benchmarks.false_verdicts.judge import problem_of
from benchmarks.false_verdicts.operator import Operator

from cupilot.device.base import Array, Died, Ring, Session
from cupilot.evaluate.built import BuiltKernel
from cupilot.evaluate.inputs import distributions, draw_inputs
from cupilot.evaluate.preparation import planned_shapes, prepare
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.suite import load_case, raw_arrays
from cupilot.problem.cases import ShapeCase
from cupilot.types import Failed

FAITHFUL_ULP = 4.0
# Mutants that round differently but compute the same function, by operator, kernel and what the change made.
ARGUED = {
    ("softmax", "three passes", "* 1.0001f"): "the factor is in every term, and in their sum",
    ("masked_softmax", "three passes", "as_tf32(x[i])"): "any number near the largest serves: it cancels",
    ("sum", "pairwise", "long half = n / 2.001f"): "a sum may be split anywhere",
    ("conv1d", "direct", "if (t % 100 != 99)"): "there are five taps",
    ("max_with_index", "sequential", "(std::isnan(x[i]))"): "of several NaN any may be named",
}
DRAWS = 3  # of every distribution at every shape, besides the suite's own inputs
_RING = Ring(inputs=2, outputs=1)


@dataclass(frozen=True)
class Difference:
    """Over all inputs: how many were tried, how many gave other bits, the largest difference."""

    inputs: int
    differing: int
    ulp: float

    @property
    def is_equivalent(self) -> bool:
        return self.ulp <= FAITHFUL_ULP

    def __str__(self) -> str:
        if not self.differing:
            return f"identical bits on {self.inputs} inputs"
        return f"other bits on {self.differing} of {self.inputs} inputs, by up to {self.ulp:.3g} ulp"


def argument(operator: str, kernel: str, change: str) -> str:
    """Why the mutant computes the same function, or an empty string."""
    made = change.partition(" becomes ")[2]
    return next((why for (*of, part), why in ARGUED.items() if of == [operator, kernel] and part in made), "")


def difference(operator: Operator, original: BuiltKernel, mutant: BuiltKernel) -> Difference:
    inputs, differing, worst = 0, 0, 0.0
    for shape in planned_shapes(problem_of(operator))[0]:
        sessions = [built.open(shape.signature, _RING) for built in (original, mutant)]
        first, second = (session for session in sessions if not isinstance(session, Failed))
        with first, second:
            for tensors in _inputs(operator, shape):
                ulp = _ulp(_outputs(first, tensors), _outputs(second, tensors))
                inputs, differing, worst = inputs + 1, differing + (ulp > 0), max(worst, ulp)
    return Difference(inputs, differing, worst)


def _inputs(operator: Operator, shape: ShapeCase) -> Iterator[Mapping[str, Array]]:
    problem, cache = problem_of(operator), ReferenceCache()
    for case in prepare(problem, cache).cases:
        if case.shape == shape.name and (material := load_case(cache, case)) is not None:
            yield material.tensors
    for distribution in distributions(problem):
        for seed in range(DRAWS):
            yield raw_arrays(draw_inputs(problem, shape, distribution, seed))


def _outputs(session: Session, tensors: Mapping[str, Array]) -> Mapping[str, Array]:
    session.write(0, tensors)
    session.poison(0)
    ran = session.run(0, 1)
    if isinstance(ran, Died):
        raise RuntimeError(f"a kernel that had passed died: it {ran.reason}")
    return session.read(0)


def _ulp(first: Mapping[str, Array], second: Mapping[str, Array]) -> float:
    """The largest difference in units in the last place of the first; infinite if it is of another kind."""
    worst = 0.0
    for name in first:
        a, b = np.atleast_1d(first[name]), np.atleast_1d(second[name])
        if a.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(a, b) else np.inf)
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(a.astype(np.float64) - b) / np.spacing(np.abs(a)).astype(np.float64)
        distance[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        worst = max(worst, float(np.nan_to_num(distance, nan=np.inf).max(initial=0.0)))
    return worst
