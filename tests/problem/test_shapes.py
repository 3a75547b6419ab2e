"""Held-out shapes: odd, single and small where the module allows it, and nothing that it does not allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cupilot.problem.cases import ShapeCase
from cupilot.problem.loading import from_function, load
from cupilot.problem.problem import Problem

WriteProblem = Callable[[str], Path]


def problem(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Problem:
    return from_function(function, lambda: [torch.randn(shape) for shape in shapes])


def held_out(problem: Problem) -> Mapping[str, ShapeCase]:
    return {case.name: case for case in problem.shapes[len(problem.targets) :]}


def test_free_extents_become_odd_single_long_and_small() -> None:
    cases = held_out(problem(lambda x: torch.softmax(x, -1), (512, 4096)))
    assert {"odd", "single", "ones", "small"} <= cases.keys()
    assert all(extent % 2 and extent > 16 for extent in cases["odd"].shapes["x"])
    assert cases["single"].shapes["x"][0] == 1 < cases["single"].shapes["x"][1]
    assert cases["ones"].shapes["x"] == (1, 1)
    assert max(cases["small"].shapes["x"]) < 64
    assert any(max(case.shapes["x"]) > 4000 for case in cases.values()), "one dimension stays long"
    tiles = [extent for case in cases.values() for extent in case.shapes["x"] if extent > 1]
    assert not [extent for extent in tiles if extent % 2 == 0]


def test_extents_that_are_one_number_stay_one_number() -> None:
    for case in held_out(problem(torch.matmul, (96, 200), (200, 56))).values():
        (m, k), (k_again, n) = case.shapes["x0"], case.shapes["x1"]
        assert k == k_again
        assert case.signature.outputs[0].shape == (m, n)


def test_extents_tied_to_weights_stay() -> None:
    cases = held_out(from_function(nn.Linear(48, 20), lambda: [torch.randn(64, 48)]))
    assert {case.shapes["input"][1] for case in cases.values()} == {48}
    assert {case.shapes["input"][0] for case in cases.values()} >= {1}


def test_what_the_module_rejects_is_left_out() -> None:
    cases = held_out(problem(lambda x: F.pixel_shuffle(x, 4), (2, 48, 24, 24)))
    assert cases
    assert all(case.shapes["x"][1] % 16 == 0 for case in cases.values())


def test_every_reduction_is_short_somewhere() -> None:
    target = problem(lambda x: x.sum(), (64, 8192))
    assert any(case.numel < 1024 for case in held_out(target).values())


@pytest.mark.parametrize("fixed", [True, False])
def test_a_problem_may_fix_its_shape(write_problem: WriteProblem, fixed: bool) -> None:
    loaded = load(
        write_problem(
            f"""
            FIXED_SHAPE = {fixed}

            class Model(nn.Module):
                def forward(self, x): return x.cumsum(0)

            def get_inputs(): return [torch.randn(40, 30)]
            """
        )
    )
    assert (loaded.shapes == loaded.targets) is fixed


def test_scaling_keeps_halving_until_it_fits() -> None:
    large = problem(lambda x: torch.relu(x), (4096, 4096))
    scaled = large.scaled(1 << 20)
    assert scaled is not None
    assert 1 << 18 <= 4 * scaled.numel <= 1 << 20
    assert large.scaled(4) is None, "one element in and one out are eight bytes"


def test_no_case_comes_twice_and_none_is_the_target() -> None:
    tiny = problem(lambda x: x * 2, (1, 1))
    seen = [tuple(case.shapes.items()) for case in tiny.shapes]
    assert len(seen) == len(set(seen))
