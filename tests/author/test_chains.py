"""Every valid strategy over a family's tactics can be written, compiles, and computes the same function."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from author_kit import outlines, problem, strategy, swallowed_nans, worst_error, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.kernel.tunables import points
from cupilot.problem.problem import Problem
from cupilot.strategy.algebra import settle
from cupilot.strategy.strategy import Strategy, TacticUse

# the family, forward, inputs, what the constructor does
MODULES = {
    "pointwise": (
        "pointwise",
        "return F.gelu(x * y) + torch.tanh(x)",
        ["torch.randn(3, 37)", "torch.randn(37)"],
        "",
    ),
    "broadcast": (
        "pointwise",
        "return (x + y).exp().log1p()",
        ["torch.randn(3, 1, 5)", "torch.randn(7, 1)"],
        "",
    ),
    "transposed": ("pointwise", "return torch.relu(x.transpose(1, 2) * 2)", ["torch.randn(2, 5, 17)"], ""),
    "softmax": ("softmax", "return torch.softmax(x / 2, dim=-1)", ["torch.randn(5, 261)"], ""),
    "softmax of rows beyond what is kept": (
        "softmax",
        "return torch.softmax(x, 1)",
        ["torch.randn(2, 131072 + 4133)"],
        "",
    ),
    "softmax over the middle": ("softmax", "return F.log_softmax(x, dim=1)", ["torch.randn(2, 19, 35)"], ""),
    "layer norm": (
        "norm",
        "return self.norm(x + y)",
        ["torch.randn(6, 45)", "torch.randn(6, 45)"],
        "self.norm = torch.nn.LayerNorm(45)",
    ),
    "batch norm": (
        "norm",
        "return F.silu(self.norm(x))",
        ["torch.randn(3, 4, 5, 7)"],
        "self.norm = torch.nn.BatchNorm2d(4)",
    ),
    "group norm": (
        "norm",
        "return self.norm(x)",
        ["torch.randn(3, 6, 5, 7)"],
        "self.norm = torch.nn.GroupNorm(2, 6)",
    ),
    "norm over channels": (
        "norm",
        "return x / (x * x).mean(1, keepdim=True).sqrt()",
        ["torch.randn(2, 9, 4, 9)"],
        "",
    ),
    "whole norm": ("norm", "return x / x.norm()", ["torch.randn(9, 33)"], ""),
    "moments": ("reduction", "return x.var(0), x.std(1), x.logsumexp(1)", ["torch.randn(21, 37)"], ""),
    "loss": ("reduction", "return F.smooth_l1_loss(x, y)", ["torch.randn(9, 50)", "torch.randn(9, 50)"], ""),
    "batch mean": (
        "reduction",
        "return F.kl_div(x, y, reduction='batchmean')",
        ["torch.randn(9, 50)", "torch.randn(9, 50)"],
        "",
    ),
    "cross entropy": (
        "softmax",
        "return F.cross_entropy(x, y)",
        ["torch.randn(9, 50)", "torch.randint(0, 50, (9,))"],
        "",
    ),
    "cross entropy of maps": (
        "softmax",
        "return F.cross_entropy(x, y)",
        ["torch.randn(2, 6, 37)", "torch.randint(0, 6, (2, 37))"],
        "",
    ),
    "picked from maps": (
        "reduction",
        "return F.nll_loss(x, y)",
        ["torch.randn(2, 6, 37)", "torch.randint(0, 6, (2, 37))"],
        "",
    ),
    "places": (
        "arg-reduction",
        "return x.argmax(1), x.argmin(2), x.max(2)[1]",
        ["torch.randn(3, 19, 37)"],
        "",
    ),
    "double": ("softmax", "return torch.softmax(x, 1) + torch.erf(x)", ["torch.randn(5, 67).double()"], ""),
    "product": ("reduction", "return x.prod(1), x.amin(0)", ["torch.rand(5, 19) + 0.5"], ""),
    "masked": (
        "reduction",
        "return torch.where(y, x, -x).sum(1)",
        ["torch.randn(5, 70)", "torch.rand(5, 70) < 0.5"],
        "",
    ),
}  # fmt: skip


def made(folder: Path, name: str) -> Problem:
    _, body, inputs, init = MODULES[name]
    return problem(folder, body, *inputs, init=init or "pass")


@pytest.mark.parametrize("name", MODULES)
def test_plain_everything_and_a_random_strategy_compute_the_same(
    author: BuiltinAuthor, folder: Path, name: str
) -> None:
    task, rng = made(folder, name), Random(name)
    assert author.family(task) == MODULES[name][0]
    for plan in outlines(author, task, rng):
        kernel = written(author, task, plan)
        assert worst_error(task, kernel, rng.choice(list(points(kernel, 64)))) <= 1, plan


def test_a_tactic_is_offered_only_where_it_changes_the_code(author: BuiltinAuthor, folder: Path) -> None:
    """Added to what it requires, or taken away from everything."""
    for name in MODULES:
        task = made(folder, name)
        book = author.cookbook(task)
        every = [TacticUse.of(tactic.id) for tactic in book]
        for use in every:
            needed = [other for other in every if other.tactic in book[use.tactic].requires]
            behind = [other for other in every if use.tactic in {other.tactic, *book[other.tactic].requires}]
            pairs = ([*needed, use], needed), (every, [other for other in every if other not in behind])
            assert any(_code(author, task, a) != _code(author, task, b) for a, b in pairs), (name, use.tactic)


def _code(author: BuiltinAuthor, task: Problem, uses: list[TacticUse]) -> str:
    return written(author, task, Strategy(tuple(sorted(settle(uses, author.cookbook(task)))))).source


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(x, 1)",
        "return F.log_softmax(x, 1)",
        "s = torch.softmax(x, 1); return s, torch.where(s > 0, x.amax(1, True), s)",
        "m = x.amax(1, True); return m, (x - m).exp().sum(1, True)",
        "m = x.amax(1, True); return torch.where((x - m).exp().sum(1, True) > 1, m, 0.0)",
    ],
)
def test_a_maximum_below_exponentials_lets_no_nan_through(
    author: BuiltinAuthor, folder: Path, body: str
) -> None:
    """Whether the maximum is used with the sum alone or by itself."""
    task = problem(folder, body, "torch.randn(3, 5021)")
    book = author.cookbook(task)
    plan = Strategy(tuple(sorted(settle([TacticUse.of(tactic.id) for tactic in book], book))))
    for without in ((), ("split-reduction",), ("split-reduction", "keep-exponentials")):
        uses = [use for use in plan.uses if use.tactic not in without]
        assert swallowed_nans(task, written(author, task, Strategy(tuple(uses))), 3) == 0, uses


def test_tiles_of_several_kernels_are_one_tunable(author: BuiltinAuthor, folder: Path) -> None:
    """One kernel sweeps its tile once, the other twice."""
    body = "y = x / x.sum(0); return y.amax(0), y"
    task = problem(folder, body, "torch.rand(19, 35) + 1")
    kernel = written(author, task, strategy("vectorize", "column-tiles", "prefetch"))
    assert [tunable.name for tunable in kernel.tune].count("TILE") == 1
    assert worst_error(task, kernel) <= 1


def test_names_play_no_role(author: BuiltinAuthor, folder: Path) -> None:
    """Keywords of C++ and of the launch language as names of inputs."""
    task = problem(
        folder, "return torch.relu(rows) + real", *["torch.randn(3, 5)"] * 2, parameters="rows, real"
    )
    assert worst_error(task, written(author, task, strategy("vectorize"))) <= 1
