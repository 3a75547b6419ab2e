"""A wrong output in words: what the wrong elements have in common."""

from __future__ import annotations

import numpy as np
import pytest

from cupilot.evaluate.blame import sentence
from cupilot.evaluate.compare import compare
from cupilot.evaluate.reference import OutputReference
from cupilot.evaluate.suite import Case
from cupilot.types import DType

RIGHT = np.random.default_rng(1).normal(size=(33, 40))


def blamed(got: np.ndarray, right: np.ndarray = RIGHT) -> str:
    none = np.zeros(0)
    expected = OutputReference("out", right, np.full(right.shape, 1e-6, np.float32), 3.4e38, none, none)
    raw = got.astype(np.float32)
    worst = compare(raw, DType.F32, expected)
    assert not worst.is_right
    return sentence(Case("odd", "normal", "plain mistakes", ""), worst, raw, DType.F32, expected)


def changed(place: tuple[object, ...], value: object) -> np.ndarray:
    got = RIGHT.copy()
    got[place] = value
    return got


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (changed((slice(None), slice(32, None)), 7.0), "dimension 1 at only indices 32 and beyond of 40"),
        (changed((slice(None), 39), 7.0), "at only index 39 of 40: is the tail handled"),
        (changed((0, slice(None)), 7.0), "dimension 0 only at index 0: is the border handled"),
        (changed((3, 3), np.nan), "an overflow"),
        (RIGHT * 1.5, "Every wrong element is 1.5 times what is expected"),
        (RIGHT * 0.0, "Every wrong element is zero: is it written"),
        (RIGHT.astype(np.float16), "half or tf32 rounding"),
    ],
)
def test_what_wrong_elements_have_in_common_is_said(got: np.ndarray, words: str) -> None:
    assert words in blamed(got)


def test_the_worst_element_comes_with_its_value_and_what_is_allowed() -> None:
    said = blamed(changed((5, 6), 100.0))
    assert said.startswith(f"out[5, 6] is 100, expected {RIGHT[5, 6]:.9g} (error allowed 1e-06); 1 of 1320")
    assert said.endswith("the input exposes plain mistakes")


def test_a_single_number_can_be_blamed_too() -> None:
    assert blamed(np.array(2.0), np.array(1.0)).startswith(
        "out is 2, expected 1 (error allowed 1e-06); the only"
    )
