"""Makes the author that a run was asked for."""

from __future__ import annotations

from collections.abc import Callable

from cupilot.agents.making import model_author
from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Author
from cupilot.budget import Budget
from cupilot.device.registry import open_device
from cupilot.evolve.folder import Asked
from cupilot.store import Store


def make_author(
    asked: Asked,
    store: Store,
    budget: Budget,
    *,
    offline: bool,
    notice: Callable[[str], None] = lambda _: None,
) -> Author:
    """`offline`: whoever looks at a run must not call a model; what it said is in the store."""
    if asked.model is None:
        return BuiltinAuthor()
    language = open_device(asked.device).language
    return model_author(asked.model, language, store, budget, offline=offline, notice=notice)
