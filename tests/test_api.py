"""cuPilot from Python: the same runs as the commands make."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import cupilot
from cupilot import api
from cupilot.errors import CupilotError
from cupilot.evaluate.effort import QUICK
from cupilot.evaluate.quiet import Gate
from cupilot.evolve import measuring
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.conduct import conduct
from cupilot.evolve.ending import Ending, ending_of
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.measuring import Measurer
from cupilot.evolve.run import replay
from cupilot.evolve.watching import Silent

sys.path.insert(0, str(Path(__file__).parent / "evolve"))
from killable import Slow


def scaled_relu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2 + y


INPUTS = [torch.randn(48, 40), torch.randn(48, 40)]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUPILOT_POOL", str(tmp_path / "pool.db"))


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(api, "conduct", partial(conduct, measurer=lambda *_: Slow(tmp_path / "log", 0)))


def test_a_function_is_optimised_in_a_run_that_the_commands_can_use(pretended: None) -> None:
    result = cupilot.optimize(scaled_relu, INPUTS, budget="5evals", pool=False)
    assert result.run == Path("runs/scaled_relu") and result.reason == "the evaluations are used up"
    assert result.kernel is not None and result.kernel.exists() and result.speedup > 1
    seen = replay(result.run)
    assert len(seen.outcome.records) == 5 and seen.is_finished
    again = cupilot.optimize(scaled_relu, INPUTS, budget="5evals", pool=False)
    assert again.run == Path("runs/scaled_relu-2")


def test_a_watcher_sees_every_candidate_and_can_stop(pretended: None) -> None:
    class Impatient(Silent):
        def __init__(self) -> None:
            self.seen: list[Candidate] = []

        def recorded(self, candidate: Candidate, champion: Candidate | None) -> None:
            self.seen.append(candidate)

        def stop_requested(self) -> bool:
            return len(self.seen) >= 3

    watcher = Impatient()
    result = cupilot.optimize(scaled_relu, INPUTS, budget="9evals", pool=False, watcher=watcher)
    assert result.reason == "interrupted" and len(watcher.seen) == 3


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((scaled_relu,), {}, "needs the function's arguments"),
        (("none.py",), {}, "none.py"),
        ((scaled_relu, INPUTS), {"budget": "lots"}, "not understood"),
        ((scaled_relu, INPUTS), {"wheels": 4}, "wheels"),
        ((scaled_relu, INPUTS), {"policy": "guess"}, "guess"),
    ],
)
def test_what_cannot_be_used_is_an_error_and_leaves_no_run(
    pretended: None, arguments: tuple[object, ...], options: dict[str, object], expected: str
) -> None:
    with pytest.raises(CupilotError, match=expected):
        cupilot.optimize(*arguments, **options)  # type: ignore[arg-type]
    assert not list(Path().glob("runs/*/run.db"))


@pytest.mark.slow
def test_a_real_search_from_nothing_to_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one test that really compiles, checks, times and proves; other tests keep the machine busy."""
    anything = Gate(slowdown=99, pressure=1, stall=99, null=9)
    monkeypatch.setattr(measuring, "SEARCHING", anything)
    monkeypatch.setattr(measuring, "FULL", QUICK)  # shorter timing, eager alone; checks stay whole
    monkeypatch.setattr(api, "conduct", partial(conduct, measurer=partial(Measurer, gate=anything)))
    result = cupilot.optimize(scaled_relu, INPUTS, budget="2evals", pool=False)
    seen = replay(result.run)
    assert seen.outcome.spent.evaluations == 2 == len(list((result.run / "kernels").iterdir()))
    assert all(c.passed for c in seen.outcome.records)
    ending = ending_of(seen.outcome, seen.run.search.champion)
    assert ending in (Ending.FASTER, Ending.REFERENCE_WINS)
    assert (ending is Ending.FASTER) == (result.kernel is not None)
    if result.kernel is not None:
        assert "identity:" in result.kernel.read_text()
    with RunFolder.open(result.run, exclusive=True) as folder:
        kinds = [row.kind for row in folder.store.rows()]
    assert kinds[:2] == ["session", "place"] and kinds[-1] == "ended"
