"""One kernel from its text to its fate, in a worker process."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable

from benchmarks.false_verdicts.equivalent import argument, difference
from benchmarks.false_verdicts.judge import built, judge
from benchmarks.false_verdicts.mutate import Mutant
from benchmarks.false_verdicts.operators import OPERATORS
from benchmarks.false_verdicts.outcomes import Fate, Outcome
from benchmarks.false_verdicts.torch_compile import judge_compiled

from cupilot.device.registry import open_device
from cupilot.errors import ProblemError
from cupilot.types import Failed

TORCH_COMPILE = "torch.compile"

Job = tuple[str, str, Mutant | None]  # operator, kernel, its change (None: the honest kernel itself)


def identity(job: Job) -> tuple[str, str, str]:
    operator, kernel, mutant = job
    return operator, kernel, mutant.change if mutant else ""


def run_batch(jobs: Iterable[Job], stop_s: float) -> list[Outcome]:
    """The kernels of one operator, one after the other, until the monotonic clock shows `stop_s`."""
    warnings.filterwarnings("ignore", category=UserWarning)
    return [run_job(*job) for job in itertools.takewhile(lambda _: time.monotonic() < stop_s, jobs)]


def run_job(name: str, kernel: str, mutant: Mutant | None) -> Outcome:
    operator = next(o for o in OPERATORS if o.name == name)
    device = open_device("cpu")
    rule, change = (mutant.rule, mutant.change) if mutant else ("", "")

    def outcome(fate: Fate, detail: str, verdict_s: float = 0.0) -> Outcome:
        return Outcome(name, kernel, rule, change, fate, detail, verdict_s)

    try:
        if kernel == TORCH_COMPILE:
            start = time.perf_counter()
            verdict = judge_compiled(operator)
        else:
            candidate = built(operator, mutant.text if mutant else operator.kernel_file(kernel), device)
            if isinstance(candidate, Failed):
                fate = Fate.STILLBORN if mutant else Fate.REFUSED
                return outcome(fate, f"{candidate.stage}: {candidate.reason} {candidate.log}")
            start = time.perf_counter()
            verdict = judge(operator, candidate)
    except ProblemError as refusal:
        return outcome(
            Fate.STILLBORN if mutant else Fate.REFUSED, f"the problem is refused: {refusal.message}"
        )
    verdict_s = time.perf_counter() - start
    if isinstance(verdict, Failed):
        fate = Fate.KILLED if mutant else Fate.REFUSED
        return outcome(fate, f"{verdict.stage}: {verdict.reason}", verdict_s)
    near = f"closest to wrong: {verdict.error.ratio:.2g} of the allowed error on {verdict.error.input!r}"
    if mutant is None:
        return outcome(Fate.PASSED, near, verdict_s)
    original = built(operator, operator.kernel_file(kernel), device)
    assert not isinstance(original, Failed) and not isinstance(candidate, Failed)
    distance = difference(operator, original, candidate)
    argued = argument(name, kernel, change)
    fate = Fate.EQUIVALENT if distance.is_equivalent or argued else Fate.SURVIVED
    return outcome(fate, "; ".join(filter(None, (argued, str(distance), near))), verdict_s)
