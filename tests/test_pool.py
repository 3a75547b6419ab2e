"""The pool: what is kept, what is found, and what a hold-out leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cupilot.errors import UsageError
from cupilot.kinship import KIN, Structure, similarity
from cupilot.ledger import Cell, Trial
from cupilot.pool import Lesson, Pool, Record, lesson_from_json, lesson_to_json, record_to_json
from cupilot.roofline import Zone
from cupilot.strategy.strategy import Strategy, TacticUse

SOFTMAX = Structure(("softmax",), ("reduction", "functions"), "rows", Zone.MEMORY, 1.5, 1 << 23, 16384)
CELL = Cell(Zone.MEMORY, "rows", "cpu")


def record(name: str, operators: tuple[str, ...] = ("softmax",), **changed: object) -> Record:
    found = Record(
        problem=name,
        fingerprint=f"print of {name}",
        structure=replace(SOFTMAX, operators=operators),
        device="cpu",
        strategy=Strategy((TacticUse.of("vectorize"), TacticUse.of("unroll"))),
        first_kernel="first",
        best_kernel=f"best of {name}",
        speedup=2.0,
        measurements={"verdict": "passed"},
    )
    return replace(found, **changed)  # type: ignore[arg-type]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    opened = Pool(tmp_path / "pool.db")
    yield opened
    opened.close()


def names(pool: Pool, hold_out: str | None = None) -> set[str]:
    return {m.record.problem for m in pool.similar(SOFTMAX, "cpu", 9, hold_out=hold_out)}


def test_a_record_is_kept_once_and_found_by_the_beginning_of_its_id(pool: Pool) -> None:
    assert pool.add(record("a")) and not pool.add(record("a"))
    assert len(pool) == 1 and pool.get(record("a").id[:5]) == record("a")
    with pytest.raises(UsageError, match="not in the pool"):
        pool.get("zzz")


def test_what_is_alike_comes_first(pool: Pool) -> None:
    pool.add(record("far", ("matmul", "add")))
    pool.add(record("near"))
    found = pool.similar(SOFTMAX, "cpu", 2)
    assert [m.record.problem for m in found] == ["near", "far"]
    assert found[0].similarity == pytest.approx(1.0) and found[1].similarity < 0.8


def test_a_hold_out_leaves_out_the_problem_and_all_that_descends_from_it(pool: Pool) -> None:
    pool.add(record("mine"))
    pool.add(record("child", lineage=("print of mine",)))
    pool.add(record("grandchild", lineage=("print of child", "print of mine")))
    pool.add(record("stranger"))
    assert names(pool) == {"mine", "child", "grandchild", "stranger"}
    assert names(pool, "print of mine") == {"stranger"}
    assert names(pool, "print of child") == {"mine", "child", "stranger"} - {"child"}


def lesson(name: str, *gains: float, **changed: object) -> Lesson:
    trials = tuple(Trial(CELL, {"vectorize": 1}, gain, sd=0.01) for gain in gains)
    return replace(Lesson(f"print of {name}", SOFTMAX, trials), **changed)  # type: ignore[arg-type]


def taught(pool: Pool, hold_out: str | None = None, device: str = "cpu") -> list[float | None]:
    return [t.log_ratio for found in pool.lessons(SOFTMAX, device, hold_out=hold_out) for t in found.trials]


def test_a_hold_out_leaves_out_what_was_tried_on_the_problem_and_after_it(pool: Pool) -> None:
    pool.learn("run 1", lesson("mine", 0.5, 0.5))
    pool.learn("run 2", lesson("child", 0.3, lineage=("print of mine",)))
    pool.learn("run 3", lesson("other", 0.1))
    assert taught(pool) == [0.5, 0.5, 0.3, 0.1]
    assert taught(pool, "print of mine") == [0.1]
    pool.learn("run 1", lesson("mine", 0.6))  # resumed: what it tried replaces what it had tried
    assert taught(pool) == [0.6, 0.3, 0.1]


def test_only_kin_on_the_same_device_teach_and_the_nearest_first(pool: Pool) -> None:
    stranger = replace(SOFTMAX, operators=("convolution2d",), work=("window-product",), family="")
    cousin = replace(SOFTMAX, operators=("log_softmax",))
    pool.learn("a", lesson("stranger", 0.1, structure=stranger))
    pool.learn("b", lesson("cousin", 0.2, structure=cousin))
    pool.learn("c", lesson("same", 0.3))
    assert similarity(stranger, SOFTMAX) < KIN <= similarity(cousin, SOFTMAX)
    assert taught(pool) == [0.3, 0.2]
    assert taught(pool, device="cuda") == []


def test_lessons_travel_as_json() -> None:
    whole = lesson("a", 0.5, lineage=("print of b",))
    assert lesson_from_json(json.loads(json.dumps(lesson_to_json(whole)))) == whole


def test_what_is_forgotten_is_not_found(pool: Pool) -> None:
    pool.add(record("a"))
    pool.forget(record("a").id)
    assert len(pool) == 0 and pool.matching_words("softmax") == []


def test_records_travel_as_lines(pool: Pool, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pool.add(record(name, lineage=("print of x",)))
    lines = list(pool.export())
    other = Pool(tmp_path / "other.db")
    assert other.load(lines) == (2, 0) and other.load(lines) == (0, 2)
    assert list(other) == list(pool)
    other.close()


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"format": 1}', '{"format": 99}'])
def test_one_unusable_line_and_nothing_is_added(pool: Pool, line: str) -> None:
    good = json.dumps(record_to_json(record("a")))
    with pytest.raises(UsageError, match="line 2"):
        pool.load([good, line])
    assert len(pool) == 0
