"""Google's generateContent interface (Gemini)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from cupilot.lm.dialect import Dialect, Mode
from cupilot.lm.gathering import Gathering
from cupilot.lm.messages import Reply, Request, Stop

BASE_URL = "https://generativelanguage.googleapis.com"
_REFUSALS = {"SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "LANGUAGE"}


def url(base: str, model: str, stream: bool) -> str:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{base}/v1beta/models/{model}:{verb}"


def headers(key: str | None) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


def body(model: str, request: Request, dialect: Dialect) -> dict[str, Any]:
    generation: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
    content: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": [
            {"role": "model" if turn.speaker == "assistant" else "user", "parts": [{"text": turn.text}]}
            for turn in request.turns
        ],
        "generationConfig": generation,
    }
    if request.schema is None:
        return content
    name, schema = request.schema.name, request.schema.body
    if dialect.mode is Mode.NATIVE:
        generation |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    elif dialect.mode is Mode.TOOL:
        function = {"name": name, "description": "Gives the answer.", "parametersJsonSchema": schema}
        content["tools"] = [{"functionDeclarations": [function]}]
        content["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
    return content


def read(objects: Iterator[Mapping[str, Any]], request: Request) -> Reply:
    found = Gathering(request)
    for item in objects:
        if item.get("error"):
            raise found.error(item["error"])
        usage = item.get("usageMetadata") or {}
        thought, written = usage.get("thoughtsTokenCount") or 0, usage.get("candidatesTokenCount")
        found.count(usage.get("promptTokenCount"), written + thought if isinstance(written, int) else None)
        blocked = (item.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            found.refuse(f"blocked: {blocked}")
        for candidate in item.get("candidates") or ():
            for part in (candidate.get("content") or {}).get("parts") or ():
                if not part.get("thought"):
                    found.add(part.get("text"))
                if part.get("functionCall"):
                    found.add(dumps(part["functionCall"].get("args")))
            reason = candidate.get("finishReason")
            if reason in _REFUSALS:
                found.refuse(f"blocked: {reason}")
            elif reason:
                found.end(Stop.LENGTH if reason == "MAX_TOKENS" else Stop.DONE)
        if found.full:
            break
    return found.reply()
