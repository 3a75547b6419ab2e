"""Preparing a problem: what is live, what is covered, what is refused and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cupilot.errors import ProblemError
from cupilot.evaluate import preparation
from cupilot.evaluate.preparation import planned_shapes, prepare
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.suite import Suite, load_case
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> ReferenceCache:
    return ReferenceCache(tmp_path_factory.mktemp("cache"))


def maximum(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)


def triangle(x: torch.Tensor) -> torch.Tensor:
    return torch.tril(x) * 2


def matrix() -> list[torch.Tensor]:
    return [torch.randn(12, 40)]


def zeros(x: torch.Tensor) -> torch.Tensor:
    return x * 0


def ones(x: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(x)


def constant(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, 2.5)


def identity(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def first_half(x: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1)
    return flat[: flat.numel() // 2].cumsum(0)


def cancelled(x: torch.Tensor) -> torch.Tensor:
    return (x + 1e9) - 1e9


@pytest.fixture(scope="module")
def largest(cache: ReferenceCache) -> Suite:
    return prepare(from_function(maximum, matrix), cache)


def test_every_position_wins_a_maximum_in_some_case(largest: Suite) -> None:
    assert largest.coverage[largest.shapes[0]].share == 1.0
    assert largest.coverage["target"].share == 1.0
    assert any(case.input.startswith("aimed") for case in largest.cases if case.shape == "target")


def test_the_first_shape_meets_every_input_and_the_target_comes_last(largest: Suite) -> None:
    assert largest.shapes[-1] == "target"
    first = [case.input for case in largest.cases if case.shape == largest.shapes[0]]
    assert {"normal", "low bits", "negative", "edges", "own"} <= set(first)
    assert len(largest.inputs) >= 8


def test_elements_without_influence_need_no_cover(cache: ReferenceCache) -> None:
    problem = from_function(triangle, lambda: [torch.randn(20, 20)])
    suite = prepare(problem, cache)
    shape = next(s for s in planned_shapes(problem)[0] if s.name == suite.shapes[0])
    rows, columns = shape.shapes["x"]
    coverage = suite.coverage[shape.name]
    lower = int(torch.ones(rows, columns).tril().sum())
    assert (coverage.exercised, coverage.influential) == (lower, lower)


def test_a_second_preparation_comes_from_the_cache(largest: Suite, cache: ReferenceCache) -> None:
    said: list[str] = []
    assert prepare(from_function(maximum, matrix), cache, said.append) == largest
    assert said == []
    assert all(load_case(cache, case) is not None for case in largest.cases[:3])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (zeros, "all zeros"),
        (ones, "all ones"),
        (constant, "the mean of the result"),
        (identity, "an input handed back"),
        (first_half, "half of the data"),
    ],
)
def test_a_problem_that_a_null_kernel_solves_is_refused(
    function: Callable[[torch.Tensor], torch.Tensor], reason: str, cache: ReferenceCache
) -> None:
    with pytest.raises(ProblemError, match=reason):
        prepare(from_function(function, matrix), cache)


def test_a_problem_drowned_in_rounding_is_refused_with_the_reasons(cache: ReferenceCache) -> None:
    with pytest.raises(ProblemError, match=r"only \d+ of \d+ kinds of input prove anything.*rounding alone"):
        prepare(from_function(cancelled, matrix), cache)


def test_results_in_double_precision_are_refused(cache: ReferenceCache) -> None:
    with pytest.raises(ProblemError, match="f64"):
        prepare(from_function(maximum, lambda: [torch.randn(4, 4).double()]), cache)


def half_gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x)


def test_half_precision_problems_may_round_to_half(cache: ReferenceCache) -> None:
    problem: Problem = from_function(half_gelu, matrix, precision="f16/f32")
    assert len(prepare(problem, cache).inputs) >= 8


def pointwise(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 2


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "LARGEST_REFERENCE_BYTES", 1 << 22)


def test_what_does_not_fit_is_checked_at_a_scaled_shape_and_never_drawn_whole(
    tmp_path: Path, little_memory: None
) -> None:
    drawn: list[int] = []

    def large() -> list[torch.Tensor]:
        x = torch.randn(4096, 2048)
        if type(x) is torch.Tensor:
            drawn.append(x.numel())
        return [x]

    cache = ReferenceCache(tmp_path)
    suite = prepare(from_function(pointwise, large), cache)
    assert suite.scaled and suite.shapes[-1] == "scaled"
    assert suite.shape("scaled").numel < 4096 * 2048
    assert drawn and max(drawn) < 1 << 20
    assert prepare(from_function(pointwise, large), cache) == suite


def test_a_scaled_suite_is_not_taken_for_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, problem = ReferenceCache(tmp_path), from_function(pointwise, lambda: [torch.randn(512, 512)])
    monkeypatch.setattr(preparation, "LARGEST_REFERENCE_BYTES", 1 << 22)
    assert prepare(problem, cache).scaled
    monkeypatch.undo()
    whole = prepare(problem, cache)
    assert not whole.scaled and whole.shapes[-1] == "target"
    assert [case.shape for case in whole.cases if case.shape == "scaled"] == []


def test_a_fixed_shape_that_does_not_fit_is_refused(cache: ReferenceCache, little_memory: None) -> None:
    problem = replace(from_function(pointwise, lambda: [torch.randn(2048, 1024)]), fixed_shape=True)
    with pytest.raises(ProblemError, match=r"needs about \d+ MB at a fixed shape") as caught:
        prepare(problem, cache)
    assert "memory" in caught.value.hint
