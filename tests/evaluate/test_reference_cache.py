"""The cache of references: whole, private, within its size, and unimpressed by damaged files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import torch

from cupilot.evaluate.reference import build_reference
from cupilot.evaluate.reference_cache import Entry, ReferenceCache, pack_reference, unpack_reference
from cupilot.evaluate.rounding import Rounding


def entry(size: int = 8) -> Entry:
    return Entry({"a": 1}, {"x": np.arange(size, dtype=np.float32), "none": np.zeros((0, 3))})


def files(folder: Path) -> list[Path]:
    return sorted((folder / "references").glob("*.ref"))


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    cache = ReferenceCache(tmp_path)
    assert cache.get("k") is None
    cache.put("k", entry())
    found = ReferenceCache(tmp_path).get("k")
    assert found is not None
    assert found.meta == {"a": 1}
    assert np.array_equal(found.arrays["x"], np.arange(8))
    assert found.arrays["none"].shape == (0, 3)


def test_a_damaged_or_cut_file_counts_as_absent_and_goes(tmp_path: Path) -> None:
    cache = ReferenceCache(tmp_path)
    cache.put("k", entry())
    (path,) = files(tmp_path)
    good = path.read_bytes()
    for bad in (
        good[:-40],
        good[:-50] + b"\x55" + good[-49:],
        b"",
        good[:25],
        b"something else entirely, long enough to read",
    ):
        path.write_bytes(bad)
        assert cache.get("k") is None
        assert not path.exists()


def test_the_oldest_entries_make_room(tmp_path: Path) -> None:
    cache = ReferenceCache(tmp_path, cap_bytes=12_000)
    for place, key in enumerate("abc"):
        cache.put(key, entry(1000))
        os.utime(tmp_path / "references" / f"{key}.ref", (place, place))
    assert cache.get("b") is not None  # used now, so "c" is older
    cache.put("d", entry(1000))
    assert [path.stem for path in files(tmp_path)] == ["b", "d"]


def test_the_folder_and_its_seed_are_the_owners_alone(tmp_path: Path) -> None:
    first, second = ReferenceCache(tmp_path / "one"), ReferenceCache(tmp_path / "two")
    assert first.base_seed != second.base_seed
    assert ReferenceCache(tmp_path / "one").base_seed == first.base_seed
    folder = tmp_path / "one" / "references"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "seed").stat().st_mode) == 0o600


def test_a_reference_survives_the_disk(tmp_path: Path) -> None:
    x = torch.randn(5, 7)
    run = lambda t, d: tuple((t["x"].to(d) * 2).max(1))  # noqa: E731
    reference = build_reference(run, {"x": x}, ["out0", "out1"], Rounding())
    cache = ReferenceCache(tmp_path)
    cache.put("k", pack_reference(reference))
    kept = cache.get("k")
    assert kept is not None
    found = unpack_reference(kept)
    assert found.sketched == reference.sketched
    for mine, theirs in zip(reference.outputs, found.outputs, strict=True):
        assert np.array_equal(mine.value, theirs.value)
        assert mine.name == theirs.name
        assert (mine.allowed is None) == (theirs.allowed is None)
        assert mine.allowed is None or np.array_equal(mine.allowed, theirs.allowed)
    choice, kept_choice = reference.outputs[1].choice, found.outputs[1].choice
    assert choice is not None and kept_choice is not None
    assert (choice.dim, choice.shape, choice.distinct) == (
        kept_choice.dim,
        kept_choice.shape,
        kept_choice.distinct,
    )
    assert np.array_equal(choice.values, kept_choice.values)
