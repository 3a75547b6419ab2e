"""The way of one candidate: parse -> compile -> inspect -> verify -> tune -> time -> roofline.

Every stage either hands on or ends the evaluation with a reason. Knows no strategy and no search.

For one kernel: `evaluate(problem, text, device, options)`. For many kernels on one problem make a `Bench`,
call `evaluate_kernel(bench, kernel, Options(effort=SEARCH))` for each, `faster(bench, challenger, champion)`
to run two beside each other, and `evaluate_kernel(bench, champion, Options(effort=FULL))` as the proof.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from cupilot.device.base import Device, Session
from cupilot.errors import KernelSyntaxError
from cupilot.evaluate.advice import to_json
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import VERIFY_RING, BuiltKernel, build
from cupilot.evaluate.contestant import KernelContestant
from cupilot.evaluate.counting import count
from cupilot.evaluate.effort import FULL, Effort
from cupilot.evaluate.race import race
from cupilot.evaluate.result import AtTarget, Evaluation, InputsUsed, Interval, Kind, Verdict
from cupilot.evaluate.timing import Timed, advice_for, facts_of, time_at
from cupilot.evaluate.tuner import Point, Tuned
from cupilot.evaluate.tuning import tune_at
from cupilot.evaluate.verify import Verified, verify
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.tunables import count_points, first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Failed, Stage, Undecided

Progress = Callable[[str], None]
Points = Mapping[str, Point]  # tuned constants, by target


@dataclass(frozen=True)
class Options:
    threads: int = 1
    effort: Effort = FULL
    start: Points = field(default_factory=dict)  # where tuning begins, if not at the kernel's first point


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
    with Bench(problem, device) as bench:
        return evaluate_kernel(bench, kernel, options, progress)


def evaluate_kernel(
    bench: Bench, kernel: KernelFile, options: Options = Options(), progress: Progress = lambda _: None
) -> Evaluation:
    return _Evaluating(bench, kernel, options, progress).run()


def faster(
    bench: Bench,
    challenger: tuple[KernelFile, Evaluation],
    champion: tuple[KernelFile, Evaluation],
    effort: Effort = FULL,
) -> Interval | Failed | Undecided:
    """How many times faster the challenger is than the champion, run beside each other, each as tuned.

    Both must have passed; over several targets it is the geometric mean. Failed: one of them misbehaved.
    """
    ratios = []
    for case in bench.problem.targets:
        contestants = []
        for name, (kernel, evaluation) in (("challenger", challenger), ("champion", champion)):
            point = points_of(evaluation, bench.problem.targets)[case.name]
            built = build(kernel, point, case.signature, bench.device)
            if isinstance(built, Failed):
                return built
            contestants.append(KernelContestant(name, built))
        found = race(
            contestants,
            case.signature,
            bench.fresh(case),
            bench.look(case, closely=False),
            bench.sentinel,
            effort.race,
            bench.gate,
        )
        if isinstance(found, Failed | Undecided):
            return found
        ratios.append(found.ratios["champion"])
    return mean_interval(ratios)


def points_of(evaluation: Evaluation, targets: Sequence[ShapeCase]) -> Points:
    """The constants it was tuned to, at every target."""
    return {
        case.name: evaluation.targets[case.name].tuned if evaluation.targets else evaluation.tuned
        for case in targets
    }


def mean_interval(intervals: Sequence[Interval]) -> Interval:
    """The geometric mean of ratios that were measured independently."""
    middle = statistics.fmean(math.log(each.ratio) for each in intervals)
    squares = sum(math.log(each.high / each.low) ** 2 / 4 for each in intervals)
    half = math.sqrt(squares) / len(intervals)
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


class _Evaluating:
    """One evaluation in the making; `so_far` gathers what is known."""

    def __init__(self, bench: Bench, kernel: KernelFile, options: Options, progress: Progress) -> None:
        self.bench, self.kernel, self.options, self.progress = bench, kernel, options, progress
        self.problem, self.effort = bench.problem, options.effort
        self.first = first_point(kernel)
        self.verified: dict[tuple[tuple[str, int], ...], BuiltKernel] = {}
        self.so_far = Evaluation(Verdict.PASSED, Stage.PARSE, "", tuned=self.first)

    def run(self) -> Evaluation:
        outcome = self._stages()
        if isinstance(outcome, Failed):
            return self.so_far.failed_at(outcome)
        if isinstance(outcome, Undecided):
            right = f" (the kernel is {self.so_far.reason})" if self.so_far.reason else ""
            return replace(self.so_far, verdict=Verdict.UNDECIDED, reason=outcome.reason + right)
        return self.so_far

    def _stages(self) -> Failed | Undecided | None:
        with self._timing("compile"):
            self.so_far = replace(self.so_far, stage=Stage.COMPILE)
            built = self._build(self.first, self.problem.targets[0])
        if isinstance(built, Failed):
            return built
        self.so_far = replace(self.so_far, facts=built.compiled.facts)
        if self.bench.device.has_clock:
            _ = self.bench.host  # torch loads there while the kernel is checked here
        with self._timing("verify"):
            failed = self._verify_first(built)
        if failed is not None:
            return failed
        if not self.bench.device.has_clock:
            self._count(built)
            return None
        timed = []
        for case in self.problem.targets:
            with self._timing("tune"):
                tuned = self._tune(case)
            if not isinstance(tuned, BuiltKernel):
                return tuned
            with self._timing("time"):
                outcome = self._time(tuned, case)
            if not isinstance(outcome, Timed):
                return outcome
            timed.append(outcome)
        self._conclude(timed)
        return None

    def _build(self, point: Point, case: ShapeCase) -> BuiltKernel | Failed:
        self.progress("compiling")
        return build(self.kernel, point, case.signature, self.bench.device)

    # ---- correctness ----
    def _verify_first(self, built: BuiltKernel) -> Failed | None:
        self.so_far = replace(self.so_far, stage=Stage.VERIFY)
        found = self._verify(built)
        if isinstance(found, Failed):
            return found
        self.so_far = replace(
            self.so_far,
            reason=_right(found),
            error=found.error,
            inputs=InputsUsed(
                found.inputs,
                found.dropped,
                {name: str(domain) for name, domain in self.problem.domains.items()},
            ),
            shapes=found.shapes,
            scaled=found.scaled,
            notes=_notes(self.problem, found),
        )
        return None

    def _verify(self, built: BuiltKernel) -> Verified | Failed:
        found = verify(
            self.problem, self._opener(built), VERIFY_RING, self.bench.cache, progress=self.progress
        )
        if isinstance(found, Verified):
            self.verified[_key(built.point)] = built
        return found

    def _count(self, built: BuiltKernel) -> None:
        """Without a clock the evaluation ends here, with what the device counted."""
        self.progress("counting")
        with self._timing("count"):
            digest = count(self.problem, built, self.problem.targets[0])
        if digest is not None:
            self.so_far = replace(
                self.so_far,
                facts={**self.so_far.facts, **digest.facts},
                advice=tuple(to_json(each) for each in digest.advice),
            )
        self._note(f"{self.bench.device.name} has no clock: no time is measured or predicted")

    def _opener(self, built: BuiltKernel) -> Callable[[ShapeCase], Session | Failed]:
        return lambda case: built.open(case.signature, VERIFY_RING, self.options.threads)

    # ---- speed ----
    def _tune(self, case: ShapeCase) -> BuiltKernel | Failed | Undecided:
        """The kernel at the fastest point that is right."""
        start = self.options.start.get(case.name, self.first)
        if count_points(self.kernel, 2) == 1:
            return self.verified[_key(self.first)]
        tuned = tune_at(self.bench, self.kernel, start, case, self.effort.tries, self.progress)
        if not isinstance(tuned, Tuned):
            return tuned
        self._note(*(f"dropped {_words(point)}: {reason}" for point, reason in tuned.dropped))
        for point in tuned.ranking:
            if _key(point) in self.verified:
                return self.verified[_key(point)]
            built = self._build(point, case)
            found = built if isinstance(built, Failed) else self._verify(built)
            if isinstance(built, BuiltKernel) and isinstance(found, Verified):
                if found.error.ratio > (self.so_far.error.ratio if self.so_far.error else 0):
                    self.so_far = replace(self.so_far, error=found.error)
                return built
            assert isinstance(found, Failed), "a kernel that is built and right was returned"
            self._note(f"dropped {_words(point)}: {found.reason}")
        return self.verified[_key(self.first)]

    def _time(self, built: BuiltKernel, case: ShapeCase) -> Timed | Failed | Undecided:
        self.so_far = replace(self.so_far, stage=Stage.TIME)
        self.progress(f"timing at {case.name}")
        return time_at(self.bench, built, case, self.effort)

    def _conclude(self, timed: Sequence[Timed]) -> None:
        first = timed[0]
        targets = {
            each.case.name: AtTarget(
                each.built.point,
                each.speedup,
                each.time_s,
                each.placement.floor_s,
                each.placement.attainable_s,
            )
            for each in timed
        }
        names = [name for name in first.speedup if all(name in each.speedup for each in timed)]
        self.so_far = replace(
            self.so_far,
            tuned=first.built.point,
            speedup={name: mean_interval([each.speedup[name] for each in timed]) for name in names},
            time_s=statistics.geometric_mean(at.time_s for at in targets.values()),
            floor_s=statistics.geometric_mean(at.floor_s for at in targets.values()),
            attainable_s=statistics.geometric_mean(at.attainable_s for at in targets.values()),
            zone=first.placement.zone.value,
            advice=advice_for(self.bench, first),
            facts=facts_of(first),
            kind=Kind.MEASURED,
            targets=targets if len(timed) > 1 else {},
        )
        self._note(*(note for each in timed for note in each.notes))

    # ---- keeping the books ----
    def _note(self, *notes: str) -> None:
        self.so_far = replace(self.so_far, notes=tuple(dict.fromkeys((*self.so_far.notes, *notes))))

    @contextmanager
    def _timing(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent_s = self.so_far.spent_s.get(part, 0.0) + time.perf_counter() - start
            self.so_far = replace(self.so_far, spent_s={**self.so_far.spent_s, part: spent_s})


def _key(point: Point) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(point.items()))


def _words(point: Point) -> str:
    return " ".join(f"{name}={value}" for name, value in point.items())


def _right(found: Verified) -> str:
    shapes = f"{len(found.shapes)} shape{'s' * (len(found.shapes) > 1)}"
    return f"right on {len(found.inputs)} inputs at {shapes}"


def _notes(problem: Problem, found: Verified) -> tuple[str, ...]:
    notes = []
    if found.scaled:
        notes.append(
            f"the reference is too large at the target: checked at {found.suite.shape(found.shapes[-1])}"
        )
    if problem.fixed_shape:
        notes.append("the problem fixes its shape: held-out shapes are not checked")
    if found.sketched:
        notes.append(f"error bound sampled, not derived, for: {', '.join(found.sketched)}")
    if problem.graph.mutated:
        notes.append(f"changed by forward and left to the framework: {', '.join(problem.graph.mutated)}")
    partly = {shape: seen for shape, seen in found.coverage.items() if seen.share < 1}
    if partly:
        shape, seen = min(partly.items(), key=lambda item: item[1].share)
        notes.append(
            f"not every input element was put to the test: {seen.exercised} of {seen.influential} "
            f"at {shape}" + (f", fewer than all at {len(partly)} shapes" if len(partly) > 1 else "")
        )
    return tuple(notes)
