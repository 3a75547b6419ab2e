import io
import os
import signal
from dataclasses import replace

import pytest
from kit import search_of
from rich.console import Console

from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.problem.problem import Problem
from cupilot.report.live import LiveDisplay
from cupilot.types import Stage


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def written(at: Console) -> str:
    assert isinstance(at.file, io.StringIO)
    return at.file.getvalue()


def test_without_a_terminal_every_candidate_is_a_line(relu: Problem) -> None:
    out = console(terminal=False)
    search = search_of(relu)
    with LiveDisplay(out, "relu", search.budget) as display:
        search.watcher = display
        outcome = search.run()
    lines = written(out).splitlines()
    assert len(lines) == len(outcome.records)
    assert "plain" in lines[0] and all(any(w in line for w in ("x ", "verify")) for line in lines)
    assert set(display.finished_s) == {c.slot for c in outcome.records}


def test_sentences_of_a_model_do_not_flood_the_log(relu: Problem) -> None:
    out = console(terminal=False)
    search = search_of(relu)
    record = search.run().records[0]
    wordy = replace(record.strategy, free_steps=("first one thing and then another " * 20,))
    with LiveDisplay(out, "relu", search.budget) as display:
        display.recorded(replace(record, strategy=wordy), None)
    (line,) = written(out).splitlines()
    assert len(line) == 200 and line.endswith("…")


def test_the_panel_shows_best_now_and_budget(relu: Problem) -> None:
    out = console(terminal=True)
    search = search_of(relu)
    with LiveDisplay(out, "relu", search.budget, clock=lambda: 0.0) as display:
        search.watcher = display
        search.run()
        out.print(display.renderable())
    for word in ("relu", "over eager", "final proof", "evaluations", "passed"):
        assert word in written(out)


def test_the_best_is_the_fastest_so_far_and_noise_is_no_failure(relu: Problem) -> None:
    out = console(terminal=True)
    search = search_of(relu)
    records = search.run().records
    fastest = max(records, key=lambda c: c.speedup.ratio)
    unclear = replace(fastest, evaluation=Evaluation(Verdict.UNDECIDED, Stage.TIME, "busy"))
    display = LiveDisplay(out, "relu", search.budget, clock=lambda: 0.0)
    for candidate in (records[0], fastest, unclear):
        display.recorded(candidate, records[0])
    out.print(display.renderable())
    shown = written(out)
    assert f"{fastest.speedup.ratio:.2f}x" in shown and "noise" in shown and "2 of 3 passed" in shown


def test_the_first_interrupt_ends_the_search_gracefully_the_second_at_once(relu: Problem) -> None:
    before = signal.getsignal(signal.SIGINT)
    search = search_of(relu)
    with LiveDisplay(console(terminal=False), "relu", search.budget) as display:
        assert not display.stop_requested()
        os.kill(os.getpid(), signal.SIGINT)
        assert display.stop_requested()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        search.watcher = display
        assert search.run().reason == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
