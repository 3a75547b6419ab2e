"""The evaluator that a run uses: every measurement is a question to the run's table, asked once.

What an answer cost counts when it is first used in a process, whether it was measured then or read back: the
budget of a resumed run stands where it stood, and nothing is counted twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol

from cupilot.budget import Amounts
from cupilot.evaluate.result import Evaluation, Interval, Verdict, from_json, to_json
from cupilot.evolve.candidate import Candidate
from cupilot.kernel.file import KernelFile, print_kernel
from cupilot.store import Row, Store, UnansweredError

ATTEMPTS = 2  # where a busy machine leaves a question undecided

Known = tuple[KernelFile, Evaluation]


class Bench(Protocol):
    """What really compiles and measures."""

    def evaluate(self, kernel: KernelFile) -> Evaluation:
        """Compile, verify, tune, time against eager: enough to select by."""

    def race(self, challenger: Known, champion: Known) -> Interval | None:
        """How many times faster the challenger is, the two run beside each other; None where undecidable."""

    def prove(self, champion: Known) -> Evaluation:
        """From scratch: every check, long timing, every baseline."""


class Answers:
    """See `loop.Evaluator`. Without a bench, questions that nobody has answered raise `UnansweredError`.

    The bench is made when something is first measured, and what that takes is no answer's cost.
    """

    def __init__(
        self, store: Store, make_bench: Callable[[], Bench] | None, keep: Callable[[str, str], None]
    ) -> None:
        self._store, self._make_bench, self._keep = store, make_bench, keep
        self._counted: set[str] = set()

    def used(self, row: Row) -> bool:
        """Whether this answer has been needed so far."""
        return f"{row.kind} {row.hash}" in self._counted

    @cached_property
    def _bench(self) -> Bench:
        assert self._make_bench is not None, "nothing is measured offline"
        return self._make_bench()

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        name = code_hash(kernel)
        found = self._evaluation("evaluate", {"kernel": name}, lambda bench: bench.evaluate(kernel))
        self._keep(name, print_kernel(kernel))
        return found

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        request = {"challenger": code_hash(challenger.kernel), "champion": code_hash(champion.kernel)}

        def answer(bench: Bench) -> Mapping[str, Any]:
            interval = bench.race(_known(challenger), _known(champion))
            return {"interval": None if interval is None else [interval.ratio, interval.low, interval.high]}

        found, cost = self._ask("race", request, answer)
        return (None if found["interval"] is None else Interval(*found["interval"])), cost

    def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
        request = {"kernel": code_hash(champion.kernel)}
        return self._evaluation("prove", request, lambda bench: bench.prove(_known(champion)))

    def _evaluation(
        self, kind: str, request: Mapping[str, Any], compute: Callable[[Bench], Evaluation]
    ) -> tuple[Evaluation, Amounts]:
        """What is undecided is asked again, here a few times and once more by every later session."""
        spent, fresh = Amounts(), 0
        evaluation: Evaluation | None = None
        for attempt in count():
            asked = {**request, "attempt": attempt} if attempt else request
            is_new = self._store.get(kind, asked) is None
            if is_new and evaluation is not None and (self._make_bench is None or fresh == ATTEMPTS):
                break
            found, cost = self._ask(kind, asked, lambda bench: to_json(compute(bench)))
            fresh, spent, evaluation = fresh + is_new, spent + cost, from_json(found)
            if evaluation.verdict is not Verdict.UNDECIDED:
                break
        assert evaluation is not None
        if kind == "evaluate" and spent != Amounts():
            spent = replace(spent, evaluations=1)
        return evaluation, spent

    def _ask(
        self, kind: str, request: Mapping[str, Any], compute: Callable[[Bench], Mapping[str, Any]]
    ) -> tuple[Mapping[str, Any], Amounts]:
        row = self._store.get(kind, request)
        if row is None:
            if self._make_bench is None:
                raise UnansweredError(kind)
            bench = self._bench
            self._store.ask(kind, request, lambda: compute(bench))
            row = self._store.get(kind, request)
            assert row is not None
        key = f"{kind} {row.hash}"
        cost = Amounts() if key in self._counted else Amounts(time_s=row.cost_s)
        self._counted.add(key)
        return row.answer, cost


def code_hash(kernel: KernelFile) -> str:
    """Of what is compiled and launched; the words around it do not count."""
    return hashlib.sha256(print_kernel(bare(kernel)).encode()).hexdigest()[:16]


def bare(kernel: KernelFile) -> KernelFile:
    return replace(kernel, summary="", strategy="", proof="")


def _known(candidate: Candidate) -> Known:
    return candidate.kernel, candidate.evaluation
