"""The way of one candidate: parse -> compile -> inspect -> verify -> tune -> time -> roofline.

Every stage either hands on or ends the evaluation with a reason. Knows no strategy and no search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cupilot.device.base import Device, Ring, Session
from cupilot.errors import KernelSyntaxError
from cupilot.evaluate.built import BuiltKernel, build
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.result import Evaluation, InputsUsed, Verdict
from cupilot.evaluate.verify import Verified, verify
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Failed, Stage

VERIFY_RING = Ring(inputs=3, outputs=2)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    threads: int = 1
    quick: bool = False  # shortens timing, never correctness


def evaluate(
    problem: Problem,
    text: str,
    device: Device,
    options: Options = Options(),
    progress: Progress = lambda _: None,
) -> Evaluation:
    """The whole way, for the text of a kernel file."""
    try:
        kernel = parse_kernel(text)
    except KernelSyntaxError as error:
        where = f"line {error.line}, column {error.column}: {error.message}"
        return Evaluation(Verdict.FAILED, Stage.PARSE, where, log=error.hint)
    return evaluate_kernel(problem, kernel, device, options, progress)


def evaluate_kernel(
    problem: Problem,
    kernel: KernelFile,
    device: Device,
    options: Options = Options(),
    progress: Progress = lambda _: None,
) -> Evaluation:
    return _Evaluating(problem, kernel, device, options, progress).run()


class _Evaluating:
    """One evaluation in the making; `so_far` gathers what is known."""

    def __init__(
        self, problem: Problem, kernel: KernelFile, device: Device, options: Options, progress: Progress
    ) -> None:
        self.problem, self.kernel, self.device = problem, kernel, device
        self.options, self.progress = options, progress
        self.so_far = Evaluation(Verdict.PASSED, Stage.PARSE, "")

    def run(self) -> Evaluation:
        with self._timing("compile"):
            built = self._build()
        if isinstance(built, Failed):
            return self.so_far.failed_at(built)
        with self._timing("verify"):
            failed = self._verify(built)
        if failed is not None:
            return self.so_far.failed_at(failed)
        return self.so_far

    def _build(self) -> BuiltKernel | Failed:
        self.progress("compiling")
        point = first_point(self.kernel)
        self.so_far = replace(self.so_far, stage=Stage.COMPILE, tuned=point)
        return build(self.kernel, point, self.problem.target, self.device)

    def _verify(self, built: BuiltKernel) -> Failed | None:
        self.so_far = replace(self.so_far, stage=Stage.VERIFY)
        found = verify(
            self.problem, self._opener(built), VERIFY_RING, ReferenceCache(), progress=self.progress
        )
        if isinstance(found, Failed):
            return found
        self.so_far = replace(
            self.so_far,
            reason=_right(found),
            error=found.error,
            inputs=InputsUsed(found.inputs, found.dropped),
            shapes=found.shapes,
            scaled=found.scaled,
            notes=_notes(self.problem, found),
        )
        return None

    def _opener(self, built: BuiltKernel) -> Callable[[ShapeCase], Session | Failed]:
        return lambda case: built.open(case.signature, VERIFY_RING, self.options.threads)

    @contextmanager
    def _timing(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = {**self.so_far.spent_s, part: time.perf_counter() - start}
            self.so_far = replace(self.so_far, spent_s=spent)


def _right(found: Verified) -> str:
    shapes = f"{len(found.shapes)} shape{'s' * (len(found.shapes) > 1)}"
    return f"right on {len(found.inputs)} inputs at {shapes}"


def _notes(problem: Problem, found: Verified) -> tuple[str, ...]:
    notes = []
    if found.scaled:
        notes.append("the reference does not fit into memory at the target: checked at scaled shapes")
    if problem.fixed_shape:
        notes.append("the problem fixes its shape: held-out shapes are not checked")
    if found.sketched:
        notes.append(f"error bound sampled, not derived, for: {', '.join(found.sketched)}")
    return tuple(notes)
