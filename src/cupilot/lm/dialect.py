"""How one server wants to be asked, found by a short probe and remembered.

Servers that claim the same interface differ: some refuse JSON schemas, some streaming, some one spelling
of the length limit. The probe asks for a tiny answer in the best form first and steps down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cupilot.lm.http import BadRequestError
from cupilot.lm.messages import Reply, Request, Schema, Stop, Turn


class Mode(StrEnum):
    """How the form of a structured answer is enforced."""

    NATIVE = "native"  # the server constrains the answer to a JSON schema
    TOOL = "tool"  # the answer is the arguments of a function call
    PROMPTED = "prompted"  # the schema is part of the prompt


@dataclass(frozen=True)
class Dialect:
    mode: Mode = Mode.NATIVE
    stream: bool = True
    limit_field: str = "max_completion_tokens"  # of the OpenAI interface; older servers: max_tokens


Ask = Callable[[Request, Dialect], Reply]

PROBE = Request(
    role="probe",
    system="You are a connection test.",
    turns=(Turn("user", 'Answer with {"ready": true}.'),),
    max_tokens=2000,  # a reasoning model thinks first
    schema=Schema(
        "probe",
        {
            "type": "object",
            "properties": {"ready": {"type": "boolean"}},
            "required": ["ready"],
            "additionalProperties": False,
        },
    ),
)


def probe(ask: Ask) -> Dialect:
    """The best dialect that the server speaks. At most a handful of short calls."""
    dialect = Dialect()
    while True:
        try:
            reply = ask(PROBE, dialect)
        except BadRequestError as refusal:
            simpler = _simpler(dialect, refusal.said)
            if simpler is None:
                raise
        else:
            if dialect.mode is Mode.PROMPTED or _conforms(reply):
                return dialect
            simpler = _next_mode(dialect)
        dialect = simpler


def _simpler(dialect: Dialect, said: str) -> Dialect | None:
    said = said.lower()
    if "stream" in said and dialect.stream:
        return replace(dialect, stream=False)
    if "max_completion_tokens" in said and dialect.limit_field != "max_tokens":
        return replace(dialect, limit_field="max_tokens")
    if dialect.mode is not Mode.PROMPTED:
        return _next_mode(dialect)
    if dialect.limit_field != "max_tokens":
        return replace(dialect, limit_field="max_tokens")
    return replace(dialect, stream=False) if dialect.stream else None


def _next_mode(dialect: Dialect) -> Dialect:
    return replace(dialect, mode=Mode.TOOL if dialect.mode is Mode.NATIVE else Mode.PROMPTED)


def _conforms(reply: Reply) -> bool:
    try:
        return reply.stop is Stop.DONE and json.loads(reply.text) == {"ready": True}
    except ValueError:
        return False


def prompted(request: Request) -> Request:
    """The schema as part of the last turn, for whoever cannot be given it in another way."""
    if request.schema is None:
        return request
    *before, last = request.turns
    text = (
        f"{last.text}\n\nAnswer with one JSON object that fits this JSON schema, and nothing else:\n"
        f"```json\n{json.dumps(request.schema.body)}\n```"
    )
    return replace(request, turns=(*before, replace(last, text=text)), schema=None)


class DialectCache:
    """Dialects found earlier, by endpoint, in one small file. An unreadable file is an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, endpoint: str) -> Dialect | None:
        entry = self._read().get(endpoint)
        try:
            return entry and Dialect(Mode(entry["mode"]), bool(entry["stream"]), str(entry["limit_field"]))
        except (TypeError, KeyError, ValueError):
            return None

    def put(self, endpoint: str, dialect: Dialect) -> None:
        entries = {**self._read(), endpoint: asdict(dialect)}
        temporary = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(entries, indent=1))
            temporary.replace(self.path)
        except OSError:
            return  # it will be probed again

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}
