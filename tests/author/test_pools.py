"""Maxima and means of windows in one to three dimensions: padded, strided, dilated."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from author_kit import outlines, problem, swallowed_nans, worst_error, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.kernel.tunables import points

# the family, forward, inputs
MODULES = {
    "max 1d": ("pool", "return F.max_pool1d(x, 3, 2, 1)", "torch.randn(2, 3, 77)"),
    "max 2d": ("pool", "return F.max_pool2d(x, 4, 1, 1)", "torch.randn(2, 3, 13, 37)"),
    "max 3d": ("pool", "return F.max_pool3d(x, 3, 2, 1)", "torch.randn(1, 2, 7, 9, 21)"),
    "max, dilated": ("pool", "return F.max_pool2d(x, 3, 1, 1, 2)", "torch.randn(2, 2, 11, 35)"),
    "max, strided": ("pool", "return F.max_pool2d(x, 2)", "torch.randn(2, 2, 11, 35)"),
    "max, rounded up": (
        "pool",
        "return F.max_pool2d(x, 3, 2, ceil_mode=True)",
        "torch.randn(2, 2, 12, 36)",
    ),
    "mean, rounded up": (
        "pool",
        "return F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)",
        "torch.randn(2, 2, 12, 36)",
    ),
    "mean 1d": ("pool", "return F.avg_pool1d(x, 4)", "torch.randn(2, 3, 77)"),
    "mean 2d, padded": ("pool", "return F.avg_pool2d(x, 3, 1, 1)", "torch.randn(2, 2, 11, 35)"),
    "mean 2d, padding not counted": (
        "pool",
        "return F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)",
        "torch.randn(2, 2, 11, 35)",
    ),
    "mean 3d": ("pool", "return F.avg_pool3d(x, 2)", "torch.randn(1, 2, 6, 8, 22)"),
    "mean over a divisor": (
        "pool",
        "return F.avg_pool2d(x, 3, 1, divisor_override=5)",
        "torch.randn(1, 2, 9, 21)",
    ),
    "within a chain": (
        "pool",
        "return F.relu(F.max_pool2d(x + y, 3, 1, 1)) * 2",
        *["torch.randn(1, 2, 9, 21)"] * 2,
    ),
    "double": ("pool", "return F.max_pool2d(x, 3, 1, 1)", "torch.randn(1, 2, 9, 21).double()"),
    "half": ("pool", "return F.max_pool2d(x, 3, 1, 1)", "torch.randn(1, 2, 9, 21).half()"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_every_way_of_writing_it_computes_the_same(author: BuiltinAuthor, folder: Path, name: str) -> None:
    family, body, *inputs = MODULES[name]
    task, rng = problem(folder, body, *inputs), Random(name)
    assert author.family(task) == family
    for plan in outlines(author, task, rng):
        kernel = written(author, task, plan)
        assert worst_error(task, kernel, rng.choice(list(points(kernel, 64)))) <= 1, plan


@pytest.mark.parametrize("name", ["max 2d", "max, strided", "max, rounded up", "mean 2d, padded", "double"])
def test_windows_show_nan(author: BuiltinAuthor, folder: Path, name: str) -> None:
    """The machine's maximum drops NaN in one of its places."""
    _, body, *inputs = MODULES[name]
    task = problem(folder, body, *inputs)
    for seed, plan in enumerate(outlines(author, task, Random(name))):
        assert swallowed_nans(task, written(author, task, plan), seed) == 0, plan
