"""Domains: learned from draws, said in words, and projected into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cupilot.problem.domains import Domain, Extent, Order, Structure
from cupilot.problem.loading import from_function
from cupilot.types import DType


def domain_of(
    make: Callable[[], torch.Tensor], function: Callable[[torch.Tensor], Any] = torch.log
) -> Domain:
    """What is learned of the argument; the logarithm is not defined below zero, so ranges stay."""
    return from_function(lambda x: function(x), lambda: [make()]).domains["x"]


def finite(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.randn(20, 30), "any number"),
        (lambda: torch.rand(20, 30), "in [0, 1]"),
        (lambda: torch.randn(20, 30).abs(), "at least 0"),
        (lambda: torch.rand(20, 30) + 0.5, "at least 0.5"),
        (lambda: torch.randn(20, 30).softmax(1), "sums to 1 along dimension 1"),
        (lambda: torch.randn(20, 30).softmax(0), "sums to 1 along dimension 0"),
        (lambda: torch.randint(0, 2, (20, 30)).float(), "one of 0, 1"),
        (lambda: torch.randint(0, 2, (20, 30)).float() * 2 - 1, "one of -1, 1"),
        (lambda: torch.randn(20, 30).triu(), "upper triangular"),
        (lambda: torch.randn(9, 12, 12).tril(), "lower triangular"),
        (lambda: torch.diag(torch.randn(12)), "diagonal"),
        (lambda: (lambda m: m + m.T)(torch.randn(12, 12)), "symmetric"),
        (lambda: torch.randn(4, 64).sort(-1).values, "sorted ascending"),
        (lambda: torch.randn(4, 64).sort(-1, descending=True).values, "sorted descending"),
        (lambda: torch.rand(900, 30), "in [0, 1]"),  # more than is drawn as it is: watched making less
    ],
)  # fmt: skip
def test_domains_are_learned_and_hold_what_they_project(make: Callable[[], torch.Tensor], words: str) -> None:
    domain = domain_of(make)
    assert words in str(domain)
    shape = tuple(min(extent, 13) for extent in make().shape)
    projected = domain.project(100 * torch.randn(shape))
    again = domain.project(projected)
    torch.testing.assert_close(again, projected)
    own = make()
    torch.testing.assert_close(domain.project(own), own, rtol=1e-6, atol=1e-7)


def test_a_range_that_only_the_generator_has_is_no_restriction() -> None:
    assert domain_of(lambda: torch.rand(20, 30), torch.relu).is_free
    assert "drawn in [0, 1] but defined beyond" in str(domain_of(lambda: torch.rand(20, 30), torch.relu))
    assert str(domain_of(lambda: torch.rand(20, 30), torch.sqrt)).startswith("at least 0")
    assert domain_of(lambda: torch.randn(20, 30).triu(), finite).structure is Structure.UPPER

    def entropy(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.binary_cross_entropy(x, torch.zeros_like(x))

    assert str(domain_of(lambda: torch.rand(20, 30), entropy)) == "in [0, 1]"


def test_class_labels_follow_the_number_of_classes() -> None:
    problem = from_function(
        nn.functional.cross_entropy, lambda: [torch.randn(500, 10), torch.randint(0, 10, (500,))]
    )
    domain = problem.domains["target"]
    assert domain.below == Extent("input", 1) and (domain.low, domain.high) == (0, 9)
    small = next(case for case in problem.shapes if case.shapes["input"][1] < 10)
    narrowed = problem.domains_at(small)["target"]
    labels = narrowed.project(1000 * torch.randn(small.shapes["target"]))
    assert labels.dtype == torch.int64
    assert int(labels.min()) >= 0 and int(labels.max()) < small.shapes["input"][1]


def test_large_generators_are_watched_making_small_tensors() -> None:
    asked = []

    def inputs() -> list[torch.Tensor]:
        x = torch.rand(3000, 2000)
        asked.append(tuple(x.shape))
        return [x.softmax(-1), torch.randint(0, 2000, (3000,)), torch.tril(torch.randn(2000, 2000))]

    def loss(x: torch.Tensor, labels: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return nn.functional.nll_loss(x.log() @ t, labels)

    problem = from_function(loss, inputs)
    asked.clear()
    domains = problem.domains
    assert domains["x"].sums_to_one == 1
    assert domains["t"].structure is Structure.LOWER
    assert domains["labels"].high == 1999 and domains["labels"].below is not None
    assert all(rows < 100 and columns < 100 for rows, columns in asked)


def test_a_generator_that_insists_on_its_numbers_is_drawn_from_as_it_is() -> None:
    problem = from_function(
        lambda x: x.log(), lambda: [torch.rand(2000, 1000).reshape(1000, 2000).softmax(0)]
    )
    assert problem.domains["x"].sums_to_one == 0


def test_weights_are_free_but_tables_and_states_are_not() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bn = nn.BatchNorm1d(6)
            self.register_buffer("mask", torch.tril(torch.ones(6, 6)))
            self.eval()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.bn(x @ self.mask)

    domains = from_function(Layer(), lambda: [torch.randn(8, 6)]).domains
    assert domains["bn_weight"].is_free and domains["bn_running_mean"].is_free
    assert domains["bn_running_var"].low == 0 and domains["bn_running_var"].fixed is None
    assert torch.equal(domains["mask"].project(torch.randn(6, 6)), torch.tril(torch.ones(6, 6)))


def test_projection_keeps_significands() -> None:
    x = torch.tensor([1 + 2**-23, 3.5, -7.25, 0.0])
    got = Domain(DType.F32, 0.0, 1.0).project(x)
    assert torch.equal(got.frexp().mantissa, x.abs().frexp().mantissa)


def test_integers_reach_the_whole_range() -> None:
    got = Domain(DType.I64, 0, 99).project(torch.randn(10_000))
    assert int(got.min()) == 0 and int(got.max()) == 99


DOMAINS = [
    Domain(DType.F32, 0.0),
    Domain(DType.F32, None, 0.0),
    Domain(DType.F32, 0.0, 1.0),
    Domain(DType.F32, -1.0, 1.0),
    Domain(DType.I32, 3, 7),
    Domain(DType.BOOL, 0, 1),
    Domain(DType.U8, 0, 255),
    Domain(DType.F32, values=(-1.0, 1.0)),
    Domain(DType.F32, 0.0, 1.0, sums_to_one=0),
    Domain(DType.F32, 0.0, order=Order.ASCENDING),
]


@given(
    scale=st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e4, 1e30]),
    shape=st.sampled_from([(), (1,), (5,), (1, 1), (3, 4), (4, 4), (2, 3, 5), (0, 3)]),
    special=st.sampled_from([0.0, float("nan"), float("inf"), -float("inf")]),
    domain=st.sampled_from(DOMAINS),
)
@settings(max_examples=150, deadline=None)
def test_any_tensor_projects_into_the_domain(
    scale: float, shape: tuple[int, ...], special: float, domain: Domain
) -> None:
    if not shape and domain.sums_to_one is not None:
        return
    tensor = scale * torch.randn(shape, generator=torch.Generator().manual_seed(1))
    if tensor.numel() > 1:
        tensor.view(-1)[0] = special
    got = domain.project(tensor).double()
    assert tuple(got.shape) == shape
    if got.numel() == 0:
        return
    assert got.isfinite().all()
    if domain.values:
        assert torch.isin(got, torch.tensor(domain.values, dtype=torch.float64)).all()
    assert domain.low is None or got.min() >= domain.low
    assert domain.high is None or got.max() <= domain.high
    if domain.sums_to_one is not None:
        torch.testing.assert_close(
            got.sum(0), torch.ones(shape[1:], dtype=torch.float64), rtol=1e-5, atol=1e-5
        )
    if domain.order is Order.ASCENDING and got.dim():
        assert (got.diff(dim=-1) >= 0).all()
