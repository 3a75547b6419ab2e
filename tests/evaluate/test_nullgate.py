"""The null-kernel gate: each kernel that does nothing is recognised where it would pass, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from cupilot.evaluate.nullgate import Trial, failing_gates
from cupilot.evaluate.reference import build_reference
from cupilot.evaluate.rounding import Rounding

Function = Callable[[torch.Tensor], torch.Tensor]


def trials(function: Function) -> list[Trial]:
    """Three inputs of one problem, as the preparation hands them to the gate."""
    found = []
    for seed in range(3):
        x = torch.randn(6, 40, generator=torch.Generator().manual_seed(seed))
        reference = build_reference(
            lambda tensors, dtype: (function(tensors["x"].to(dtype)),), {"x": x}, ["out"], Rounding()
        )
        half = x.clone()
        half.view(-1)[x.numel() // 2 :] = 0
        found.append(Trial({"x": x}, reference, (function(half),)))
    return found


@pytest.mark.parametrize(
    ("function", "gate"),
    [
        (lambda x: x * 0, "all zeros"),
        (lambda x: x * 0 + 1, "all ones"),
        (lambda x: x * 0 + 2.5, "the mean of the result"),
        (lambda x: x * 0 + torch.arange(40), "the result of the call before"),
        (lambda x: x.clone(), "an input handed back"),
        (lambda x: x[:3].sum(-1), "half of the data"),
        (lambda x: (x + 3000) - 3000, "half-precision round trip"),
    ],
)
def test_a_kernel_that_does_nothing_is_recognised(function: Function, gate: str) -> None:
    assert gate in failing_gates(trials(function), "f32")


@pytest.mark.parametrize("function", [torch.exp, lambda x: x.sum(-1), lambda x: x.t() @ x, torch.argsort])
def test_real_work_passes_every_gate(function: Function) -> None:
    assert failing_gates(trials(function), "f32") == ()


def test_rounding_to_half_is_no_null_kernel_where_half_is_stored() -> None:
    function = lambda x: x.half().float() * 2  # noqa: E731
    assert "half-precision round trip" not in failing_gates(trials(function), "f16")


def test_a_gate_that_says_nothing_is_left_out() -> None:
    """Whole numbers survive rounding to half: that they do proves nothing against the problem."""
    assert failing_gates(trials(lambda x: (x * 4).floor()), "f32") == ()
