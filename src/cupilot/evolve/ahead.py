"""The next candidate's draft, asked for while this one is measured.

It is made in a thread at once, or when it is needed: what comes out is the same, because a draft sees the
search as it stood when it was begun, and spends from half of what was left then. A draft that nobody takes
any more is dropped with its thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Thread

from cupilot.brief import Author, Declined
from cupilot.budget import Budget
from cupilot.evolve.candidate import Slot
from cupilot.evolve.policies import Proposal
from cupilot.kernel.file import KernelFile


@dataclass(frozen=True)
class Draft:
    """What a slot is to try, before anything of it is measured."""

    proposal: Proposal
    kernel: KernelFile | Declined


@dataclass(frozen=True)
class Working:
    """How an author works ahead: as itself beside itself, with a budget of its own."""

    beside: Callable[[Budget], Author]
    at_once: bool  # at the same time, or only when it is needed


Make = Callable[[Author], Draft | None]


class Begun:
    """One draft, and the share of the budget that is set aside for it."""

    def __init__(self, slot: Slot, make: Make, working: Working, budget: Budget) -> None:
        self.slot, self._make, self._budget = slot, make, budget
        self._spent_s = budget.spent.time_s
        self._ticket, self._share = budget.share()
        self._author = working.beside(self._share)
        self._future: Future[Draft | None] | None = None
        if working.at_once:
            self._future = Future()
            Thread(target=self._fill, args=(self._future,), daemon=True).start()

    def result(self, author: Author) -> Draft | None:
        """The draft; made by `author` from the same moment where the share was too little."""
        draft = self._make(self._author) if self._future is None else self._future.result()
        beside_s = self._budget.spent.time_s - self._spent_s  # what passed meanwhile counts once
        cost = self._share.spent
        self._budget.settle(self._ticket, replace(cost, time_s=max(0.0, cost.time_s - beside_s)))
        return draft if self._share.closed is None else self._make(author)

    def _fill(self, future: Future[Draft | None]) -> None:
        try:
            future.set_result(self._make(self._author))
        except Exception as fault:  # noqa: BLE001 (whoever takes the result gets it)
            future.set_exception(fault)
