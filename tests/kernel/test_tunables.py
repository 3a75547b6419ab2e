"""Tunables and the space of their valid combinations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupilot.errors import KernelSyntaxError
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.tunables import count_points, first_point, is_valid, neighbours, points


def file_of(tune: list[str], where: list[str] = []) -> KernelFile:  # noqa: B006
    sections = {"tune": tune, "where": where, "launch": ["k[1](x)"]}
    header = "".join(
        f"{name}:\n" + "".join(f"    {line}\n" for line in lines) for name, lines in sections.items()
    )
    return parse_kernel(f"/* cupilot 1\n{header}*/\nvoid k() {{}}\n")


def test_points_come_in_the_order_written():
    file = file_of(["A = 2 | 1", "B = 8 | 4"])
    assert list(points(file, 10)) == [
        {"A": 2, "B": 8}, {"A": 2, "B": 4}, {"A": 1, "B": 8}, {"A": 1, "B": 4},
    ]  # fmt: skip
    assert first_point(file) == {"A": 2, "B": 8}
    assert list(points(file, 1)) == [{"A": 2, "B": 8}]


def test_conditions_choose_the_first_point():
    file = file_of(["A = 1 | 2", "B = 8 | 4"], ["A * B == 8", "B < 8"])
    assert first_point(file) == {"A": 2, "B": 4}
    assert count_points(file, 10) == 1


def test_without_tunables_there_is_one_empty_point():
    file = file_of([], ["1 < 2"])
    assert list(points(file, 5)) == [{}]
    assert is_valid(file, {})
    assert neighbours(file, {}) == []


def test_valid_points_have_every_tunable_a_listed_value_and_satisfy_the_conditions():
    file = file_of(["A = 1 | 2", "B = 4 | 8"], ["A * B < 16"])
    assert is_valid(file, {"A": 2, "B": 4})
    assert not is_valid(file, {"A": 2, "B": 8})
    assert not is_valid(file, {"A": 3, "B": 4})
    assert not is_valid(file, {"A": 2})
    assert not is_valid(file, {"A": 2, "B": 4, "C": 1})


def test_neighbours_are_one_step_away():
    file = file_of(["A = 1 | 2 | 4", "B = 1 | 2"], ["A * B != 2"])
    assert neighbours(file, {"A": 2, "B": 2}) == [{"A": 4, "B": 2}]
    assert neighbours(file, {"A": 4, "B": 1}) == [{"A": 4, "B": 2}]


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=1, max_size=4),
    bound=st.integers(0, 20),
)
def test_the_pruned_walk_equals_the_plain_one(values, bound):
    names = [f"T{index}" for index in range(len(values))]
    tune = [f"{name} = {' | '.join(map(str, each))}" for name, each in zip(names, values, strict=True)]
    conditions = [f"{names[0]} + {names[-1]} <= {bound}", f"{names[0]} % 2 == 0 or {names[-1]} > 3"]
    expected = [
        dict(zip(names, point, strict=True))
        for point in product(*values)
        if point[0] + point[-1] <= bound and (point[0] % 2 == 0 or point[-1] > 3)
    ]
    if not expected:
        with pytest.raises(KernelSyntaxError, match="no combination"):
            file_of(tune, conditions)
        return
    file = file_of(tune, conditions)
    assert list(points(file, 1000)) == expected
    assert all(is_valid(file, point) for point in expected)
    for point in expected:
        for other in neighbours(file, point):
            assert other in expected
            assert sum(point[name] != other[name] for name in names) == 1


SIXTEEN = [f"T{index} = {' | '.join(map(str, range(64)))}" for index in range(16)]  # 64**16 points


def test_a_vast_space_is_not_enumerated():
    file = file_of(SIXTEEN)
    assert count_points(file, 100) == 100
    assert file_of(SIXTEEN, ["T0 + T1 == 126"]).tune  # pruned after two names
    with pytest.raises(KernelSyntaxError, match="reasonable time"):
        file_of(SIXTEEN, [" + ".join(f"T{index}" for index in range(16)) + " == 1008"])


def test_a_search_that_found_something_ends_quietly():
    file = file_of(SIXTEEN, [" + ".join(f"T{index}" for index in range(16)) + " < 1"])
    assert list(points(file, 2)) == [{f"T{index}": 0 for index in range(16)}]


ERRORS = {
    ("threads = 1",): "not a tunable",
    ("_T = 1",): "not a tunable",
    ("T = ",): "not a tunable",
    ("T = 1 |",): "not a tunable",
    ("T = 1 2",): "not a tunable",
    ("T = -1",): "not a tunable",
    ("T = 1..8",): "not a tunable",
    ("T = 1.5",): "not a tunable",
    ("T = 0x10",): "not a tunable",
    ("É = 1",): "not a tunable",
    ("T = ٣",): "not a tunable",
    ("T = 1 | 2 | 1",): "twice",
    ("T = 1", "T = 2"): "twice",
    ("T = 2147483648",): "too large",
    ("T = " + "9" * 10_000,): "too large",
    ("T = " + " | ".join(map(str, range(65))),): "too many values",
    tuple(f"T{index} = 1" for index in range(17)): "too many tunables",
}


@pytest.mark.parametrize("tune", ERRORS, ids=range(len(ERRORS)))
def test_tune_errors(tune):
    with pytest.raises(KernelSyntaxError, match=ERRORS[tune]) as caught:
        file_of(list(tune))
    assert caught.value.line == 2 + len(tune)
    assert caught.value.column == 5
    assert caught.value.hint


WHERE_ERRORS = {
    "THREAD > 1": (5, "did you mean 'THREADS'"),
    "THREADS > 1 and x.shape[0] > 1": (21, "tunables are THREADS"),
    "THREADS = 1": (5, "for example"),
    "cdiv(THREADS, 0) > 1": (5, "guard"),
    "THREADS > 128": (5, "relax"),
    "(THREADS, 1)": (5, "take one entry"),
    "k[1](THREADS)": (5, "line of its own"),
    "THREADS ** 99 > 1": (5, "integers reach"),
}


@pytest.mark.parametrize("condition", WHERE_ERRORS)
def test_where_errors(condition):
    column, hint = WHERE_ERRORS[condition]
    with pytest.raises(KernelSyntaxError) as caught:
        file_of(["THREADS = 64 | 128"], [condition])
    assert (caught.value.line, caught.value.column) == (5, column)
    assert hint in caught.value.hint
