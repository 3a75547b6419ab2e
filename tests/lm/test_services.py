"""The three wire forms, and everything that servers do wrong, over real sockets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lm_server import (
    Move,
    cuts_the_stream,
    is_silent,
    never_ends,
    objects_to,
    refuses,
    says,
    sends,
    serving,
    streams,
)

from cupilot.lm.calling import Caller, Patience
from cupilot.lm.dialect import Dialect, DialectCache, Mode
from cupilot.lm.http import Limits
from cupilot.lm.messages import EndpointError, Reach, Reply, Request, Schema, Stop, Turn
from cupilot.lm.service import WIRES, Service

SCHEMA = Schema("thing", {"type": "object", "properties": {}, "required": [], "additionalProperties": False})
BEST = Dialect()
QUESTION = Request("translator", "You are.", (Turn("user", "Well?"),), max_tokens=50)
KEY = "canary-key-1234567890"


def service(url: str, folder: Path, kind: str = "openai", dialect: Dialect | None = BEST) -> Service:
    cache = DialectCache(folder / "dialects.json")
    made = Service(f"{kind}:m", WIRES[kind], "m", url, cache, KEY, Limits(idle_s=0.5, total_s=5))
    if dialect is not None:
        cache.put(made.name, dialect)
    return made


def ask(tmp_path: Path, *script: Move, stream: bool = True, request: Request = QUESTION) -> Reply:
    with serving(*script) as server:
        return service(server.url, tmp_path, dialect=Dialect(stream=stream)).complete(request)


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_arrives_whole_and_counted(tmp_path: Path, stream: bool) -> None:
    reply = ask(tmp_path, says("a long answer"), stream=stream)
    assert reply == Reply("a long answer", Stop.DONE, 100, 20)


def test_a_server_that_does_not_stream_though_asked_to_is_understood(tmp_path: Path) -> None:
    whole = {"choices": [{"message": {"content": "hm"}, "finish_reason": "stop"}]}
    reply = ask(tmp_path, sends(json.dumps(whole).encode()))
    assert (reply.text, reply.stop) == ("hm", Stop.DONE)
    assert reply.tokens_out > 0  # estimated where the server does not tell


def test_the_key_goes_into_the_header_and_nowhere_else(tmp_path: Path) -> None:
    with serving(says("yes")) as server:
        service(server.url, tmp_path).complete(QUESTION)
    (received,) = server.received
    assert received.headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(received.body)


def test_a_server_that_repeats_the_key_is_not_repeated(tmp_path: Path) -> None:
    assert KEY not in ask(tmp_path, says(f"your key is {KEY}")).text
    with pytest.raises(EndpointError) as caught:
        ask(tmp_path, refuses(401, f"Incorrect API key provided: {KEY}"))
    assert KEY not in str(caught.value) and "[key]" in str(caught.value)


def test_a_cut_stream_is_a_passing_fault(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="broke off after 4 characters") as caught:
        ask(tmp_path, cuts_the_stream("half"))
    assert caught.value.reach is Reach.PASSING


def test_silence_ends_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match=r"silent for 0\.5 s") as caught:
        ask(tmp_path, is_silent(1.5))
    assert caught.value.reach is Reach.PASSING


def test_endless_text_is_cut(tmp_path: Path) -> None:
    reply = ask(tmp_path, never_ends)
    assert reply.stop is Stop.LENGTH
    assert len(reply.text) < 50 * 40


@pytest.mark.parametrize("data", [b"not json", b"[1, 2]", b"", b'{"choices": "none"}', b'{"choices": [7]}'])
def test_nonsense_is_a_fault_and_no_crash(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(EndpointError):
        ask(tmp_path, sends(data), stream=False)


def test_a_refusal_of_the_model_is_an_answer(tmp_path: Path) -> None:
    refusal = {"choices": [{"message": {"refusal": "I will not."}, "finish_reason": "stop"}]}
    reply = ask(tmp_path, sends(json.dumps(refusal).encode()))
    assert (reply.stop, reply.text) == (Stop.REFUSED, "I will not.")
    assert ask(tmp_path, says("", finish="content_filter")).stop is Stop.REFUSED
    assert ask(tmp_path, says("cut", finish="length")).stop is Stop.LENGTH


@pytest.mark.parametrize(
    ("status", "reach"),
    [
        (400, Reach.CALL),
        (401, Reach.ENDPOINT),
        (402, Reach.ENDPOINT),
        (404, Reach.ENDPOINT),
        (307, Reach.ENDPOINT),
        (429, Reach.PASSING),
        (500, Reach.PASSING),
        (529, Reach.PASSING),
    ],
)
def test_every_status_says_how_much_it_spoils(tmp_path: Path, status: int, reach: Reach) -> None:
    with pytest.raises(EndpointError, match=f"answered {status}: the reason") as caught:
        ask(tmp_path, refuses(status, "the reason", Location="http://elsewhere/"))
    assert caught.value.reach is reach
    assert reach is not Reach.ENDPOINT or caught.value.hint


def test_an_unreachable_host_is_named_with_a_next_step(tmp_path: Path) -> None:
    with serving(says("")) as server:
        url = server.url
    with pytest.raises(EndpointError, match=r"127\.0\.0\.1:\d+ cannot be reached") as caught:
        service(url, tmp_path).complete(QUESTION)
    assert "port" in caught.value.hint


# -- patience ------------------------------------------------------------------------------------------


def test_busy_servers_are_asked_again_as_they_say(tmp_path: Path) -> None:
    waits: list[float] = []
    told: list[str] = []
    with serving(
        refuses(429, "slow down", Retry_After="7"), refuses(503), cuts_the_stream("x"), says("ok")
    ) as s:
        caller = Caller(service(s.url, tmp_path), notice=told.append, sleep=waits.append)
        assert caller.call(QUESTION).text == "ok"
    assert waits == [7.0, 2.0, 4.0]
    assert "slow down" in told[0] and caller.gone is None


def test_after_failures_in_a_row_the_endpoint_counts_as_gone(tmp_path: Path) -> None:
    patience = Patience(attempts=2, failures=3)
    with serving(refuses(500, "melted")) as server:
        caller = Caller(service(server.url, tmp_path), patience, sleep=lambda _: None)
        for _ in range(3):
            assert caller.gone is None
            with pytest.raises(EndpointError):
                caller.call(QUESTION)
    assert len(server.received) == 6
    assert caller.gone is not None and "3 requests in a row" in caller.gone and "melted" in caller.gone


def test_a_wrong_key_is_not_tried_twice(tmp_path: Path) -> None:
    with serving(refuses(401, "bad key")) as server:
        caller = Caller(service(server.url, tmp_path), sleep=lambda _: None)
        with pytest.raises(EndpointError):
            caller.call(QUESTION)
    assert len(server.received) == 1 and caller.gone is not None


# -- dialects ------------------------------------------------------------------------------------------

READY = says('{"ready": true}')


def found(tmp_path: Path, *script: Move) -> Dialect:
    with serving(*script) as server:
        made = service(server.url, tmp_path, dialect=None)
        dialect = made.dialect()
        asked = len(server.received)
        assert service(server.url, tmp_path, dialect=None).dialect() == dialect
        assert len(server.received) == asked  # the second time it is known
    return dialect


def test_the_best_form_is_kept(tmp_path: Path) -> None:
    assert found(tmp_path, READY) == Dialect(Mode.NATIVE, True, "max_completion_tokens")


def test_a_server_without_schemas_is_given_a_tool(tmp_path: Path) -> None:
    assert found(tmp_path, objects_to("response_format", READY)).mode is Mode.TOOL


def test_a_server_that_ignores_schemas_and_tools_is_prompted(tmp_path: Path) -> None:
    assert found(tmp_path, says("Sure! I am ready.")).mode is Mode.PROMPTED


def test_older_spellings_and_missing_streams_are_found(tmp_path: Path) -> None:
    old = objects_to("max_completion_tokens", objects_to("stream_options", READY, "stream is not supported"))
    assert found(tmp_path, old) == Dialect(Mode.NATIVE, False, "max_tokens")


def test_prompted_schemas_stand_in_the_prompt(tmp_path: Path) -> None:
    with serving(READY) as server:
        request = Request("manager-plan", "s", (Turn("user", "Plan."),), 50, SCHEMA)
        service(server.url, tmp_path, dialect=Dialect(Mode.PROMPTED)).complete(request)
    (received,) = server.received
    assert "JSON schema" in received.body["messages"][-1]["content"]
    assert "response_format" not in received.body


# -- Anthropic and Google ------------------------------------------------------------------------------


def test_anthropic_streams_and_counts_cached_tokens(tmp_path: Path) -> None:
    script = streams(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 90}}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hmm"}},
        {"type": "ping"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "good "}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "day"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    with serving(script) as server:
        reply = service(server.url, tmp_path, "anthropic").complete(QUESTION)
    (received,) = server.received
    assert reply == Reply("good day", Stop.DONE, 95, 9)
    assert received.path.endswith("/v1/messages") and received.headers["X-Api-Key"] == KEY
    assert received.body["system"] == "You are." and received.body["max_tokens"] == 50


@pytest.mark.parametrize("mode", [Mode.NATIVE, Mode.TOOL])
def test_anthropic_structures_in_both_ways(tmp_path: Path, mode: Mode) -> None:
    called, said = {"type": "tool_use", "input": {"a": 1}}, {"type": "text", "text": '{"a": 1}'}
    whole = {
        "type": "message",
        "content": [called if mode is Mode.TOOL else said],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    request = Request("manager-plan", "s", (Turn("user", "Plan."),), 50, SCHEMA)
    with serving(sends(json.dumps(whole).encode())) as server:
        made = service(server.url, tmp_path, "anthropic", Dialect(mode, stream=False))
        assert json.loads(made.complete(request).text) == {"a": 1}
    assert ("tools" in server.received[0].body) == (mode is Mode.TOOL)
    assert ("output_config" in server.received[0].body) == (mode is Mode.NATIVE)


def test_anthropic_refusals_and_errors_in_the_stream(tmp_path: Path) -> None:
    refusal = {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}
    broken = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with serving(streams(refusal), streams(broken)) as server:
        made = service(server.url, tmp_path, "anthropic")
        assert made.complete(QUESTION).stop is Stop.REFUSED
        with pytest.raises(EndpointError, match="Overloaded"):
            made.complete(QUESTION)


def test_google_streams_and_counts_thoughts(tmp_path: Path) -> None:
    script = streams(
        {"candidates": [{"content": {"parts": [{"text": "pondering", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "good day"}]}, "finishReason": "STOP"}],
         "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 30}},
    )  # fmt: skip
    with serving(script) as server:
        reply = service(server.url, tmp_path, "google").complete(QUESTION)
    (received,) = server.received
    assert reply == Reply("good day", Stop.DONE, 8, 32)
    assert received.path.endswith("/models/m:streamGenerateContent?alt=sse")
    assert received.headers["X-Goog-Api-Key"] == KEY and KEY not in received.path


def test_google_blocks_and_calls_functions(tmp_path: Path) -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    called = {
        "candidates": [{"content": {"parts": [{"functionCall": {"args": {"a": 1}}}]}, "finishReason": "STOP"}]
    }
    request = Request("manager-plan", "s", (Turn("user", "Plan."),), 50, SCHEMA)
    with serving(sends(json.dumps(blocked).encode()), sends(json.dumps(called).encode())) as server:
        made = service(server.url, tmp_path, "google", Dialect(Mode.TOOL, stream=False))
        assert made.complete(QUESTION).stop is Stop.REFUSED
        assert json.loads(made.complete(request).text) == {"a": 1}
