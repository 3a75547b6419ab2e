"""`cupilot doctor`: every layer is named with what it covers and misses; what lacks comes with its remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from cupilot.cli import doctor
from cupilot.cli.main import main
from cupilot.device.sandbox import Layer

Doctor = Callable[[], tuple[int, str]]


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs the command; returns the exit code and the page as one line of words."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(doctor, "_PROBE_S", 0.01)

    def run() -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["cupilot", "doctor"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, " ".join(capsys.readouterr().out.split())

    return run


def test_a_machine_that_can_evaluate_is_ready(examined: Doctor) -> None:
    code, page = examined()
    assert code == 0
    for name in (
        "python",
        "torch",
        "compiler",
        "system-call filter",
        "Landlock",
        "Not covered",
        "quiet machine",
    ):
        assert name.lower() in page.lower(), name
    assert "ready: kernels can be evaluated" in page


def test_without_a_compiler_it_says_how_to_get_one(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPILOT_CXX", "/nowhere/g++")
    code, page = examined()
    assert code == 2
    assert "not ready: compiler" in page
    assert "to fix:" in page


def test_a_missing_layer_is_named_with_its_remedy(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [
        Layer("seccomp", False, True, "system calls", "", "use a kernel with seccomp"),
        Layer("bubblewrap", False, False, "a second wall", "", "apt install bubblewrap"),
    ]
    monkeypatch.setattr(doctor, "probe", lambda: layers)
    code, page = examined()
    assert code == 2
    assert "not ready: seccomp" in page and "bubblewrap" not in page.partition("not ready")[2]
    assert "use a kernel with seccomp" in page and "apt install bubblewrap" in page
