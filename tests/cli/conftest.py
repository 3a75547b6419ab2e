"""Commands as a person types them, in a folder and with a pool of their own, over a bench that pretends."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolve"))

from command_kit import Bench, Command, Measured
from killable import Slow

from cupilot.cli import conducting
from cupilot.cli.main import main
from cupilot.evolve import explain
from cupilot.evolve.conduct import conduct


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `cupilot ...` in this process; returns its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUPILOT_POOL", str(tmp_path / "pool.db"))

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["cupilot", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0

    return run


@pytest.fixture
def measured_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measured:
    """Makes the commands measure with something else; see `Slow` for what a bench is."""

    def use(bench: Bench) -> None:
        monkeypatch.setattr(conducting, "conduct", partial(conduct, measurer=bench))
        monkeypatch.setattr(explain, "Measurer", bench)

    use(lambda *_: Slow(tmp_path / "log", 0))
    return use
