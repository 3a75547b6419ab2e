"""From what the user writes to an endpoint: `openai:NAME`, `openai:NAME@URL`, `mailbox:FOLDER`, ...

A new kind is a file and a line in ENDPOINTS.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cupilot.errors import UsageError
from cupilot.lm.dialect import DialectCache
from cupilot.lm.http import Limits
from cupilot.lm.keys import host_key, provider_key
from cupilot.lm.mailbox import Mailbox, Notice
from cupilot.lm.messages import Endpoint
from cupilot.lm.program import Program
from cupilot.lm.replay import Replay
from cupilot.lm.service import WIRES, Service

_BASE_URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "google": "GEMINI_BASE_URL"}
_AT = re.compile(r"@(?=https?://)")
_HOST = re.compile(r"@((localhost|[\w.-]+:\d+)(/\S*)?)$")


@dataclass(frozen=True)
class Opening:
    """What endpoints need to know beyond their name."""

    limits: Limits = field(default_factory=Limits)
    patience_s: float = 24 * 3600.0  # for an answer in a mailbox
    notice: Notice = lambda _: None  # told what is waited for
    cache: Path | None = None  # of dialects; None: in the user's cache folder


def _service(kind: str, rest: str, opening: Opening) -> Endpoint:
    model, *urls = _AT.split(rest, maxsplit=1)
    if not model or any(c.isspace() for c in rest):
        raise _malformed(f"{kind}:{rest}")
    if not urls and (host := _HOST.search(model)):
        raise UsageError(f"{host[1]} is no base URL", hint=f"write {kind}:NAME@http://{host[1]}")
    wire = WIRES[kind]
    if urls:
        base = _base_url(urls[0])
        key = host_key(urlsplit(base).netloc)
    else:
        base = _base_url(os.environ.get(_BASE_URLS[kind]) or wire.base_url)
        key = provider_key(kind)
    cache = DialectCache(opening.cache or _cache_folder() / "dialects.json")
    name = f"{kind}:{model}" if base == wire.base_url else f"{kind}:{model}@{base}"
    return Service(name, wire, model, base, cache, key, opening.limits)


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{text!r} is no base URL", hint="it looks like http://localhost:8000/v1")
    if parts.username or parts.password:
        raise UsageError(
            "a base URL must not contain a key", hint="put the key into CUPILOT_API_KEY or the keys file"
        )
    return text.rstrip("/")


def _command(kind: str, rest: str, opening: Opening) -> Endpoint:
    return Program(f"{kind}:{rest}", rest, opening.limits.total_s)


def _mailbox(kind: str, rest: str, opening: Opening) -> Endpoint:
    if not rest:
        raise _malformed("mailbox:")
    return Mailbox(f"{kind}:{rest}", Path(rest).expanduser(), opening.patience_s, opening.notice)


def _replay(kind: str, rest: str, opening: Opening) -> Endpoint:
    return Replay(f"{kind}:{rest}", Path(rest).expanduser())


ENDPOINTS: Mapping[str, Callable[[str, str, Opening], Endpoint]] = {
    "openai": _service,
    "anthropic": _service,
    "google": _service,
    "command": _command,
    "mailbox": _mailbox,
    "replay": _replay,
}
FORMS = (
    "openai:NAME, openai:NAME@URL, anthropic:NAME, google:NAME, command:PROGRAM, mailbox:FOLDER, replay:RUN"
)


def open_endpoint(spec: str, opening: Opening = Opening()) -> Endpoint:
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in ENDPOINTS:
        raise _malformed(spec)
    return ENDPOINTS[kind](kind, rest, opening)


def is_local(spec: str) -> bool:
    """Whether what answers costs nothing that could be known here: own machine, own program, a person."""
    return spec.partition(":")[0] in ("mailbox", "replay") or works_here(spec)


def works_here(spec: str) -> bool:
    """Whether thinking about the answer may keep this machine busy: a program, a local server."""
    kind, _, rest = spec.partition(":")
    if kind == "command":
        return True
    host = urlsplit(_AT.split(rest, maxsplit=1)[-1]).hostname
    return host in ("localhost", "127.0.0.1", "::1")


def _malformed(spec: str) -> UsageError:
    return UsageError(f"{spec!r} is no model", hint=f"models are written {FORMS}")


def _cache_folder() -> Path:
    chosen = os.environ.get("CUPILOT_CACHE")
    return (
        Path(chosen)
        if chosen
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cupilot"
    )
