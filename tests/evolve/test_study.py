"""The runs behind the comparison of search policies with a model: readable, finished and proven."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cupilot.evolve.run import replay

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNS = sorted(db.parent.relative_to(BENCHMARKS).as_posix() for db in BENCHMARKS.glob("recorded/*/*/run.db"))


def test_there_is_a_run_of_every_arm() -> None:
    assert len(RUNS) == 5


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_the_study_replays_to_its_proof(name: str, tmp_path: Path) -> None:
    shutil.copytree(BENCHMARKS / "problems", tmp_path / "problems")
    shutil.copytree(BENCHMARKS / name, tmp_path / name)
    found = replay(tmp_path / name)
    proof = found.outcome.proof
    assert found.is_finished and len(found.outcome.records) == 7
    assert found.outcome.champion is not None and proof is not None
    assert proof.speedup["eager"].low > 1
