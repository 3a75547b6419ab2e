"""Every planted bug is found where it is, and nothing is found in the sound twins."""

from __future__ import annotations

import planted_kit
import pytest

_ALL = list(planted_kit.all_planted())


def test_there_are_enough_of_them() -> None:
    assert sum(bool(planted.expected) for planted in _ALL) >= 40


@pytest.mark.parametrize("planted", _ALL, ids=str)
def test_blames_the_line_and_only_it(planted: planted_kit.Planted) -> None:
    found = planted_kit.find(planted, order_seed=7)
    assert planted_kit.is_right(planted, found), found
    if found is not None:
        assert found.fix.endswith(".") and found.what
