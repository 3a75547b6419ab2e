"""One POST over HTTP(S) whose answer is JSON, whole or streamed as server-sent events.

Everything that can go wrong becomes an EndpointError that says what it was. Redirects are refused: they
would carry the key to another host. Keys are blanked in whatever the server says.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from cupilot.lm.messages import EndpointError, Reach

_RETRY = frozenset({408, 409, 425, 429})
_MAX_RETRY_AFTER_S = 120.0
_ERROR_CHARS = 400


@dataclass(frozen=True)
class Limits:
    """How long and how much an answer may be."""

    idle_s: float = 300.0  # without a single byte
    total_s: float = 1200.0
    size_bytes: int = 32 << 20


class BadRequestError(EndpointError):
    """The server understood the request and will not have it; `said` is its own explanation."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message, reach=Reach.CALL)
        self.said = said


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def post(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], limits: Limits, key: str | None
) -> Iterator[dict[str, Any]]:
    """The JSON objects of the answer: one, or those of the stream. Lazy; closing it closes the connection."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(
        url, data=data, headers={"Content-Type": "application/json", **headers}, method="POST"
    )
    host = urlsplit(url).netloc.rpartition("@")[2]
    try:
        with _OPENER.open(request, timeout=limits.idle_s) as response:
            yield from _objects(response, limits, host, key)
    except urllib.error.HTTPError as error:
        raise _refusal(error, host, key) from None
    except urllib.error.URLError as error:
        raise _unreachable(host, error.reason) from None
    except TimeoutError:
        raise _silent(host, limits) from None
    except (http.client.HTTPException, OSError) as error:
        raise _broken(host, str(error) or type(error).__name__) from None


def blank(text: str, key: str | None) -> str:
    return text.replace(key, "[key]") if key else text


def _objects(
    response: http.client.HTTPResponse, limits: Limits, host: str, key: str | None
) -> Iterator[dict[str, Any]]:
    if "text/event-stream" not in response.headers.get("Content-Type", ""):
        yield _parse(b"".join(_pieces(response, limits, host)), host, key)
        return
    for line in _lines(_pieces(response, limits, host)):
        if line.startswith(b"data:"):
            text = line[5:].strip()
            if text == b"[DONE]":
                return
            yield _parse(text, host, key)


def _pieces(response: http.client.HTTPResponse, limits: Limits, host: str) -> Iterator[bytes]:
    deadline = time.monotonic() + limits.total_s
    total = 0
    while piece := response.read1(1 << 16):
        total += len(piece)
        if total > limits.size_bytes:
            raise EndpointError(
                f"{host} sent more than {limits.size_bytes >> 20} MiB for one answer", reach=Reach.CALL
            )
        if time.monotonic() > deadline:
            raise EndpointError(
                f"{host} was still answering after {limits.total_s:.0f} s", reach=Reach.PASSING
            )
        yield piece


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


def _parse(data: bytes, host: str, key: str | None) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        shown = blank(data[:80].decode(errors="replace"), key)
        raise _broken(host, f"its answer is not JSON: {shown!r}")
    return value


def _refusal(error: urllib.error.HTTPError, host: str, key: str | None) -> EndpointError:
    try:
        said = error.read(1 << 16).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        said = ""
    said = blank(_explanation(said), key)
    message = f"{host} answered {error.code}: {said or error.reason}"
    if error.code in (401, 403):
        hint = "set a valid key (docs/endpoints.md says where keys are looked for)"
        return EndpointError(message, reach=Reach.ENDPOINT, hint=hint)
    if error.code in (301, 302, 303, 307, 308):
        hint = f"give the final address: it points to {error.headers.get('Location', 'nowhere')}"
        return EndpointError(message, reach=Reach.ENDPOINT, hint=hint)
    if error.code in (404, 405):
        hint = "check the model's name and the base URL (most end in /v1)"
        return EndpointError(message, reach=Reach.ENDPOINT, hint=hint)
    if error.code == 402 or "insufficient_quota" in said:
        return EndpointError(message, reach=Reach.ENDPOINT, hint="top up the account, or use another model")
    if error.code in _RETRY or error.code >= 500:
        return EndpointError(message, reach=Reach.PASSING, retry_after_s=_retry_after(error.headers))
    return BadRequestError(message, said)


def _explanation(body: str) -> str:
    """The sentence inside the usual {"error": {"message": ...}}, else the beginning of the body."""
    try:
        value = json.loads(body)
    except ValueError:
        return " ".join(body.split())[:_ERROR_CHARS]
    if isinstance(value, list) and value:
        value = value[0]
    inner = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(inner, dict):
        code = inner.get("code") or inner.get("type") or ""
        inner = f"{inner.get('message', inner)} ({code})" if code else inner.get("message", inner)
    return str(inner)[:_ERROR_CHARS]


def _retry_after(headers: Message) -> float | None:
    try:
        return min(max(float(headers.get("Retry-After", "")), 0.0), _MAX_RETRY_AFTER_S)
    except ValueError:
        return None


def _unreachable(host: str, reason: object) -> EndpointError:
    if isinstance(reason, TimeoutError):
        return EndpointError(f"{host} does not answer", reach=Reach.PASSING, hint="is the server up?")
    words = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    if isinstance(reason, socket.gaierror):
        hint = "check the base URL and the network"
    else:
        hint = "is the server running, and on this port?"
    return EndpointError(f"{host} cannot be reached: {words}", reach=Reach.PASSING, hint=hint)


def _silent(host: str, limits: Limits) -> EndpointError:
    return EndpointError(f"{host} was silent for {limits.idle_s:g} s", reach=Reach.PASSING)


def _broken(host: str, why: str) -> EndpointError:
    return EndpointError(f"the connection to {host} broke: {why}", reach=Reach.PASSING)
