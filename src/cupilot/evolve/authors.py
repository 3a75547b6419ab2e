"""Makes the author that a run was asked for."""

from __future__ import annotations

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Author
from cupilot.budget import Budget
from cupilot.errors import UsageError
from cupilot.evolve.folder import Asked
from cupilot.store import Store


def make_author(asked: Asked, store: Store, budget: Budget, *, offline: bool) -> Author:
    """`offline`: whoever looks at a run must not call a model; what it said is in the store."""
    if asked.model is not None:
        raise UsageError(
            f"no author for the model {asked.model!r}", hint="leave --model out to use the built-in author"
        )
    return BuiltinAuthor()
