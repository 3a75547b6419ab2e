"""What passes between an agent and a language model, whoever answers: a request, a reply, a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol

from cupilot.errors import CupilotError

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    speaker: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Schema:
    """A name and a JSON schema within what every provider's strict mode understands."""

    name: str
    body: Json


@dataclass(frozen=True)
class Request:
    role: str  # who asks, for records
    system: str
    turns: tuple[Turn, ...]  # begins and ends with the user's
    max_tokens: int  # of the answer
    schema: Schema | None = None  # the answer is a JSON object of this form; None: text
    subject: str = ""  # what is asked about, however it is worded and whatever was measured of it

    def to_json(self) -> dict[str, Any]:
        """What a question is in the table of answers: all that decides the reply, nothing of who replies."""
        return asdict(self)


class Stop(StrEnum):
    DONE = "done"
    LENGTH = "length"  # cut off where the request allowed no more
    REFUSED = "refused"


@dataclass(frozen=True)
class Reply:
    """`tokens_*` are what is paid for; estimated from the text where the endpoint does not say."""

    text: str
    stop: Stop
    tokens_in: int
    tokens_out: int


class Reach(StrEnum):
    """How much a fault spoils."""

    PASSING = "passing"  # the same request may succeed later
    CALL = "call"  # this request will not, others may
    ENDPOINT = "endpoint"  # nothing will: a wrong key, an unknown model


class EndpointError(CupilotError):
    """An endpoint gave no reply. The message never contains a key."""

    def __init__(
        self, message: str, *, reach: Reach, hint: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reach = reach
        self.retry_after_s = retry_after_s


class Endpoint(Protocol):
    """Where questions go."""

    @property
    def name(self) -> str:
        """As the user wrote it: "openai:gpt-5", "mailbox:FOLDER"."""

    def check(self) -> None:
        """Raises an EndpointError where it is certain that no request can succeed."""

    def complete(self, request: Request) -> Reply: ...


def estimated_tokens(text: str) -> int:
    """A typical count, for endpoints that do not tell: code has about three and a half bytes to a token."""
    return -(-len(text.encode()) * 2 // 7)


def most_tokens_in(request: Request) -> int:
    """More than any tokenizer makes of the request, for reservations."""
    texts = [request.system, *(turn.text for turn in request.turns), str(request.schema or "")]
    return sum(len(text.encode()) // 2 + 8 for text in texts)
