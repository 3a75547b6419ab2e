"""Timed calls are held against the reference as closely as memory allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cupilot.evaluate import witness
from cupilot.evaluate.witness import Witness
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem


@pytest.fixture(scope="module")
def scaled() -> Problem:
    return from_function(lambda x: torch.exp(4 * x), lambda: [torch.randn(40, 50)])


def timed_call(problem: Problem) -> tuple[dict[str, Any], dict[str, Any]]:
    x = torch.randn(problem.targets[0].signature.tensors[0].shape)
    return {"x": x.numpy()}, {"out": torch.exp(4 * x).numpy()}


def look(problem: Problem, change: Any, *, closely: bool = False) -> str | None:
    inputs, outputs = timed_call(problem)
    witnessed = Witness(problem, problem.targets[0])
    assert witnessed.look(inputs, outputs, closely=True) is None
    change(outputs["out"])
    return witnessed.look(inputs, outputs, closely=closely)


def zero_one(out: Any) -> None:
    out[7, 9] = 0


def off_by_1e5(out: Any) -> None:
    out[:] *= 1 + 1e-5


def test_a_wrong_element_is_named(scaled: Problem) -> None:
    for closely in (True, False):
        assert (look(scaled, zero_one, closely=closely) or "").startswith("out[7, 9] is 0, expected")


def test_what_passes_at_a_glance_does_not_pass_closely(scaled: Problem) -> None:
    assert look(scaled, off_by_1e5, closely=True) is not None
    assert look(scaled, off_by_1e5, closely=False) is None


def test_small_results_count_beside_large_ones(scaled: Problem) -> None:
    def without_small(out: Any) -> None:
        out[out < 1e-4 * out.max()] = 0

    assert "is 0, expected" in (look(scaled, without_small) or "")


def test_without_memory_for_a_bound_a_glance_remains(
    scaled: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "memory_available_bytes", lambda: 0)
    assert look(scaled, lambda out: None, closely=True) is None
    assert look(scaled, off_by_1e5, closely=True) is None
    assert look(scaled, lambda out: out.fill(0), closely=True) is not None
    assert look(scaled, lambda out: out.__setitem__(slice(20, None), np.nan), closely=True) is not None


def test_a_suspicion_at_a_glance_is_not_yet_a_verdict() -> None:
    """Small results came from small numbers at the close look, and come from large ones that cancel later."""
    problem = from_function(lambda x, y, z: x + y + z, lambda: [torch.randn(9, 50) for _ in range(3)])
    inputs = {name: np.float32(10.0) ** -np.arange(9, dtype=np.float32)[:, None] for name in "xyz"}
    inputs = {name: np.repeat(column, 50, axis=1) for name, column in inputs.items()}
    witnessed = Witness(problem, problem.targets[0])
    assert witnessed.look(inputs, {"out": inputs["x"] + inputs["y"] + inputs["z"]}, closely=True) is None
    inputs["x"][0, 0], inputs["y"][0, 0], inputs["z"][0, 0] = 1, 5e-8, -1
    honest = inputs["x"] + (inputs["y"] + inputs["z"])
    assert honest[0, 0] != (inputs["x"] + inputs["y"] + inputs["z"])[0, 0]
    assert witnessed.look(inputs, {"out": honest}, closely=False) is None
    honest[0, 0] = 1e-4
    assert "expected" in (witnessed.look(inputs, {"out": honest}, closely=False) or "")
