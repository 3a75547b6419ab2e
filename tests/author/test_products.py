"""Products of matrices of every layout and structure, alone and with what comes behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from author_kit import outlines, problem, strategy, swallowed_nans, worst_error, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.kernel.tunables import points

# the family, forward, inputs
MODULES = {
    "dense": ("product", "return x @ y", "torch.randn(13, 21)", "torch.randn(21, 37)"),
    "batched": ("product", "return torch.bmm(x, y)", "torch.randn(3, 7, 19)", "torch.randn(3, 19, 35)"),
    "transposed": ("product", "return x.T @ y.T", "torch.randn(21, 13)", "torch.randn(37, 21)"),
    "squared": ("product", "return x @ x", "torch.randn(29, 29)"),
    "by itself": ("product", "return torch.softmax(x @ x.transpose(1, 2), -1) @ x", "torch.randn(2, 9, 20)"),
    "with its transpose": ("product", "return x @ x.T", "torch.randn(29, 45)"),
    "four dimensions": ("product", "return x @ y", "torch.randn(2, 3, 5, 17)", "torch.randn(17, 19)"),
    "linear layer": (
        "product",
        "return torch.relu(F.linear(x, y, z)) * 2",
        "torch.randn(9, 33)",
        "torch.randn(20, 33)",
        "torch.randn(20)",
    ),
    "one after the other": (
        "product",
        "return torch.tanh(x @ y) @ z",
        "torch.randn(6, 17)",
        "torch.randn(17, 33)",
        "torch.randn(33, 5)",
    ),
    "attention": (
        "product",
        "return torch.softmax(x @ y.transpose(1, 2), -1) @ z",
        "torch.randn(2, 9, 8)",
        "torch.randn(2, 18, 8)",
        "torch.randn(2, 18, 20)",
    ),
    "double": ("product", "return x @ y", "torch.randn(9, 14).double()", "torch.randn(14, 19).double()"),
    "half": ("product", "return x @ y", "torch.randn(9, 14).half()", "torch.randn(14, 35).half()"),
    "matrix and vector": ("reduction", "return x @ y", "torch.randn(9, 301)", "torch.randn(301)"),
    "matrix and column": ("reduction", "return x @ y", "torch.randn(9, 301)", "torch.randn(301, 1)"),
    "diagonal": ("norm", "return torch.diag(x) @ y", "torch.randn(13)", "torch.randn(13, 37)"),
    "diagonal behind": ("norm", "return y @ torch.diag(x)", "torch.randn(37)", "torch.randn(13, 37)"),
    "diagonals": ("norm", "return torch.diag_embed(x) @ y", "torch.randn(3, 5)", "torch.randn(3, 5, 9)"),
    "upper": ("product", "return torch.triu(x @ y)", *["torch.randn(61, 61).triu()"] * 2),
    "lower": ("product", "return torch.tril(x @ y)", *["torch.randn(61, 61).tril()"] * 2),
    "one of them lower": ("product", "return x @ y", "torch.randn(61, 61).tril()", "torch.randn(61, 37)"),
    "upper, transposed": (
        "product",
        "return torch.relu(x @ y.T)",
        "torch.randn(37, 61)",
        "torch.randn(61, 61).triu()",
    ),
    "lower batches": ("product", "return torch.bmm(x, y)", *["torch.randn(2, 35, 35).tril()"] * 2),
    "masked": ("product", "return torch.tril(x @ y, -3)", "torch.randn(41, 29)", "torch.randn(29, 61)"),
    "symmetric": ("product", "return x @ y", *["(lambda a: a + a.T)(torch.randn(37, 37))"] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_every_way_of_writing_it_computes_the_same(author: BuiltinAuthor, folder: Path, name: str) -> None:
    family, body, *inputs = MODULES[name]
    task, rng = problem(folder, body, *inputs), Random(name)
    assert author.family(task) == family
    for plan in outlines(author, task, rng):
        kernel = written(author, task, plan)
        assert worst_error(task, kernel, rng.choice(list(points(kernel, 64)))) <= 1, plan


def test_zeros_are_skipped_only_where_they_are_certain(author: BuiltinAuthor, folder: Path) -> None:
    for name, certain in (("upper", True), ("one of them lower", True), ("masked", True), ("dense", False)):
        _, body, *inputs = MODULES[name]
        task = problem(folder, body, *inputs)
        assert ("skip-zeros" in {tactic.id for tactic in author.cookbook(task)}) == certain, name


@pytest.mark.parametrize("name", ["diagonal", "diagonal behind", "upper", "one of them lower"])
def test_known_zeros_do_not_silence_nan(author: BuiltinAuthor, folder: Path, name: str) -> None:
    """Zero times NaN is NaN: what is skipped is skipped only where everything is finite."""
    _, body, *inputs = MODULES[name]
    task = problem(folder, body, *inputs)
    for seed, plan in enumerate(outlines(author, task, Random(name))):
        assert swallowed_nans(task, written(author, task, plan), seed) == 0, plan


@pytest.mark.parametrize("name", ["diagonal", "diagonal behind", "diagonals"])
def test_what_is_not_finite_is_found_on_the_way(author: BuiltinAuthor, folder: Path, name: str) -> None:
    """The quick launch alone would multiply each row by itself, whatever else stands in a column."""
    _, body, *inputs = MODULES[name]
    task = problem(folder, body, *inputs)
    for more in ([], ["non-temporal-stores"], ["column-tiles"] if name != "diagonal behind" else []):
        kernel = written(author, task, strategy("vectorize", "finite-first", *more))
        assert worst_error(task, kernel) <= 1
        assert swallowed_nans(task, kernel, 0) == 0
        broken = replace(kernel, source=kernel.source.replace("if (is_finite) return;", "return;"))
        assert swallowed_nans(task, broken, 0) > 0


def test_only_what_depends_on_finiteness_is_guarded(author: BuiltinAuthor, folder: Path) -> None:
    for body, certain in (("torch.diag(x) @ y", True), ("(x - x.mean(0)) * y", False), ("x @ y", False)):
        task = problem(folder, f"return {body}", "torch.randn(9)", "torch.randn(9, 9)")
        assert ("finite-first" in {tactic.id for tactic in author.cookbook(task)}) == certain, body


def test_a_tile_of_every_shape_fits_every_edge(author: BuiltinAuthor, folder: Path) -> None:
    """Tiles as large as the result, larger, and with a row or a column left over."""
    task = problem(folder, "return x @ y", "torch.randn(25, 18)", "torch.randn(18, 49)")
    plan = strategy("vectorize", "register-tile", "pack-left", "pack-right", "cache-tiles", "depth-blocks")
    kernel = written(author, task, plan)
    first = next(iter(points(kernel, 1)))
    for area, columns in ((28, 5), (8, 1), (20, 4)):
        assert worst_error(task, kernel, {**first, "AREA": area, "COLS": columns}) <= 1


@pytest.mark.parametrize("kind", ["float", "double", "half"])
def test_a_factor_that_lies_the_other_way_round_is_turned(
    author: BuiltinAuthor, folder: Path, kind: str
) -> None:
    """Whole squares by exchanges between vectors, what is left at both edges element by element."""
    task = problem(folder, "return x @ y.T", f"torch.randn(9, 37).{kind}()", f"torch.randn(101, 37).{kind}()")
    kernel = written(author, task, strategy("vectorize", "register-tile", "pack-right"))
    assert "transpose(square)" in kernel.source
    for point in list(points(kernel, 64))[:: 7 if kind == "float" else 23]:
        assert worst_error(task, kernel, point) <= 1, point
