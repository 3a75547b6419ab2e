"""What models answer, read and checked. Whatever is wrong is said in a sentence that the model can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cupilot.errors import KernelSyntaxError, ProblemError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle
from cupilot.kernel.tunables import first_point
from cupilot.lm.messages import Schema
from cupilot.strategy.strategy import Effect, Strategy, StrategyError, TacticUse, check
from cupilot.strategy.tactics import Cookbook, Resource
from cupilot.types import Signature

MAX_STEPS = 8
_STEP_CHARS = 500
_RATIONALE_CHARS = 1500
_GRIDS = {"cpp": GridStyle.CPU, "cu": GridStyle.CUDA}
_FENCED = re.compile(r"^[ \t]*(`{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_HEADER = re.compile(r"\s*/\*[ \t]*cupilot\b")


class InvalidAnswerError(Exception):
    """The message completes "Your answer cannot be used: ..."."""


# -- kernels -------------------------------------------------------------------------------------------


def read_kernel(text: str, signature: Signature, language: str) -> KernelFile:
    """The kernel file in the answer, whose launch program runs at the target's shapes."""
    code = _kernel_text(_THOUGHT.sub("", text))
    try:
        kernel = parse_kernel(code)
        run(kernel.launch, bind(kernel, signature, first_point(kernel)), grid_style=_GRIDS[language])
    except KernelSyntaxError as error:
        line = code.splitlines()[error.line - 1] if error.line <= len(code.splitlines()) else ""
        shown = f"\n\n    {line.strip()}" if line.strip() else ""
        raise InvalidAnswerError(f"{error}{shown}") from error
    except ProblemError as error:
        raise InvalidAnswerError(str(error)) from error
    return kernel


def _kernel_text(text: str) -> str:
    if not text.strip():
        raise InvalidAnswerError("it is empty")
    blocks = [match[2] for match in _FENCED.finditer(text)]
    kernels = [block for block in blocks if _HEADER.match(block)]
    if len(kernels) == 1:
        return kernels[0]
    if len(kernels) > 1:
        raise InvalidAnswerError(f"it has {len(kernels)} kernel files: give one")
    if _HEADER.match(text):
        return text
    if "```" in text and not blocks:
        raise InvalidAnswerError("its code block is never closed")
    raise InvalidAnswerError("it has no fenced code block that begins with /* cupilot 1")


# -- strategies ----------------------------------------------------------------------------------------


def strategy_schema(cookbook: Cookbook) -> Schema:
    ids = [tactic.id for tactic in cookbook]
    names = {"enum": ids} if ids else {}
    pair = _object(name={"type": "string"}, value={"type": "string"})
    tactic = _object(id={"type": "string", **names}, parameters={"type": "array", "items": pair})
    resource = {"type": "string", "enum": [item.value for item in Resource]}
    body = _object(
        tactics={"type": "array", "items": tactic},
        steps={"type": "array", "items": {"type": "string"}},
        rationale={"type": "string"},
        expected=_object(resource=resource, factor={"type": "number"}),
    )
    return Schema("strategy", body)


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_strategy(text: str, cookbook: Cookbook, parents: tuple[str, ...] = ()) -> Strategy:
    data = _json_object(_THOUGHT.sub("", text))
    uses = tuple(_use(item, f"tactics[{i}]", cookbook) for i, item in enumerate(_list(data, "tactics")))
    steps = tuple(_step(item, f"steps[{i}]") for i, item in enumerate(_list(data, "steps")))
    if len(steps) > MAX_STEPS:
        raise InvalidAnswerError(f"it has {len(steps)} steps: give at most {MAX_STEPS}")
    if not uses and not steps:
        raise InvalidAnswerError("the strategy is empty: name at least one tactic or step")
    rationale = " ".join(_text(data.get("rationale", ""), "rationale", _RATIONALE_CHARS).split())
    strategy = Strategy(
        tuple(sorted(uses)), tuple(dict.fromkeys(steps)), rationale, _effect(data.get("expected")), parents
    )
    try:
        check(strategy, cookbook)
    except StrategyError as error:
        raise InvalidAnswerError(str(error)) from error
    return strategy


def _json_object(text: str) -> Mapping[str, Any]:
    """The first JSON object in the text, with or without fences and words around it."""
    if not text.strip():
        raise InvalidAnswerError("it is empty")
    decoder, why = json.JSONDecoder(), "it has no JSON object"
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if why == "it has no JSON object":
                why = f"it is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
            continue
        if isinstance(value, dict):
            return value
    raise InvalidAnswerError(why)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if not isinstance(value, list):
        known = ", ".join(map(str, data)) or "nothing"
        raise InvalidAnswerError(f"{name!r} must be a list (the object has: {known})")
    return value


def _use(item: object, where: str, cookbook: Cookbook) -> TacticUse:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        raise InvalidAnswerError(f"{where} must be an object with a text 'id'")
    given = item.get("parameters") or []
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise InvalidAnswerError(f"{where}.parameters must be a list")
    tactic = item["id"]
    values: dict[str, int | str] = {}
    for pair in given:
        if not isinstance(pair, dict) or not isinstance(pair.get("name"), str) or "value" not in pair:
            raise InvalidAnswerError(f"{where}.parameters must hold objects with 'name' and 'value'")
        values[pair["name"]] = _value(str(pair["value"]), tactic, pair["name"], cookbook)
    return TacticUse.of(tactic, **values)


def _value(text: str, tactic: str, name: str, cookbook: Cookbook) -> int | str:
    """The allowed value that is written so; the text itself where none is, for the algebra to refuse."""
    parameter = cookbook[tactic].parameter(name) if tactic in cookbook else None
    allowed = parameter.values if parameter else ()
    return next((value for value in allowed if str(value) == text), text)


def _step(item: object, where: str) -> str:
    step = " ".join(_text(item, where, _STEP_CHARS).split())
    if not step:
        raise InvalidAnswerError(f"{where} is empty")
    return step


def _text(value: object, where: str, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidAnswerError(f"{where!r} must be text")
    if len(value) > most:
        raise InvalidAnswerError(f"{where!r} has {len(value)} characters: at most {most}")
    return value


def _effect(value: object) -> Effect | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.get("resource") not in {r.value for r in Resource}:
        resources = ", ".join(r.value for r in Resource)
        raise InvalidAnswerError(f"'expected.resource' must be one of {resources}")
    factor = value.get("factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1e6:
        raise InvalidAnswerError("'expected.factor' must be a positive number")
    return Effect(Resource(value["resource"]), float(factor))
