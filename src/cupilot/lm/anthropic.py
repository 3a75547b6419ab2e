"""Anthropic's messages interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from cupilot.lm.dialect import Dialect, Mode
from cupilot.lm.gathering import Gathering
from cupilot.lm.messages import Reply, Request, Stop

BASE_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_STOPS = {"max_tokens": Stop.LENGTH, "model_context_window_exceeded": Stop.LENGTH, "refusal": Stop.REFUSED}


def url(base: str, model: str, stream: bool) -> str:
    return f"{base}/v1/messages"


def headers(key: str | None) -> dict[str, str]:
    return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}


def body(model: str, request: Request, dialect: Dialect) -> dict[str, Any]:
    content: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": [{"role": turn.speaker, "content": turn.text} for turn in request.turns],
        "stream": dialect.stream,
    }
    if request.schema is None:
        return content
    name, schema = request.schema.name, request.schema.body
    if dialect.mode is Mode.NATIVE:
        content["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    elif dialect.mode is Mode.TOOL:
        content["tools"] = [{"name": name, "description": "Gives the answer.", "input_schema": schema}]
        content["tool_choice"] = {"type": "tool", "name": name}
    return content


def read(objects: Iterator[Mapping[str, Any]], request: Request) -> Reply:
    found = Gathering(request)
    for item in objects:
        kind = item.get("type")
        if kind == "error":
            raise found.error(item.get("error"))
        if kind == "message":  # not streamed
            for block in item.get("content") or ():
                found.add(block.get("text"))
                if block.get("type") == "tool_use":
                    found.add(dumps(block.get("input")))
        message = item.get("message") or item
        usage = message.get("usage") or {}
        cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
        tokens_in = usage.get("input_tokens")
        found.count(tokens_in + cached if isinstance(tokens_in, int) else None, usage.get("output_tokens"))
        delta = item.get("delta") or {}
        found.add(delta.get("text"))
        found.add(delta.get("partial_json"))
        reason = delta.get("stop_reason") or message.get("stop_reason")
        if reason:
            found.end(_STOPS.get(reason, Stop.DONE))
        if found.full:
            break
    return found.reply()
