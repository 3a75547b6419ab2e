"""A model behind an HTTP interface: one of the provider modules, a base URL, a key, a dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cupilot.lm import anthropic, google, openai
from cupilot.lm.dialect import Dialect, DialectCache, Mode, probe, prompted
from cupilot.lm.http import Limits, blank, post
from cupilot.lm.messages import EndpointError, Reach, Reply, Request


@dataclass(frozen=True)
class Wire:
    """A provider's interface as four pure functions."""

    base_url: str
    url: Callable[[str, str, bool], str]
    headers: Callable[[str | None], dict[str, str]]
    body: Callable[[str, Request, Dialect], dict[str, Any]]
    read: Callable[[Iterator[Mapping[str, Any]], Request], Reply]


WIRES: Mapping[str, Wire] = {
    "openai": Wire(openai.BASE_URL, openai.url, openai.headers, openai.body, openai.read),
    "anthropic": Wire(anthropic.BASE_URL, anthropic.url, anthropic.headers, anthropic.body, anthropic.read),
    "google": Wire(google.BASE_URL, google.url, google.headers, google.body, google.read),
}


@dataclass
class Service:
    """See `messages.Endpoint`. Probes its dialect before the first question, unless a run before did."""

    name: str
    wire: Wire
    model: str
    base_url: str
    dialects: DialectCache
    key: str | None = field(default=None, repr=False)
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        self.dialect()

    def dialect(self) -> Dialect:
        known = self.dialects.get(self.name)
        if known is None:
            known = probe(self.ask)
            self.dialects.put(self.name, known)
        return known

    def complete(self, request: Request) -> Reply:
        return self.ask(request, self.dialect())

    def ask(self, request: Request, dialect: Dialect) -> Reply:
        if dialect.mode is Mode.PROMPTED:
            request = prompted(request)
        objects = post(
            self.wire.url(self.base_url, self.model, dialect.stream),
            self.wire.headers(self.key),
            self.wire.body(self.model, request, dialect),
            self.limits,
            self.key,
        )
        try:
            reply = self.wire.read(objects, request)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise EndpointError(
                f"the answer of {self.name} does not have the form of its interface ({type(error).__name__})",
                reach=Reach.CALL,
                hint="check that the base URL belongs to the interface before the colon",
            ) from None
        finally:
            objects.close()  # type: ignore[attr-defined]
        return Reply(blank(reply.text, self.key), reply.stop, reply.tokens_in, reply.tokens_out)
