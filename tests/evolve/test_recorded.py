"""The recorded runs that are shipped: they replay on any machine, without a model and without a compiler."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import Onlooker

from cupilot.evaluate.result import Evaluation, Interval
from cupilot.evolve.answers import Known
from cupilot.evolve.folder import Asked, RunFolder
from cupilot.evolve.run import prepare, replay
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.lm.replay import KIND

RECORDED = Path(__file__).parents[2] / "examples" / "recorded"
RUNS = sorted(db.parent.relative_to(RECORDED).as_posix() for db in RECORDED.rglob("run.db"))


def copied(name: str, into: Path) -> Path:
    """With the problem above it; looking at the shipped one could change it."""
    top = name.split("/")[0]
    shutil.copytree(RECORDED / top, into / top)
    return into / name


def test_there_are_four_problems() -> None:
    assert {name.split("/")[0] for name in RUNS} == {
        "causal_conv", "gated_shift", "upsample_conv", "window_attention",
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_replays_to_its_champion(name: str, tmp_path: Path) -> None:
    found = replay(copied(name, tmp_path))
    champion, proof = found.run.search.champion, found.outcome.proof
    assert found.is_finished
    assert champion is not None and champion.speedup.low > 1 and len(found.outcome.records) >= 4
    shipped = list((RECORDED / name / "champion").glob("*.cpp"))
    assert bool(shipped) == (found.outcome.champion is not None)
    for kernel in shipped:
        assert parse_kernel(kernel.read_text()).source == champion.kernel.source  # its constants are tuned
        assert proof is not None and proof.speedup["eager"].low > 1


class NobodyMeasures:
    """See `answers.Bench`. Everything that is asked must have been recorded."""

    def evaluate(self, kernel: KernelFile) -> Evaluation:
        raise AssertionError("a kernel that was not recorded")

    def race(self, challenger: Known, champion: Known) -> Interval | None:
        raise AssertionError("a race that was not recorded")

    def prove(self, champion: Known) -> Evaluation:
        raise AssertionError("a proof that was not recorded")


@pytest.mark.parametrize("name", RUNS)
def test_a_recording_answers_in_the_place_of_the_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the prompts have become since: the recording brings its own."""
    recording = copied(name, tmp_path)
    found = replay(recording)
    monkeypatch.setattr("cupilot.agents.making.shipped_prompts", lambda: pytest.fail("today's prompts"))
    with RunFolder.open(recording, exclusive=False) as folder:
        asked = replace(folder.asked, model=f"replay:{recording}")
    again = tmp_path / "again"
    measured_only(recording, again, asked)
    with RunFolder.open(again, exclusive=True) as folder:
        assert not list(folder.store.rows(KIND))
        run = prepare(folder, lambda *_: Onlooker(), lambda *_: NobodyMeasures(), None)
        run.search.search()
        assert list(folder.store.rows(KIND))
    assert run.search.champion is not None and found.run.search.champion is not None
    assert run.search.champion.kernel == found.run.search.champion.kernel
    strategies = [c.strategy.hash for c in found.outcome.records]
    assert [c.strategy.hash for c in run.search.records] == strategies


def measured_only(recording: Path, run: Path, asked: Asked) -> None:
    """A run folder with the recorded measurements and without anything that the model or its prompts said."""
    run.mkdir()
    (run / "kernels").mkdir()
    shutil.copy(recording / "run.db", run / "run.db")
    with sqlite3.connect(run / "run.db") as table:
        table.execute("DELETE FROM answers WHERE kind IN ('model', 'prompts', 'cookbook')")
    with RunFolder.open(run, exclusive=True) as folder:
        folder.ask_again(asked)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_shipped_knows_the_machine_it_was_made_on(name: str) -> None:
    """No path of that machine, in no row and in no file."""
    with sqlite3.connect(f"file:{RECORDED / name / 'run.db'}?mode=ro&immutable=1", uri=True) as table:
        texts = [text for row in table.execute("SELECT request, answer FROM answers") for text in row]
        (asked,) = table.execute("SELECT value FROM meta WHERE key = 'asked'").fetchone()
    files = [
        path for path in (RECORDED / name).rglob("*") if path.suffix in {".cpp", ".json", ".md", ".html"}
    ]
    texts += [path.read_text() for path in files]
    for text in texts:
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users)/", text)
    assert not Path(json.loads(asked)["problem"]).is_absolute()
    assert not list((RECORDED / name).glob("run.db-*"))
