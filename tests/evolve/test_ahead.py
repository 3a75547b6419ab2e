"""Working ahead: the same path however fast anybody answers, within one budget."""

import threading
import time
from dataclasses import dataclass, field
from random import Random

import pytest
from fakes import LawfulEvaluator, ScriptedAuthor, make_search

from cupilot.brief import Author, Brief, Declined, Parent
from cupilot.budget import Amounts, Budget, parse_budget
from cupilot.evaluate.result import Evaluation
from cupilot.evolve.ahead import Working
from cupilot.evolve.loop import Search, Settings
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy


@dataclass
class Paid(ScriptedAuthor):
    """Every plan and every kernel costs ten tokens and a second."""

    budget: Budget = field(default_factory=lambda: Budget(parse_budget("")))

    def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
        return self._pay() or super().plan(brief, rng)

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        return self._pay() or super().write(brief, strategy, base)

    def _pay(self) -> Declined | None:
        ticket = self.budget.reserve(Amounts(tokens=10))
        if isinstance(ticket, str):
            self.budget.close(ticket)
            return Declined(ticket)
        self.budget.settle(ticket, Amounts(tokens=10, time_s=1.0))
        return None


def searching(problem: Problem, limits: str, *, at_once: bool, policy: str = "sce") -> Search:
    author = Paid()
    search = make_search(problem, policy, author=author, limits=parse_budget(limits))
    author.budget = search.budget

    def beside(budget: Budget) -> Author:
        return Paid(asked=author.asked, budget=budget)

    search.ahead = Working(beside, at_once=at_once)
    return search


@pytest.mark.parametrize("policy", ["sce", "code-crossover"])
@pytest.mark.parametrize("limits", ["40evals", "300tok", "55tok", "40s"])
def test_the_path_does_not_depend_on_who_is_faster(relu: Problem, limits: str, policy: str) -> None:
    paths = []
    for at_once in (True, False):
        search = searching(relu, limits, at_once=at_once, policy=policy)
        outcome = search.run()
        assert outcome.champion is not None
        paths.append(([(c.slot, c.strategy.hash, c.base) for c in outcome.records], outcome.reason))
        assert outcome.spent.tokens <= search.budget.limits.tokens
    assert paths[0] == paths[1]


def test_no_strategy_is_tried_twice_while_one_is_in_flight(relu: Problem) -> None:
    search = searching(relu, "60evals", at_once=True)
    search.run()
    asked = [c.intended.hash for c in search.records]
    assert len(asked) == len(set(asked)) > 10


def test_the_author_is_asked_while_the_evaluator_measures(relu: Problem) -> None:
    writing = threading.Event()

    class Watchful(Paid):
        def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
            writing.set()
            return super().write(brief, strategy, base)

    class Patient(LawfulEvaluator):
        def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
            if len(self.evaluated) == 1:  # the first of the generation: the second is written meanwhile
                assert writing.wait(10)
            writing.clear()
            return super().evaluate(kernel)

    author = Watchful()
    search = make_search(
        relu, author=author, evaluator=Patient(), settings=Settings(epochs=1, generations=1, population=2)
    )
    search.ahead = Working(lambda budget: Watchful(budget=budget), at_once=True)
    assert len(search.run().records) == 3


def test_what_is_drafted_ahead_does_not_hold_up_the_end(relu: Problem) -> None:
    class Stuck(Paid):
        def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
            time.sleep(60)
            raise AssertionError

    search = make_search(relu, author=Paid(), limits=parse_budget("2evals"))
    search.ahead = Working(lambda budget: Stuck(budget=budget), at_once=True)
    start = time.monotonic()
    assert search.run().reason == "the evaluations are used up"
    assert time.monotonic() - start < 30
