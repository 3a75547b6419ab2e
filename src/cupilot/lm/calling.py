"""Asking with patience: waits and tries again where that can help, and knows when an endpoint is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cupilot.lm.messages import Endpoint, EndpointError, Reach, Reply, Request

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    attempts: int = 5  # for one request
    first_wait_s: float = 1.0  # doubled each time
    longest_wait_s: float = 60.0
    failures: int = 3  # requests in a row after which the endpoint counts as gone


class Caller:
    """One endpoint. `gone` says in words why no further request makes sense."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience = Patience(),
        *,
        notice: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint, self.patience = endpoint, patience
        self._notice, self._sleep = notice, sleep
        self._failures = 0
        self.gone: str | None = None

    def check(self) -> None:
        self._insist(self.endpoint.check, attempts=2)

    def call(self, request: Request) -> Reply:
        """The reply, or the last fault."""
        try:
            reply = self._insist(lambda: self.endpoint.complete(request), self.patience.attempts)
        except EndpointError as fault:
            self._failures += 1
            if fault.reach is Reach.ENDPOINT:
                self.gone = str(fault)
            elif self._failures >= self.patience.failures:
                self.gone = f"{self._failures} requests in a row failed, the last: {fault}"
            raise
        self._failures = 0
        return reply

    def _insist(self, ask: Callable[[], T], attempts: int) -> T:
        wait_s = self.patience.first_wait_s
        for left in reversed(range(attempts)):
            try:
                return ask()
            except EndpointError as fault:
                if fault.reach is not Reach.PASSING or not left:
                    raise
                pause_s = fault.retry_after_s if fault.retry_after_s is not None else wait_s
                self._notice(f"{fault.message}; trying again in {pause_s:.0f} s")
                self._sleep(pause_s)
                wait_s = min(wait_s * 2, self.patience.longest_wait_s)
        raise AssertionError("attempts is at least one")
