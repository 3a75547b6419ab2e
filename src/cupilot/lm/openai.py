"""The chat-completions interface of OpenAI, vLLM, SGLang, Ollama, llama.cpp, OpenRouter and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cupilot.lm.dialect import Dialect, Mode
from cupilot.lm.gathering import Gathering
from cupilot.lm.messages import Reply, Request, Stop

BASE_URL = "https://api.openai.com/v1"
_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.REFUSED}


def url(base: str, model: str, stream: bool) -> str:
    return f"{base}/chat/completions"


def headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def body(model: str, request: Request, dialect: Dialect) -> dict[str, Any]:
    messages = [{"role": "system", "content": request.system}]
    messages += [{"role": turn.speaker, "content": turn.text} for turn in request.turns]
    content: dict[str, Any] = {
        "model": model,
        "messages": messages,
        dialect.limit_field: request.max_tokens,
        "stream": dialect.stream,
    }
    if dialect.stream:
        content["stream_options"] = {"include_usage": True}
    if request.schema is None:
        return content
    name, schema = request.schema.name, request.schema.body
    if dialect.mode is Mode.NATIVE:
        inner = {"name": name, "strict": True, "schema": schema}
        content["response_format"] = {"type": "json_schema", "json_schema": inner}
    elif dialect.mode is Mode.TOOL:
        function = {"name": name, "description": "Gives the answer.", "parameters": schema}
        content["tools"] = [{"type": "function", "function": function}]
        content["tool_choice"] = {"type": "function", "function": {"name": name}}
    return content


def read(objects: Iterator[Mapping[str, Any]], request: Request) -> Reply:
    found = Gathering(request)
    for item in objects:
        if item.get("error"):
            raise found.error(item["error"])
        usage = item.get("usage") or {}
        found.count(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        for choice in item.get("choices") or ():
            message = choice.get("delta") or choice.get("message") or {}
            if message.get("refusal"):
                found.refuse(str(message["refusal"]))
            found.add(message.get("content"))
            for call in message.get("tool_calls") or ():
                found.add((call.get("function") or {}).get("arguments"))
            reason = choice.get("finish_reason")
            if reason:
                found.end(_STOPS.get(reason, Stop.DONE))
        if found.full:
            break
    return found.reply()
