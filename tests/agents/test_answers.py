"""Answers as models give them, good and bad: each bad one is refused with a sentence that says why."""

from __future__ import annotations

import json

import pytest
from agents_kit import COOKBOOK, fenced, kernel_text, strategy_text

from cupilot.agents.answers import InvalidAnswerError, read_kernel, read_strategy, strategy_schema
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import TacticUse


def test_a_kernel_is_found_among_words(relu: Problem) -> None:
    for text in (
        fenced(kernel_text("vectorize")),
        kernel_text("vectorize"),
        f"<think>```cpp\n/* cupilot 1 */\n```</think>\n{fenced(kernel_text('vectorize'))}",
        f"First:\n```sh\nls\n```\n{fenced(kernel_text('vectorize'))}",
    ):
        assert read_kernel(text, relu.target, "cpp").summary == "vectorize"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("I cannot do that.", "no fenced code block"),
        ("```cpp\nint main() {}\n```", "no fenced code block that begins with"),
        (f"```cpp\n{kernel_text()}", "never closed"),
        (fenced(kernel_text()) + fenced(kernel_text("tile")), "2 kernel files"),
        (fenced("/* cupilot 1\nwords\n*/\ncode\n"), "no launch section"),
        (fenced(kernel_text().replace("out)", "output)")), "line 4, column .*output"),
        (fenced(kernel_text().replace("k[1]", "k[1, 2, 3, 4]")), "line 4"),
        (fenced(kernel_text().replace("cupilot 1", "cupilot 9")), "version '9'"),
    ],
)
def test_unusable_kernels_come_back_with_the_exact_error(relu: Problem, text: str, reason: str) -> None:
    with pytest.raises(InvalidAnswerError, match=reason):
        read_kernel(text, relu.target, "cpp")


def test_a_strategy_is_read_with_its_parameters_and_steps() -> None:
    found = read_strategy(strategy_text("tile", "vectorize", steps=["Keep the  row."]), COOKBOOK, ("a", "b"))
    assert found.uses == (TacticUse.of("tile", size=8), TacticUse.of("vectorize"))
    assert found.free_steps == ("Keep the row.",)
    assert found.parents == ("a", "b") and found.expected is not None and found.expected.factor == 2.0


def test_json_is_found_among_words_and_in_looser_forms() -> None:
    loose = '{"tactics": [{"id": "tile", "parameters": {"size": 8}}], "steps": []}'
    for text in (f"Sure:\n```json\n{loose}\n```", f"{{hm}} {loose} and so on", loose):
        assert read_strategy(text, COOKBOOK).uses == (TacticUse.of("tile", size=8),)


def altered(**changes: object) -> str:
    return json.dumps({**json.loads(strategy_text("vectorize")), **changes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("  ", "empty"),
        ("no idea", "no JSON object"),
        ('{"tactics": [', "not valid JSON: .* line 1"),
        ("[]", "no JSON object"),
        ('{"tactic": []}', "'tactics' must be a list .*tactic"),
        (altered(tactics=[]), "strategy is empty"),
        (altered(tactics=["vectorize"]), r"tactics\[0\] must be an object"),
        (altered(tactics=[{"id": "magic"}]), "unknown tactic 'magic'"),
        (altered(tactics=[{"id": "tile", "parameters": []}]), "gives no value for size"),
        (altered(tactics=[{"id": "tile", "parameters": [{"name": "size", "value": "5"}]}]), "must be one of"),
        (altered(tactics=[{"id": "tile", "parameters": [{"size": 8}]}]), "'name' and 'value'"),
        (altered(tactics=[{"id": "unroll", "parameters": []}]), "'unroll' requires vectorize"),
        (altered(tactics=[{"id": "vectorize"}] * 2), "used twice"),
        (altered(steps=[1]), r"steps\[0\]' must be text"),
        (altered(steps=[""]), r"steps\[0\] is empty"),
        (altered(steps=["x"] * 9), "at most 8"),
        (altered(steps=["x" * 501]), "501 characters"),
        (altered(rationale=None), "'rationale' must be text"),
        (altered(expected={"resource": "luck", "factor": 2}), "expected.resource"),
        (altered(expected={"resource": "bytes", "factor": "2"}), "expected.factor"),
        (altered(expected={"resource": "bytes", "factor": 0}), "expected.factor"),
    ],
)
def test_unusable_strategies_come_back_with_the_exact_error(text: str, reason: str) -> None:
    with pytest.raises(InvalidAnswerError, match=reason):
        read_strategy(text, COOKBOOK)


def test_the_schema_is_strict_everywhere() -> None:
    def check(node: dict[str, object]) -> None:
        if node.get("type") == "object":
            properties = node["properties"]
            assert isinstance(properties, dict)
            assert node["additionalProperties"] is False and node["required"] == list(properties)
        for value in node.values():
            if isinstance(value, dict):
                check(value)

    schema = strategy_schema(COOKBOOK)
    check(dict(schema.body))
    assert "vectorize" in json.dumps(schema.body)
