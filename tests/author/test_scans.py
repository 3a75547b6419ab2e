"""Running sums and products along every dimension, turned, shifted and masked."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from author_kit import outlines, problem, worst_error, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.kernel.tunables import points

# the family, forward, inputs
MODULES = {
    "sums": ("scan", "return x.cumsum(1)", "torch.randn(5, 261)"),
    "sums down": ("scan", "return x.cumsum(0)", "torch.randn(19, 35)"),
    "sums in the middle": ("scan", "return x.cumsum(1)", "torch.randn(2, 19, 21)"),
    "products": ("scan", "return x.cumprod(1)", "torch.rand(5, 67) + 0.5"),
    "reverse": ("scan", "return x.flip(1).cumsum(1).flip(1)", "torch.randn(5, 67)"),
    "reverse down": ("scan", "return x.flip(0).cumsum(0).flip(0)", "torch.randn(19, 35)"),
    "masked": ("scan", "return (x * y).cumsum(1)", "torch.randn(5, 67)", "torch.rand(5, 67) < 0.5"),
    "exclusive": (
        "scan",
        "return torch.cat([torch.zeros(x.shape[0], 1), x.cumsum(1)[:, :-1]], dim=1)",
        "torch.randn(5, 67)",
    ),
    "within a chain": ("scan", "return torch.exp(-(x * x).cumsum(1)) + y", *["torch.randn(5, 67)"] * 2),
    "double": ("scan", "return x.cumsum(1)", "torch.randn(5, 67).double()"),
    "half": ("scan", "return x.cumsum(1)", "torch.randn(5, 37).half()"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_every_way_of_writing_it_computes_the_same(author: BuiltinAuthor, folder: Path, name: str) -> None:
    family, body, *inputs = MODULES[name]
    task, rng = problem(folder, body, *inputs), Random(name)
    assert author.family(task) == family
    for plan in outlines(author, task, rng):
        kernel = written(author, task, plan)
        assert worst_error(task, kernel, rng.choice(list(points(kernel, 64)))) <= 1, plan
