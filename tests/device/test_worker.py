"""A process that says anything at all on its pipe is believed only when it says what it was asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cupilot.device.base import Ran
from cupilot.device.worker import Silence, Worker

BRIEF = settings(max_examples=60, deadline=None)


@contextmanager
def answering(behaviour: Callable[[int, int], None]) -> Any:
    """A worker whose other ends `behaviour` holds, in a thread: it reads commands and writes answers."""
    (their_commands, commands), (answers, their_answers) = os.pipe(), os.pipe()

    def run() -> None:
        try:
            behaviour(their_commands, their_answers)
        except BrokenPipeError:
            pass
        finally:
            os.close(their_answers)
            os.close(their_commands)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Worker(os.getpid(), commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        thread.join()


@BRIEF
@given(st.binary(max_size=20), st.integers(0, 8), st.booleans())
def test_only_the_token_itself_is_an_answer(before, kept, twice):
    def behaviour(commands: int, answers: int) -> None:
        token = os.read(commands, 32)[:8]
        os.write(answers, before + token[:kept] + (token if twice else b""))

    with answering(behaviour) as worker:
        outcome = worker.ask(0, 1, 0, limit_s=1.0)
    honest = not before and (kept == 8 or (kept == 0 and twice))
    assert isinstance(outcome, Ran) == honest
    assert honest or outcome in (Silence.OTHER_WORDS, Silence.GONE)


@BRIEF
@given(st.binary(min_size=1, max_size=40))
def test_whoever_speaks_before_being_asked_is_not_believed_afterwards(words):
    spoken = threading.Event()

    def behaviour(commands: int, answers: int) -> None:
        os.write(answers, words)
        spoken.set()
        os.read(commands, 32)

    with answering(behaviour) as worker:
        spoken.wait()
        assert worker.ask(0, 1, 0, limit_s=1.0) is Silence.UNASKED


def test_silence_ends_with_the_time_allowed():
    def behaviour(commands: int, answers: int) -> None:
        while os.read(commands, 32):
            pass

    with answering(behaviour) as worker:
        assert worker.ask(0, 1, 0, limit_s=0.05) is Silence.LATE


@BRIEF
@given(st.lists(st.binary(min_size=1, max_size=60), max_size=4))
def test_any_introduction_is_read_or_given_up(parts):
    def behaviour(commands: int, answers: int) -> None:
        for part in parts:
            os.write(answers, part)

    with answering(behaviour) as worker:
        said = worker.introduction(1.0)
    whole = b"".join(parts)
    assert (said is None) == (len(whole) < 24)
    if said is not None:
        assert said[0] == int.from_bytes(whole[:8], "little")
        assert len(said[2]) <= 4096
        assert all(c.isprintable() or c == "\n" for c in said[2])


def test_an_introduction_that_drips_ends_with_the_time_allowed():
    leave = threading.Event()

    def behaviour(commands: int, answers: int) -> None:
        while not leave.wait(0.02):
            os.write(answers, b"\1")

    with answering(behaviour) as worker:
        assert worker.introduction(0.2) is None
        leave.set()
