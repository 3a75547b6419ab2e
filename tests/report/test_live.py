import io
import os
import signal

import pytest
from kit import search_of
from rich.console import Console

from cupilot.problem.problem import Problem
from cupilot.report.live import LiveDisplay


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


def test_the_panel_shows_best_now_and_budget(relu: Problem) -> None:
    out = console(terminal=True)
    search = search_of(relu)
    with LiveDisplay(out, "relu", search.budget, clock=lambda: 0.0) as display:
        search.watcher = display
        search.run()
        out.print(display.renderable())
    for word in ("relu", "over eager", "final proof", "evaluations", "passed"):
        assert word in written(out)


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
