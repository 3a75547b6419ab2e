"""Every tactic of the author is realised somewhere, seen where it is, and not seen where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from author_kit import problem, strategy, written

from cupilot.author.builtin import BuiltinAuthor
from cupilot.author.style import TACTICS
from cupilot.strategy.align import align, evidence
from cupilot.strategy.evidence import Evidence, without_comments
from cupilot.strategy.tactics import load_cookbook

_ROWS, _MATRIX = "torch.randn(5, 67)", "torch.randn(35, 35)"
_TILE = ("vectorize", "register-tile")
# each tactic: forward, inputs, what it is added to
EXAMPLES: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "vectorize": ("return torch.relu(x)", [_ROWS], ()),
    "inline-transcendentals": ("return torch.exp(x)", [_ROWS], ("vectorize",)),
    "fuse-passes": ("return torch.exp(x) + x", [_ROWS], ()),
    "multiple-accumulators": ("return x.sum(1)", [_ROWS], ("vectorize",)),
    "unroll": ("return torch.relu(x)", [_ROWS], ("vectorize",)),
    "online-reduction": ("return torch.softmax(x, 1)", [_ROWS], ("vectorize",)),
    "keep-exponentials": ("return torch.softmax(x, 1)", [_ROWS], ("vectorize", "online-reduction")),
    "split-reduction": ("return x.sum(1)", [_ROWS], ()),
    "non-temporal-stores": ("return torch.relu(x)", [_ROWS], ("vectorize",)),
    "column-tiles": ("return x.sum(0)", [_ROWS], ("vectorize",)),
    "finite-first": ("return torch.diag(x) @ y", ["torch.randn(35)", _MATRIX], ("vectorize",)),
    "avoid-division": ("return torch.softmax(x, 1)", [_ROWS], ("vectorize",)),
    "prefetch": ("return torch.relu(x)", [_ROWS], ("vectorize",)),
    "register-tile": ("return x @ y", [_MATRIX] * 2, ("vectorize",)),
    "pack-right": ("return x @ y", [_MATRIX] * 2, _TILE),
    "pack-left": ("return x @ y", [_MATRIX] * 2, _TILE),
    "cache-tiles": ("return x @ y", [_MATRIX] * 2, _TILE),
    "depth-blocks": ("return x @ y", [_MATRIX] * 2, (*_TILE, "cache-tiles")),
    "skip-zeros": ("return x @ y", [f"{_MATRIX}.tril()", _MATRIX], _TILE),
    "two-level-scan": ("return x.cumsum(1)", [_ROWS], ("vectorize",)),
    "line-by-line": ("return x.cumsum(0)", [_ROWS], ("vectorize",)),
    "separable-windows": ("return F.max_pool1d(x, 5, 1)", ["torch.randn(2, 2, 67)"], ("vectorize",)),
    "doubling-windows": (
        "return F.max_pool1d(x, 5, 1)",
        ["torch.randn(2, 2, 67)"],
        ("vectorize", "separable-windows"),
    ),
}
UNSEEN = {"fuse-passes"}  # the number of launches tells nothing without the problem


def test_the_cookbook_and_the_author_know_the_same_tactics() -> None:
    assert EXAMPLES.keys() == TACTICS.keys()
    assert TACTICS.keys() == {tactic.id for tactic in load_cookbook().written_in("cpp")}


@pytest.mark.parametrize("tactic", EXAMPLES)
def test_a_tactic_is_seen_in_the_kernel_that_has_it_and_only_there(
    author: BuiltinAuthor, folder: Path, tactic: str
) -> None:
    body, inputs, context = EXAMPLES[tactic]
    task = problem(folder, body, *inputs)
    book = author.cookbook(task)
    assert tactic in book
    having, lacking = strategy(*context, tactic), strategy(*context)
    code = {
        plan: {"code": without_comments(written(author, task, plan).source)} for plan in (having, lacking)
    }
    assert code[having] != code[lacking]
    if tactic in UNSEEN:
        assert evidence(book, code[having], "cpp")[tactic] is Evidence.UNVERIFIABLE
        return
    assert evidence(book, code[having], "cpp")[tactic] is Evidence.EVIDENT
    assert evidence(book, code[lacking], "cpp")[tactic] is Evidence.ABSENT
    assert tactic not in align(having, book, code[lacking], "cpp")
    assert tactic in align(lacking, book, code[having], "cpp")
