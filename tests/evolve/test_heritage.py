"""What a run takes over from kin: whole ideas, no two alike, and never a stranger's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import COOKBOOK

from cupilot.evolve.heritage import SEEDS, kin, seeds
from cupilot.kinship import Structure
from cupilot.pool import Pool, Record
from cupilot.roofline import Zone
from cupilot.strategy.strategy import Strategy, TacticUse

ROWS = Structure(("softmax",), ("reduction", "functions"), "rows", Zone.MEMORY, 1.5, 1 << 23, 16384)
OTHER = Structure(("mm",), ("product",), "product", Zone.COMPUTE, 100.0, 1 << 20, 512)


def strategy(*names: str, steps: tuple[str, ...] = ()) -> Strategy:
    return Strategy(tuple(TacticUse.of(name) for name in names), steps)


def offered(*inherited: Strategy, words: bool = False) -> list[frozenset[str]]:
    return [found.tactics for found in seeds(inherited, COOKBOOK, words=words)]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with closing(Pool(tmp_path / "pool.db")) as opened:
        for name, structure in (("kin", ROWS), ("stranger", OTHER)):
            opened.add(Record(name, name, structure, "cpu", strategy("vectorize"), "", name, 2.0, {}))
        yield opened


def test_a_stranger_is_not_taken_for_kin(pool: Pool) -> None:
    assert [m.record.problem for m in kin(pool, ROWS, "cpu").matches] == ["kin"]
    assert kin(pool, ROWS, "cpu", hold_out="kin").matches == ()
    nobody = replace(ROWS, operators=("sort",), work=("sort",), family="")
    assert kin(pool, nobody, "cpu").matches == ()


def test_a_strategy_that_loses_its_point_here_is_not_tried() -> None:
    assert offered(strategy("vectorize", "swizzle", "pipeline")) == []
    assert offered(strategy("vectorize", "unroll", "swizzle")) == [{"vectorize", "unroll"}]
    assert offered(strategy("swizzle"), Strategy()) == []


def test_steps_in_words_are_for_who_reads_them() -> None:
    worded = strategy("vectorize", "unroll", steps=("sort the rows first", "then merge"))
    assert offered(worded, words=True) and not offered(worded)


def test_of_variations_of_one_idea_the_first_is_tried() -> None:
    assert offered(strategy("vectorize", "unroll", "fuse"), strategy("vectorize", "unroll")) == [
        {"vectorize", "unroll", "fuse"}
    ]


def test_there_are_only_a_few() -> None:
    apart = [strategy(name) for name in ("vectorize", "unroll", "stream", "fuse")]
    assert len(offered(*apart, strategy("vectorize", "fuse"))) == SEEDS
