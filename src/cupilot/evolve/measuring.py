"""The bench of a real run: the evaluator of this machine, with effort by purpose. A context manager."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from cupilot.device.base import Device
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.effort import FULL, QUICK, SEARCH
from cupilot.evaluate.pipeline import Options, evaluate_kernel, faster, points_of
from cupilot.evaluate.preparation import prepare
from cupilot.evaluate.quiet import STRICT, Gate
from cupilot.evaluate.result import Evaluation, Interval
from cupilot.evolve.answers import Known
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem

# While searching, a disturbed time only costs a wrong choice, which races and the proof put right. Times are
# of the CPU and hold where the core is shared, as long as a baseline equals itself.
SEARCHING = Gate(slowdown=2.0, pressure=1.0, stall=4.0, null=0.1)


class Measurer:
    """See `answers.Bench`. Only the proof insists on a quiet machine; `gate` is what it insists on.

    Entering it makes ready what does not depend on a kernel, which takes long the first time: references of
    the problem, the process that baselines are forked from.
    """

    def __init__(self, problem: Problem, device: Device, gate: Gate = STRICT) -> None:
        self._bench = Bench(problem, device)
        self._gate = gate

    def evaluate(self, kernel: KernelFile) -> Evaluation:
        self._bench.gate = SEARCHING
        return evaluate_kernel(self._bench, kernel, Options(effort=SEARCH))

    def race(self, challenger: Known, champion: Known) -> Interval | None:
        self._bench.gate = SEARCHING
        found = faster(self._bench, challenger, champion, QUICK)
        return found if isinstance(found, Interval) else None

    def prove(self, champion: Known) -> Evaluation:
        self._bench.gate = self._gate
        kernel, evaluation = champion
        start = points_of(evaluation, self._bench.problem.targets)
        return evaluate_kernel(self._bench, kernel, Options(effort=FULL, start=start))

    def close(self) -> None:
        self._bench.close()

    def __enter__(self) -> Self:
        bench = self._bench
        if bench.device.has_clock:
            _ = bench.host  # torch loads there meanwhile
        try:
            prepare(bench.problem, bench.cache)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
