"""Puts a reply together from the pieces of a stream, whatever the provider calls them."""

from __future__ import annotations

from cupilot.lm.messages import EndpointError, Reach, Reply, Request, Stop, estimated_tokens, most_tokens_in

_CHARS_PER_TOKEN = 16  # an answer longer than this times its limit is endless


class Gathering:
    """Text, token counts and how it ended. What is no text (thinking, notices) is not added."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._pieces: list[str] = []
        self._chars = 0
        self._stop: Stop | None = None
        self._tokens_in: int | None = None
        self._tokens_out: int | None = None

    def add(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._pieces.append(text)
            self._chars += len(text)

    def count(self, tokens_in: object, tokens_out: object) -> None:
        if isinstance(tokens_in, int):
            self._tokens_in = tokens_in
        if isinstance(tokens_out, int):
            self._tokens_out = tokens_out

    def end(self, stop: Stop) -> None:
        if self._stop is not Stop.REFUSED:
            self._stop = stop

    def refuse(self, words: str) -> None:
        self.add(words)
        self._stop = Stop.REFUSED

    @property
    def full(self) -> bool:
        """The server goes on beyond any limit it was given."""
        return self._chars > self._request.max_tokens * _CHARS_PER_TOKEN

    def error(self, said: object) -> EndpointError:
        """For errors inside a stream that began well."""
        words = said.get("message", said) if isinstance(said, dict) else said
        return EndpointError(f"the answer ended with an error: {str(words)[:400]}", reach=Reach.PASSING)

    def reply(self) -> Reply:
        text = "".join(self._pieces)
        stop = Stop.LENGTH if self.full else self._stop
        if stop is None:
            raise EndpointError(f"the answer broke off after {len(text)} characters", reach=Reach.PASSING)
        tokens_in = self._tokens_in if self._tokens_in is not None else most_tokens_in(self._request)
        tokens_out = self._tokens_out if self._tokens_out is not None else estimated_tokens(text)
        return Reply(text, stop, tokens_in, tokens_out)
