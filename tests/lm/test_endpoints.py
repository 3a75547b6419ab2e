"""Endpoints without a network, keys, prices, names: each bad input ends in a sentence with a next step."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cupilot.errors import UsageError
from cupilot.lm.dialect import Dialect, DialectCache
from cupilot.lm.mailbox import Mailbox
from cupilot.lm.messages import EndpointError, Reach, Request, Stop, Turn, most_tokens_in
from cupilot.lm.names import Opening, open_endpoint
from cupilot.lm.prices import FREE, load_prices, price
from cupilot.lm.program import Program
from cupilot.lm.replay import KIND, Replay
from cupilot.lm.service import Service
from cupilot.store import Store

QUESTION = Request("translator", "You are.", (Turn("user", "Well?"),), max_tokens=50)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "CUPILOT"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    monkeypatch.setenv("CUPILOT_KEYS", str(tmp_path / "keys.toml"))


# -- programs ------------------------------------------------------------------------------------------


def program(code: str, limit_s: float = 20.0) -> Program:
    return Program("command:test", f"{sys.executable} -c '{code}'", limit_s)


def test_a_program_reads_the_prompt_and_writes_the_answer() -> None:
    reply = program("import sys; print(sys.stdin.read().upper())").complete(QUESTION)
    assert "YOU ARE." in reply.text and "WELL?" in reply.text
    assert reply.stop is Stop.DONE and reply.tokens_in > 0 < reply.tokens_out


def test_a_program_that_fails_says_how() -> None:
    with pytest.raises(EndpointError, match="status 3: it broke") as caught:
        program('import sys; sys.stderr.write("it broke"); sys.exit(3)').complete(QUESTION)
    assert caught.value.hint


def test_a_program_that_hangs_is_stopped_with_its_children() -> None:
    with pytest.raises(EndpointError, match=r"still working after 0\.3 s"):
        program("import time; time.sleep(60)", limit_s=0.3).complete(QUESTION)


@pytest.mark.parametrize("command", ["no-such-program --x", "", "'unclosed"])
def test_programs_that_cannot_be_are_known_before_the_run(command: str) -> None:
    with pytest.raises(EndpointError) as caught:
        Program("command:", command).check()
    assert caught.value.reach is Reach.ENDPOINT


# -- mailboxes -----------------------------------------------------------------------------------------


def mailbox(folder: Path, patience_s: float = 5.0, **more: object) -> Mailbox:
    return Mailbox("mailbox:box", folder, patience_s, **more)  # type: ignore[arg-type]


def test_an_answer_may_come_later_and_is_found_again(tmp_path: Path) -> None:
    told: list[str] = []

    def answer_after_a_while(_: float) -> None:
        if len(told) and not list(tmp_path.glob("*.answer.md")):
            (question,) = tmp_path.glob("translator-*.question.md")
            assert "Well?" in question.read_text()
            question.with_name(question.name.replace("question", "answer")).write_text("Indeed.")

    reply = mailbox(tmp_path, notice=told.append, sleep=answer_after_a_while).complete(QUESTION)
    assert reply.text == "Indeed."
    assert mailbox(tmp_path, sleep=lambda _: None).complete(QUESTION).text == "Indeed."
    assert len(list(tmp_path.iterdir())) == 2  # no temporary files stay behind


def test_a_half_written_answer_is_not_taken(tmp_path: Path) -> None:
    pieces = ["Ind", "eed", ".", "", ""]
    mailbox_ = mailbox(tmp_path, sleep=lambda _: write_more())

    def write_more() -> None:
        (question,) = tmp_path.glob("*.question.md")
        with question.with_name(question.name.replace("question", "answer")).open("a") as file:
            file.write(pieces.pop(0))

    assert mailbox_.complete(QUESTION).text == "Indeed."


def test_a_mailbox_that_nobody_answers_says_what_it_waits_for_and_gives_up(tmp_path: Path) -> None:
    now = [0.0]
    told: list[str] = []

    def sleep(seconds: float) -> None:
        now[0] += 10

    waiting = mailbox(tmp_path, 100, notice=told.append, sleep=sleep, clock=lambda: now[0])
    with pytest.raises(EndpointError, match="nobody answered") as caught:
        waiting.complete(QUESTION)
    assert caught.value.reach is Reach.ENDPOINT and "resume" in caught.value.hint
    assert len(told) == 4 and "waiting for" in told[0] and str(tmp_path) in told[0]


def test_a_mailbox_that_cannot_be_made_is_known_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EndpointError, match="cannot be used"):
        mailbox(tmp_path / "file" / "box").check()


# -- replays -------------------------------------------------------------------------------------------


def test_a_recording_answers_what_it_was_asked_and_nothing_else(tmp_path: Path) -> None:
    asked = replace(QUESTION, subject="kernel 1")
    with Store(tmp_path / "run.db") as store:
        answer = {"text": "so", "stop": "done", "tokens_in": 1, "tokens_out": 2, "money_usd": 0, "model": "m"}
        store.put(KIND, asked.to_json(), answer, cost_s=1)
    replay = Replay("replay:run", tmp_path)
    replay.check()
    assert replay.complete(asked).text == "so"
    worded_otherwise = replace(asked, system="You are another version.", turns=(Turn("user", "How fast?"),))
    assert replay.complete(worded_otherwise).text == "so"
    corrected = replace(asked, turns=(*asked.turns, Turn("assistant", "so"), Turn("user", "No.")))
    for other in (replace(asked, subject="kernel 2"), replace(worded_otherwise, subject=""), corrected):
        with pytest.raises(EndpointError, match="has no answer to this question of the translator") as caught:
            replay.complete(other)
        assert "other measurements" in caught.value.hint


def test_a_recording_that_is_not_there_or_not_readable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recorded run"):
        Replay("replay:x", tmp_path / "nowhere").check()
    with Store(tmp_path / "run.db") as store:
        store.set_meta("version", "999")
    with pytest.raises(UsageError, match="another version"):
        Replay("replay:x", tmp_path).check()


# -- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    ["gpt-5", "opanai:gpt-5", "openai:", "openai:a b", "mailbox:", "", ":", "openai:m@http://", "replay"],
)
def test_what_is_no_model_is_refused_with_the_forms_there_are(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_endpoint(spec)
    assert "http" in caught.value.hint or "openai:NAME" in caught.value.hint


def test_base_urls_and_names_with_colons_are_understood(tmp_path: Path) -> None:
    opened = open_endpoint("openai:qwen3:8b@http://localhost:11434/v1/", Opening(cache=tmp_path / "d.json"))
    assert isinstance(opened, Service)
    assert (opened.model, opened.base_url) == ("qwen3:8b", "http://localhost:11434/v1")
    assert opened.key is None


@pytest.mark.parametrize("where", ["localhost:8000", "localhost", "gpu-1.lan:8000/v1"])
def test_a_base_url_without_its_scheme_is_named(where: str) -> None:
    with pytest.raises(UsageError, match="is no base URL") as caught:
        open_endpoint(f"openai:qwen3:32b@{where}")
    assert f"openai:NAME@http://{where}" in caught.value.hint


def test_a_key_inside_a_url_is_refused() -> None:
    with pytest.raises(UsageError, match="must not contain a key"):
        open_endpoint("openai:m@https://user:secret@host/v1")


# -- keys ----------------------------------------------------------------------------------------------


def key_of(spec: str) -> str | None:
    opened = open_endpoint(spec)
    assert isinstance(opened, Service)
    assert "canary" not in repr(opened)
    return opened.key


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_a_missing_key_says_where_it_is_looked_for(provider: str) -> None:
    with pytest.raises(UsageError, match=f"no key for {provider}") as caught:
        open_endpoint(f"{provider}:some-model")
    assert "_API_KEY" in caught.value.hint and "keys.toml" in caught.value.hint


def test_keys_come_from_the_environment_or_a_private_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('openai = "canary-1"\n"host:8000" = "canary-2"\n')
    file.chmod(0o600)
    assert key_of("openai:m") == "canary-1"
    assert key_of("openai:m@http://host:8000/v1") == "canary-2"
    monkeypatch.setenv("OPENAI_API_KEY", "canary-3")
    assert key_of("openai:m") == "canary-3"


def test_a_providers_key_never_goes_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    assert key_of("openai:m@http://elsewhere/v1") is None


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('openai = "canary-1"')
    file.chmod(0o644)
    with pytest.raises(UsageError, match="others can read") as caught:
        open_endpoint("openai:m")
    assert "chmod 600" in caught.value.hint


def test_a_damaged_file_is_named_but_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text("openai = canary-1")
    file.chmod(0o600)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        open_endpoint("openai:m")
    assert "canary" not in str(caught.value)


# -- prices and dialects -------------------------------------------------------------------------------


def test_every_shipped_price_is_dated_and_plausible() -> None:
    rows = load_prices()
    assert rows
    for row in rows.values():
        assert row.as_of is not None and 0 < row.input_usd < row.output_usd < 1000


def test_prices_hold_for_versions_and_not_for_other_models() -> None:
    assert price("anthropic:claude-sonnet-4-6") == price("anthropic:claude-sonnet-4-6-20260401") is not None
    assert price("openai:gpt-5.1") is not None and price("openai:gpt-4") is None
    assert price("openai:gpt-5@https://openrouter.ai/api/v1") is None
    assert price("openai:qwen@http://localhost:8000/v1") == price("mailbox:x") == FREE


def test_own_prices_win_and_damaged_ones_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    monkeypatch.setenv("CUPILOT_PRICES", str(own))
    own.write_text('["openai:gpt-5"]\ninput = 1\noutput = 2\nas_of = 2026-11-01\n')
    found = price("openai:gpt-5")
    assert found is not None and found.of(1_000_000, 2_000_000) == 5.0
    for damaged in ('["a"]\ninput = 1', "nonsense", '["a"]\ninput = "1"\noutput = 2\nas_of = 2026-11-01'):
        own.write_text(damaged)
        with pytest.raises(UsageError, match="no list of prices"):
            price("openai:gpt-5")


def test_a_damaged_dialect_cache_is_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "dialects.json"
    for text in ("{", "[]", json.dumps({"a": {"mode": "odd"}}), json.dumps({"a": {}})):
        file.write_text(text)
        assert not DialectCache(file).get("a")
    DialectCache(file).put("a", Dialect())
    assert DialectCache(file).get("a") == Dialect()


def test_reservations_are_larger_than_any_tokenizer_makes_of_a_prompt() -> None:
    text = "int x = a[i] + b[j]; // ÄÖÜ\n" * 100
    request = Request("translator", "", (Turn("user", text),), 10)
    assert most_tokens_in(request) >= len(text) / 2.1
