"""Fingerprints: the same work has the same one, however it is written; other work has another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from cupilot.problem.graph import Graph
from cupilot.problem.loading import from_function


def graph(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    return from_function(function, lambda: [torch.randn(shape) for shape in shapes]).graph


def test_names_and_the_order_of_independent_statements_do_not_count() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        left = torch.exp(x)
        right = torch.tanh(y)
        return left * right

    def written_otherwise(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        b = torch.tanh(second)
        return torch.exp(first) * b

    shapes = (8, 16), (8, 16)
    assert graph(forward, *shapes).fingerprint() == graph(written_otherwise, *shapes).fingerprint()


def test_a_module_and_its_function_are_the_same_work() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.Softmax(dim=-1)(x)

    function = graph(lambda x: F.softmax(x, -1), (8, 16))
    assert graph(Model(), (8, 16)).fingerprint() == function.fingerprint()


def test_without_shapes_sizes_do_not_count_but_ranks_do() -> None:
    small, large = (graph(lambda x: x.sum(-1), shape) for shape in ((8, 16), (64, 128)))
    deep = graph(lambda x: x.sum(-1), (4, 8, 16))
    assert small.fingerprint() != large.fingerprint()
    assert small.fingerprint(shapes=False) == large.fingerprint(shapes=False)
    assert small.fingerprint(shapes=False) != deep.fingerprint(shapes=False)


def test_other_work_has_another_fingerprint() -> None:
    works: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda x: x.sum(-1),
        lambda x: x.sum(0),
        lambda x: x.mean(-1),
        lambda x: x.exp().sum(-1),
        lambda x: x.sum(-1).exp(),
        lambda x: F.leaky_relu(x, 0.1),
        lambda x: F.leaky_relu(x, 0.2),
    ]
    found = {graph(work, (16, 16)).fingerprint() for work in works}
    assert len(found) == len(works)


def test_element_types_count() -> None:
    single = from_function(torch.exp, lambda: [torch.randn(4, 4)]).graph
    half = from_function(torch.exp, lambda: [torch.randn(4, 4).bfloat16()]).graph
    assert single.fingerprint(shapes=False) != half.fingerprint(shapes=False)
