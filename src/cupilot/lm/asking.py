"""Every question to a model goes through the table of answers and the budget, whoever asks and replies.

A recorded answer is used again and charged once per process; a new one is reserved with the largest
possible answer before it is asked and settled with what it cost. A failure that the run survives is recorded
like an answer; one that ends the run is not, so that it is asked again when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

from cupilot.budget import Amounts, Budget
from cupilot.errors import UsageError
from cupilot.lm.calling import Caller
from cupilot.lm.messages import EndpointError, Json, Reply, Request, most_tokens_in
from cupilot.lm.prices import VARIABLE, Price, price
from cupilot.lm.replay import KIND, recorded, reply_of
from cupilot.store import Row, Store, UnansweredError


@dataclass(frozen=True)
class NoReply:
    """Why there is none: no room in the budget, or the endpoint failed."""

    reason: str


class Asking:
    """`callers` by role, with "" for all others; without any, only recorded answers are given."""

    def __init__(self, store: Store, budget: Budget, callers: Mapping[str, Caller]) -> None:
        self._store, self._budget, self._callers = store, budget, callers
        self.charged: set[str] = set()  # rows of the table, by their hashes
        for caller in callers.values():
            _require_price(caller.endpoint.name, budget)

    def beside(self, budget: Budget) -> Asking:
        """The same table and endpoints for work at the same time, which spends from a budget of its own."""
        other = copy(self)
        other._budget = budget
        return other

    def check(self) -> None:
        """Raises where an endpoint cannot work at all."""
        for caller in self._callers.values():
            caller.check()

    def ask(self, request: Request) -> Reply | NoReply:
        question = request.to_json()
        row = self._store.get(KIND, question) if self._callers else recorded(self._store, request)
        if row is None:
            missing = self._answer(request, question)
            if missing is not None:
                return missing
            row = self._store.get(KIND, question)
            if row is None:
                raise AssertionError("an answer just recorded is in the table")
        elif row.hash not in self.charged:
            self._budget.spend(_cost(row))
        self.charged.add(row.hash)
        failed = row.answer.get("failed")
        return reply_of(row.answer) if failed is None else NoReply(failed)

    def _answer(self, request: Request, question: Json) -> NoReply | None:
        """Has the question answered and recorded; None when it is."""
        caller = self._callers.get(request.role) or self._callers.get("")
        if caller is None:
            raise UnansweredError(f"the {request.role} asks something new")
        if caller.gone is not None:
            self._budget.close(caller.gone)
            return NoReply(caller.gone)
        rate = price(caller.endpoint.name) or Price(0.0, 0.0)
        tokens_in = most_tokens_in(request)
        most = Amounts(
            tokens=tokens_in + request.max_tokens, money_usd=rate.of(tokens_in, request.max_tokens)
        )
        ticket = self._budget.reserve(most)
        if isinstance(ticket, str):
            self._budget.close(f"{ticket}: the next answer could cost more than is left")
            return NoReply(ticket)

        def reply() -> Json:
            try:
                given = caller.call(request)
            except EndpointError as fault:
                if caller.gone is not None:
                    raise
                return {"failed": str(fault)}
            return {
                "text": given.text,
                "stop": given.stop.value,
                "tokens_in": given.tokens_in,
                "tokens_out": given.tokens_out,
                "money_usd": rate.of(given.tokens_in, given.tokens_out),
                "model": caller.endpoint.name,
            }

        try:
            self._store.ask(KIND, question, reply)
        except EndpointError as fault:
            self._budget.settle(ticket, Amounts())
            self._budget.close(str(caller.gone))
            return NoReply(str(fault))
        row = self._store.get(KIND, question)
        self._budget.settle(ticket, _cost(row) if row else Amounts())
        return None


def _cost(row: Row) -> Amounts:
    answer = row.answer
    if "failed" in answer:
        return Amounts(time_s=row.cost_s)
    tokens = answer["tokens_in"] + answer["tokens_out"]
    return Amounts(time_s=row.cost_s, tokens=tokens, money_usd=answer["money_usd"])


def _require_price(model: str, budget: Budget) -> None:
    if budget.limits.money_usd != float("inf") and price(model) is None:
        raise UsageError(
            f"a money budget needs a price, and none is known for {model}",
            hint=f"add it to a file named by {VARIABLE}, or limit tokens: --budget 500ktok",
        )
