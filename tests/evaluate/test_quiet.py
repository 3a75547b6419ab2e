"""The gate, and a real sentinel with records planted for it. No time is asserted."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cupilot.evaluate.quiet import STRICT, Gate, Pressure, Sentinel, memory_available_bytes, one_core

QUIET = {"slowdown": 1.0, "pressure": 0.0, "stall": 1.0}


@pytest.mark.parametrize(
    ("disturbed", "words"),
    [
        ({"slowdown": 1.7}, "70% slower"),
        ({"pressure": 0.5}, "waited for a CPU 50%"),
        ({"stall": 1.3}, "shared"),
    ],
)
def test_each_gate_closes_alone_and_says_why(disturbed: dict[str, float], words: str) -> None:
    assert STRICT.disturbance(**QUIET) is None
    said = STRICT.disturbance(**{**QUIET, **disturbed})
    assert said is not None and words in said
    assert Gate(2.0, 1.0, 2.0).disturbance(**{**QUIET, **disturbed}) is None


@pytest.fixture
def sentinel(tmp_path: Path) -> Iterator[Sentinel]:
    found = Sentinel()
    found._record = tmp_path / "record.json"
    yield found
    found.close()


def record(sentinel: Sentinel) -> float:
    return float(json.loads(sentinel._record.read_text())["best_s"])


def test_the_first_reading_on_a_machine_becomes_its_record(sentinel: Sentinel) -> None:
    assert sentinel.glance() > 0
    assert record(sentinel) > 0


def test_against_a_faster_record_memory_is_slow(sentinel: Sentinel) -> None:
    sentinel._record.write_text(json.dumps({"best_s": 1e-9}))
    sentinel.turn()
    assert sentinel.slowdown() > 100 and sentinel.glance() > 100
    assert record(sentinel) == 1e-9, "a slow reading replaces no record"


def test_only_a_series_of_turns_sets_a_record_never_a_glance(sentinel: Sentinel) -> None:
    sentinel._record.write_text(json.dumps({"best_s": 1e9}))
    sentinel.turn()
    sentinel.glance()
    assert record(sentinel) == 1e9
    assert sentinel.slowdown() == 1.0
    assert record(sentinel) < 1e9


def test_a_damaged_record_is_learned_again(sentinel: Sentinel) -> None:
    sentinel._record.write_text("{")
    assert sentinel.glance() > 0
    assert record(sentinel) > 0


def test_the_core_is_given_back() -> None:
    allowed = os.sched_getaffinity(0)
    with one_core() as core:
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == allowed


def test_memory_and_pressure_can_be_read() -> None:
    assert memory_available_bytes() > 0
    assert Pressure().share() >= 0
