"""A run is killed at random moments and goes on: nothing counts twice, only what was in flight is lost."""

import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from killable import ASKED, Slow, go_on

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined
from cupilot.errors import UsageError
from cupilot.evolve.conduct import Finished, conduct
from cupilot.evolve.ending import NOT_FINISHED
from cupilot.evolve.folder import Asked, RunFolder
from cupilot.evolve.run import replay
from cupilot.evolve.watching import Silent
from cupilot.kernel.file import KernelFile
from cupilot.store import Store

KILLS = 30
FRESH = multiprocessing.get_context("forkserver")  # forks from a process that has torch and never used it
FRESH.set_forkserver_preload(["killable"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, int]:
    folder = tmp_path_factory.mktemp("undisturbed")
    finished = go_on(folder / "run", folder / "log", 0)
    return finished, len((folder / "log").read_text().splitlines())


def test_killed_thirty_times_it_ends_where_an_undisturbed_run_ends(
    undisturbed: tuple[Finished, int], tmp_path: Path
) -> None:
    """Thirty kills of processes at work; a run that gets to its end before them makes room for another."""
    finished, questions = undisturbed
    rng = random.Random(int(time.time()))
    kills = [0]
    while sum(kills) < KILLS:
        child = FRESH.Process(target=go_on, args=(*_places(tmp_path, len(kills)), 0.02))
        child.start()
        child.join(rng.uniform(0.1, 1.2))
        at_work = child.is_alive()
        child.kill()
        child.join()
        if at_work:
            kills[-1] += 1
        else:
            kills.append(0)

    for number, count in enumerate(kills, 1):
        run, log = _places(tmp_path, number)
        resumed = go_on(run, log, 0)
        asked = len(log.read_text().splitlines())
        assert questions <= asked <= questions + count  # at most what was in flight is asked again
        assert resumed.outcome.spent.evaluations == finished.outcome.spent.evaluations > 15
        path = [(c.slot, c.intended.hash) for c in finished.outcome.records]
        assert [(c.slot, c.intended.hash) for c in resumed.outcome.records] == path
        assert resumed.outcome.champion is not None and finished.outcome.champion is not None
        assert resumed.outcome.champion.slot == finished.outcome.champion.slot
        assert resumed.outcome.reason == finished.outcome.reason


def _places(folder: Path, number: int) -> tuple[Path, Path]:
    """Of a run, and of the log of its questions."""
    return folder / f"run {number}", folder / f"log {number}"


def test_resuming_a_finished_run_asks_nothing(tmp_path: Path) -> None:
    first = go_on(tmp_path / "run", tmp_path / "log", 0)
    asked = (tmp_path / "log").read_text()
    again = go_on(tmp_path / "run", tmp_path / "log", 0)
    assert (tmp_path / "log").read_text() == asked
    assert again.outcome.spent.evaluations == first.outcome.spent.evaluations


def test_a_larger_budget_goes_on_where_the_run_ended(tmp_path: Path) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    with RunFolder.create(run, Asked("suite:softmax", budget="8evals", pool=False)) as folder:
        conduct(folder, None, lambda *_: Silent(), lambda *_: Slow(log, 0))
    before = log.read_text().count("evaluate")
    with RunFolder.open(run, exclusive=True) as folder:
        folder.ask_again(Asked("suite:softmax", budget="12evals", pool=False))
        more = conduct(folder, None, lambda *_: Silent(), lambda *_: Slow(log, 0))
    assert (before, log.read_text().count("evaluate")) == (8, 12)
    assert more.outcome.spent.evaluations == 12


def test_a_run_can_be_looked_at_whenever_it_was_cut_short(
    undisturbed: tuple[Finished, int], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    child = FRESH.Process(target=go_on, args=(run, log, 0.05))
    child.start()
    while not log.exists() or len(log.read_text().splitlines()) < 5:
        assert child.is_alive()
        time.sleep(0.01)
    seen = replay(run)  # beside the process that owns it
    child.kill()
    child.join()
    cut = replay(run)
    assert seen.outcome.reason == cut.outcome.reason == NOT_FINISHED and not cut.is_finished
    slots = [c.slot for c in undisturbed[0].outcome.records]
    assert [c.slot for c in cut.outcome.records] == slots[: len(cut.outcome.records)]
    assert 1 <= len(seen.outcome.records) <= len(cut.outcome.records)


def test_a_changed_problem_is_refused(tmp_path: Path) -> None:
    problem = tmp_path / "problem.py"
    text = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.{}(x)\n"
    )
    tail = "def get_inputs():\n    return [torch.randn(8, 8)]\n"
    problem.write_text(text.format("relu") + tail)
    with RunFolder.create(tmp_path / "run", Asked(str(problem), budget="2evals", pool=False)) as folder:
        conduct(folder, None, lambda *_: Silent(), lambda *_: Slow(tmp_path / "log", 0))
    problem.write_text(text.format("tanh") + tail)
    with pytest.raises(UsageError, match="is not what it was"):
        replay(tmp_path / "run")


def test_a_run_that_this_version_cannot_retrace_is_not_told_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    go_on(run, log, 0)
    written = BuiltinAuthor.generate

    def otherwise(author: BuiltinAuthor, brief: Brief) -> KernelFile | Declined:
        kernel = written(author, brief)
        assert isinstance(kernel, KernelFile)
        return replace(kernel, source=f"{kernel.source}// otherwise\n")

    monkeypatch.setattr(BuiltinAuthor, "generate", otherwise)
    with pytest.raises(UsageError, match="another version of cuPilot"):
        replay(run)
    go_on(run, log, 0)  # measures what it does not know
    assert replay(run).is_finished


def test_a_run_that_was_killed_before_it_knew_what_was_asked_is_begun_again(tmp_path: Path) -> None:
    Store(tmp_path / "run" / "run.db").close()
    with pytest.raises(UsageError, match="does not say what it was asked"):
        RunFolder.open(tmp_path / "run", exclusive=True)
    with RunFolder.create(tmp_path / "run", ASKED) as folder:
        assert folder.asked == ASKED


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", ASKED):
        with pytest.raises(UsageError, match="another process"):
            RunFolder.open(tmp_path / "run", exclusive=True)
        with pytest.raises(UsageError, match="is a run already"):
            RunFolder.create(tmp_path / "run", ASKED)
