"""Families are told from the operator graph; what none covers is declined with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from author_kit import problem, strategy, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined, Parent
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy

X = "torch.randn(6, 45)"


@pytest.mark.parametrize(
    ("family", "init", "body"),
    [
        ("norm", "self.softmax = torch.nn.LayerNorm(45)", "return self.softmax(x)"),
        ("softmax", "self.conv = torch.nn.Softmax(dim=1)", "return self.conv(x)"),
        ("pointwise", "self.matmul = torch.nn.GELU()", "return self.matmul(x)"),
        ("product", "self.relu = torch.nn.Linear(45, 7)", "return self.relu(x)"),
        ("norm", "pass", "argmax = x.pow(2).mean(-1, keepdim=True); return x * torch.rsqrt(argmax + 1e-6)"),
        ("softmax", "pass", "e = (x - x.amax(1, True)).exp(); return e / e.sum(1, True)"),
        ("reduction", "pass", "return ((x - 1).abs() + 2).sum(0).sqrt()"),
        ("scan", "pass", "return torch.tanh(x).cumsum(1)"),
    ],
)
def test_names_tell_nothing_the_graph_everything(
    author: BuiltinAuthor, folder: Path, family: str, init: str, body: str
) -> None:
    assert author.family(problem(folder, body, X, init=init)) == family


def test_a_module_and_its_spelled_out_form_become_the_same_kernel(
    author: BuiltinAuthor, folder: Path
) -> None:
    plan = strategy("vectorize", "online-reduction")
    fused = strategy("vectorize", "online-reduction", "fuse-passes")
    layer = problem(folder, "return torch.softmax(x, 1)", X)
    spelled = problem(folder, "e = (x - x.amax(1, True)).exp(); return e / e.sum(1, True)", X)
    assert written(author, layer, plan).source == written(author, spelled, fused).source


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("return x.sort(dim=1)[0]", [X]),
        ("return F.conv2d(x, y)", ["torch.randn(1, 3, 9, 9)", "torch.randn(4, 3, 3, 3)"]),
        ("return x[:, ::2] + 1", [X]),
        ("return torch.cat([x, x * 2], 1)", [X]),
        ("return (x * 2).to(torch.int32)", [X]),
        ("return torch.diag(x) + 1", ["torch.randn(9)"]),
        ("return torch.diag(x, 1) @ y", ["torch.randn(9)", "torch.randn(10, 4)"]),
        ("return F.embedding(y, x)", [X, "torch.randint(0, 6, (4,))"]),
    ],
)
def test_what_no_family_covers_is_declined_with_advice(
    author: BuiltinAuthor, folder: Path, body: str, inputs: list[str]
) -> None:
    task = problem(folder, body, *inputs)
    for answer in (author.family(task), author.generate(brief(author, task))):
        assert isinstance(answer, Declined)
        assert "--model" in answer.reason and "cupilot eval" in answer.reason
    assert not list(author.cookbook(task))


def test_what_a_family_cannot_use_is_declined(author: BuiltinAuthor, folder: Path) -> None:
    task = problem(folder, "return torch.relu(x)", X)
    told = brief(author, task)
    plain = author.generate(told)
    assert not isinstance(plain, Declined)
    for plan in (strategy("vectorize", "column-tiles"), Strategy(free_steps=("skew the loops",))):
        answer = author.write(told, plan, Parent(Strategy(), plain, 1.0))
        assert isinstance(answer, Declined)
        assert "column-tiles" in answer.reason or "words" in answer.reason


def brief(author: BuiltinAuthor, task: Problem) -> Brief:
    return Brief(task, "cpu", "cpp", author.cookbook(task), None)
