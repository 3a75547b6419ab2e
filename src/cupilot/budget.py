"""What a run may spend: time, evaluations, tokens, money. Reserved before, settled after.

The budget does not stop anything by itself: the loop asks `exhausted()` between steps and ends gracefully.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from cupilot.errors import UsageError

_UNITS = {
    "s": ("time_s", 1.0),
    "min": ("time_s", 60.0),
    "h": ("time_s", 3600.0),
    "evals": ("evaluations", 1.0),
    "usd": ("money_usd", 1.0),
    "tok": ("tokens", 1.0),
    "ktok": ("tokens", 1e3),
    "mtok": ("tokens", 1e6),
}
_AMOUNT = re.compile(r"^(\d+(?:\.\d+)?)([a-z]+)$")


@dataclass(frozen=True)
class Amounts:
    """Either limits (infinite where none was set) or what has been spent."""

    time_s: float = 0.0
    evaluations: float = 0.0
    tokens: float = 0.0
    money_usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


UNLIMITED = Amounts(*[float("inf")] * 4)

_WORDS = {
    "time_s": "the time is used up",
    "evaluations": "the evaluations are used up",
    "tokens": "the tokens are used up",
    "money_usd": "the money is used up",
}


def parse_budget(text: str) -> Amounts:
    """`3min,200evals,5usd,200ktok` in any order; what is not named is not limited."""
    limits = UNLIMITED
    for part in filter(None, (p.strip().lower().replace(" ", "") for p in text.split(","))):
        match = _AMOUNT.match(part)
        if not match or match[2] not in _UNITS:
            raise UsageError(
                f"budget part {part!r} is not understood",
                hint="write for example --budget 3min,200evals,5usd,200ktok; units: " + ", ".join(_UNITS),
            )
        if float(match[1]) == 0:
            raise UsageError(
                f"budget part {part!r} leaves nothing to spend", hint="leave it out for no limit"
            )
        name, scale = _UNITS[match[2]]
        if getattr(limits, name) != float("inf"):
            raise UsageError(f"budget names {name.split('_')[0]} twice", hint="give each limit once")
        limits = replace(limits, **{name: float(match[1]) * scale})
    return limits


def _finite(amount: float) -> float:
    return 0.0 if amount == float("inf") else amount


class Budget:
    """The ledger of one run's spending. A reservation is held until it is settled with the true cost."""

    def __init__(self, limits: Amounts, *, spent: Amounts = Amounts(), reserve: Amounts = Amounts()) -> None:
        self.limits = limits
        self.spent = spent
        self._final_reserve = reserve
        self._held: dict[int, Amounts] = {}
        self._next = 0
        self._closed: str | None = None

    def exhausted(self) -> str | None:
        """Why no further step may begin, in words; None while there is room beside the final reserve."""
        return self._closed or self._lacking(Amounts())

    @property
    def closed(self) -> str | None:
        """Why it was closed, if it was."""
        return self._closed

    def close(self, reason: str) -> None:
        """Nothing more is to be begun, whatever is left: an endpoint is gone, say."""
        self._closed = self._closed or reason

    def reserve(self, most: Amounts) -> int | str:
        """A ticket for something that costs at most this much, or the reason why there is no room."""
        lacking = self._closed or self._lacking(most)
        if lacking is not None:
            return lacking
        self._next += 1
        self._held[self._next] = most
        return self._next

    def settle(self, ticket: int, cost: Amounts) -> None:
        del self._held[ticket]
        self.spent += cost

    def spend(self, cost: Amounts) -> None:
        self.spent += cost

    def share(self) -> tuple[int, Budget]:
        """Half of the tokens and of the money that are left, for work beside this one, and its ticket."""
        left = self.limits - sum(self._held.values(), self.spent + self._final_reserve)
        limits = replace(UNLIMITED, tokens=max(0.0, left.tokens) / 2, money_usd=max(0.0, left.money_usd) / 2)
        self._next += 1
        self._held[self._next] = Amounts(tokens=_finite(limits.tokens), money_usd=_finite(limits.money_usd))
        return self._next, Budget(limits)

    def _lacking(self, wanted: Amounts) -> str | None:
        claimed = sum(self._held.values(), self.spent + self._final_reserve + wanted)
        for field in fields(claimed):
            claim, limit = getattr(claimed, field.name), getattr(self.limits, field.name)
            if claim > limit or (claim == limit and getattr(wanted, field.name) == 0):
                return _WORDS[field.name]
        return None
