"""What any kernel must read, write and compute at least, on problems where it is known by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from cupilot.problem.counts import Counts
from cupilot.problem.loading import from_function
from cupilot.problem.operators import Operation


def counts(function: Callable[..., Any], *inputs: Callable[[], torch.Tensor]) -> Counts:
    return from_function(function, lambda: [make() for make in inputs]).counts


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape)


def test_pointwise_work_reads_and_writes_every_element_once() -> None:
    found = counts(lambda x, y: torch.exp(x) + y, normal(64, 32), normal(64, 32))
    assert (found.bytes_read, found.bytes_written) == (2 * 64 * 32 * 4, 64 * 32 * 4)
    assert found.operations[Operation.SPECIAL] == 64 * 32


@pytest.mark.parametrize(
    ("function", "read"),
    [
        (lambda x: x[:10] * 2, 10 * 32),
        (lambda x: x[:, ::2].sum(-1), 64 * 16),
        (lambda x: x.t()[3] + 1, 64),
        (lambda x: torch.tril(x[:32]).sum(0), 32 * 33 // 2),
        (lambda x: F.max_pool1d(x, 2, stride=4), 64 * 16),
    ],
)
def test_only_bytes_that_influence_the_output_are_read(function: Callable[..., Any], read: int) -> None:
    assert counts(function, normal(64, 32)).read_elements == {"x": read}


def test_the_structure_of_an_input_saves_reading_and_work() -> None:
    def lower() -> torch.Tensor:
        return torch.tril(torch.randn(48, 48))

    dense = counts(torch.matmul, normal(48, 48), normal(48, 48))
    triangular = counts(torch.matmul, lower, normal(48, 48))
    assert triangular.read_elements["x0"] == 48 * 49 // 2
    assert dense.read_elements["x0"] == 48 * 48
    contraction = Operation.CONTRACTION
    assert triangular.operations[contraction] < 0.6 * dense.operations[contraction]


def test_a_product_is_charged_its_multiply_adds() -> None:
    found = counts(torch.matmul, normal(64, 100), normal(100, 30))
    assert found.operations[Operation.CONTRACTION] == pytest.approx(2 * 64 * 100 * 30, rel=0.02)


def test_what_nobody_uses_costs_nothing() -> None:
    found = counts(lambda x, y: x * 2 + 0 * y.sum().detach() * 0, normal(8, 8), normal(1000, 1000))
    assert found.read_elements["x"] == 64
    assert found.bytes_written == 256


def test_a_sum_of_a_product_may_be_reassociated() -> None:
    whole = counts(lambda a, b: (a @ b).sum(1), normal(64, 64), normal(64, 64))
    assert sum(whole.operations.values()) < 64 * 64 * 64
