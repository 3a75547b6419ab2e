import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupilot.evaluate.standings import ratio, time_s

TIMES = st.floats(1e-6, 1.0)


def groups(*ratios: float) -> list[dict[str, float]]:
    return [{"kernel": 1e-3, "eager": 1e-3 * each} for each in ratios]


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=30))
def test_the_ratio_lies_in_its_interval_and_within_what_was_seen(times: list[tuple[float, float]]) -> None:
    found = ratio([{"a": a, "b": b} for a, b in times], "a", "b")
    seen = [a / b for a, b in times]
    assert found.low < found.ratio < found.high
    assert min(seen) * 0.9999 <= found.ratio <= max(seen) * 1.0001


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=9))
def test_the_other_way_round_is_the_inverse(ratios: list[float]) -> None:
    there, back = ratio(groups(*ratios), "eager", "kernel"), ratio(groups(*ratios), "kernel", "eager")
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low == pytest.approx(1 / back.high)


def test_groups_that_disagree_make_the_interval_wide() -> None:
    alike, apart = ratio(groups(2, 2, 2), "eager", "kernel"), ratio(groups(1.8, 2, 2.2), "eager", "kernel")
    assert apart.high / apart.low > 1.1 > alike.high / alike.low


def test_groups_that_agree_by_luck_do_not_make_it_narrow() -> None:
    found = ratio(groups(2, 2), "eager", "kernel")
    assert found.high / found.low > 1.02


def test_what_groups_share_no_number_of_groups_takes_away() -> None:
    """Evaluations one after the other differ by more than the groups of any of them."""
    rng, held = Random(2), 0
    for _ in range(1000):
        shared = rng.gauss(0, 0.008)
        found = ratio(
            groups(*(2 * math.exp(shared + rng.gauss(0, 0.003)) for _ in range(6))), "eager", "kernel"
        )
        held += found.low <= 2 <= found.high
    assert held >= 900


def test_more_groups_make_it_narrower() -> None:
    widths = [
        math.log(f.high / f.low) for f in (ratio(groups(*[2.0] * n), "eager", "kernel") for n in (2, 5, 20))
    ]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("spread", [0.005, 0.01, 0.02, 0.05])
def test_intervals_cover_the_truth_as_often_as_they_should(spread: float) -> None:
    """Five groups, as a full evaluation has them, with less and more spread than is known beforehand."""
    rng, held = Random(1), 0
    for _ in range(1000):
        found = ratio(groups(*(2 * math.exp(rng.gauss(0, spread)) for _ in range(5))), "eager", "kernel")
        held += found.low <= 2 <= found.high
    assert held >= 900


def test_a_time_is_the_middle_one() -> None:
    assert time_s([{"k": 1.0}, {"k": 9.0}, {"k": 2.0}], "k") == 2.0
