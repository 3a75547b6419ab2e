"""Makes the author that a run was asked for."""

from __future__ import annotations

from collections.abc import Callable

from cupilot.agents.author import ModelAuthor
from cupilot.agents.making import model_author, parse_models
from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Author
from cupilot.budget import Budget
from cupilot.device.registry import open_device
from cupilot.evolve.ahead import Working
from cupilot.evolve.folder import Asked
from cupilot.lm.names import works_here
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


def working_ahead(asked: Asked, author: Author, *, offline: bool) -> Working | None:
    """Whether candidates are drafted ahead, and whether while something is measured: only where models think
    elsewhere, so that measurements stay alone."""
    if not asked.ahead or asked.model is None or not isinstance(author, ModelAuthor):
        return None
    elsewhere = not any(map(works_here, parse_models(asked.model).values()))
    return Working(author.beside, at_once=elsewhere and not offline)
