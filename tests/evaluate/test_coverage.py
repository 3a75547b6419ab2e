"""Coverage: which elements an input puts to the test, and inputs made for those that others miss."""

from __future__ import annotations

import pytest
import torch

from cupilot.evaluate.coverage import AIMS, Tally, aimed_inputs, strengths
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.rounding import Rounding
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem


def maximum(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)


def position(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(-1)


def part(x: torch.Tensor) -> torch.Tensor:
    return x[:, :5].sum(-1)


def problem(function: object) -> Problem:
    return from_function(function, lambda: [torch.randn(4, 30)])  # type: ignore[arg-type]


def reference(problem: Problem, tensors: dict[str, torch.Tensor]) -> Reference:
    return build_reference(problem.reference, tensors, ["out"], Rounding())


def tallied(problem: Problem, tensors: dict[str, torch.Tensor]) -> Tally:
    tally = Tally()
    tally.add(strengths(problem, problem.targets[0], tensors, reference(problem, tensors)))
    return tally


@pytest.mark.parametrize("function", [maximum, position])
def test_of_a_maximum_only_the_winners_are_exercised(function: object) -> None:
    chosen = problem(function)
    x = torch.randn(4, 30)
    exercised = tallied(chosen, {"x": x}).exercised["x"]
    assert torch.equal(exercised.nonzero()[:, 1], x.argmax(-1))


def test_elements_that_nothing_depends_on_are_not_influential() -> None:
    counted = tallied(problem(part), {"x": torch.randn(4, 30)})
    assert counted.counts(exhausted=True).influential == 20
    assert counted.counts(exhausted=True).share == 1.0
    assert counted.counts(exhausted=False).influential == 120, "not seen to matter is not: does not matter"


def test_a_term_lost_in_a_large_sum_is_not_exercised() -> None:
    whole = problem(lambda x: x.sum(-1))
    x = torch.full((4, 30), 1e-9)
    x[:, 0] = 1.0
    exercised = tallied(whole, {"x": x}).exercised["x"]
    assert exercised[:, 0].all() and not exercised[:, 1:].any()


def test_aimed_inputs_let_the_missing_elements_win() -> None:
    chosen = problem(maximum)
    base = {"x": torch.randn(4, 30)}
    tally = tallied(chosen, base)
    before = tally.missing()
    for turn in range(40):
        tensors = aimed_inputs(chosen, chosen.targets[0], base, tally, "winner", 4, seed=turn)
        tally.add(strengths(chosen, chosen.targets[0], tensors, reference(chosen, tensors)))
    assert tally.missing() < before / 4


@pytest.mark.parametrize("aim", AIMS)
def test_aiming_leaves_the_base_alone(aim: str) -> None:
    chosen = problem(maximum)
    base = {"x": torch.randn(4, 30)}
    kept = base["x"].clone()
    aimed = aimed_inputs(chosen, chosen.targets[0], base, tallied(chosen, base), aim, 8, seed=1)
    assert torch.equal(base["x"], kept)
    assert not torch.equal(aimed["x"], kept)
