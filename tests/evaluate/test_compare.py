"""The verdict on one output: tolerance, NaN and infinity, overflow, discrete values and indices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cupilot.evaluate.compare import compare, wrong_places
from cupilot.evaluate.reference import OutputReference, build_reference
from cupilot.evaluate.rounding import Rounding
from cupilot.types import DType

NONE = np.zeros(0)


def floats(value: object, allowed: object, **more: object) -> OutputReference:
    numbers = np.asarray(value, dtype=np.float64)
    bounds = np.broadcast_to(np.asarray(allowed, dtype=np.float32), numbers.shape).copy()
    fields = {"largest": 3.4e38, "eager_places": NONE, "eager_values": NONE, **more}
    return OutputReference("out", numbers, bounds, **fields)  # type: ignore[arg-type]


def single(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_the_worst_element_is_found_across_pieces() -> None:
    value = np.zeros((300, 700))
    got = value.astype(np.float32)
    got[299, 3] = 2e-3
    got[1, 1] = 1e-3
    result = compare(got, DType.F32, floats(value, 1e-3))
    assert result.index == (299, 3)
    assert result.ratio == pytest.approx(2.0)
    assert not result.is_right
    assert np.argwhere(wrong_places(got, DType.F32, floats(value, 1.001e-3))).tolist() == [[299, 3]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("allowed", [1e-3, np.inf])
def test_nothing_excuses_a_nan_or_an_infinity_the_reference_does_not_have(bad: float, allowed: float) -> None:
    assert compare(single(1.0, bad), DType.F32, floats([1.0, 1.0], allowed)).ratio == np.inf


def test_nan_and_infinity_stand_where_the_reference_has_them() -> None:
    reference = floats([np.nan, np.inf, -np.inf, 1.0], 1e-3)
    assert compare(single(np.nan, np.inf, -np.inf, 1.0), DType.F32, reference).is_right
    for wrong in (
        single(0, np.inf, -np.inf, 1),
        single(np.nan, -np.inf, -np.inf, 1),
        single(np.nan, 3e38, -np.inf, 1),
    ):
        assert compare(wrong, DType.F32, reference).ratio == np.inf


def test_where_single_precision_overflows_either_answer_is_right() -> None:
    reference = floats([5.0, 1.0], 1e-3, eager_places=np.array([0]), eager_values=np.array([np.nan]))
    assert compare(single(np.nan, 1), DType.F32, reference).is_right
    assert compare(single(5.0, 1), DType.F32, reference).is_right
    assert not compare(single(np.inf, 1), DType.F32, reference).is_right
    assert not compare(single(5.0, np.nan), DType.F32, reference).is_right


def test_values_beyond_the_storage_type_are_infinite() -> None:
    assert compare(single(np.inf), DType.F32, floats([1e39], 1.0)).is_right
    assert not compare(single(-np.inf), DType.F32, floats([1e39], 1.0)).is_right


def test_bf16_travels_as_bits() -> None:
    bits = (single(1.0, -2.5).view(np.uint32) >> 16).astype(np.uint16)
    assert compare(bits, DType.BF16, floats([1.0, -2.5], 1e-6)).is_right


def test_integers_are_exact() -> None:
    reference = OutputReference("out", np.array([1, 2, 3]), None, 0.0, NONE, NONE)
    assert compare(np.array([1, 2, 3]), DType.I64, reference).is_right
    result = compare(np.array([1, 2, 4]), DType.I64, reference)
    assert (result.index, result.got, result.expected) == ((2,), 4.0, 3.0)


def test_any_tie_of_an_argmax_is_right_and_nothing_else() -> None:
    x = torch.tensor([[1.0, 7.0, 7.0], [2.0, 0.0, 1.9999]])
    (reference,) = build_reference(
        lambda t, d: (t["x"].to(d).argmax(1),), {"x": x}, ["out"], Rounding()
    ).outputs
    for index, right in (
        ([1, 0], True),
        ([2, 0], True),
        ([0, 0], False),
        ([1, 2], False),
        ([1, 3], False),
        ([1, -1], False),
    ):
        assert compare(np.array(index), DType.I64, reference).is_right is right


def test_an_argmax_of_computed_values_allows_their_error() -> None:
    x = torch.tensor([[1.0, 1.0 + 2**-20, 0.5]])
    run = lambda t, d: ((t["x"].to(d) * 3.0).argmax(1),)  # noqa: E731
    (reference,) = build_reference(run, {"x": x}, ["out"], Rounding()).outputs
    assert compare(np.array([0]), DType.I64, reference).is_right
    assert not compare(np.array([2]), DType.I64, reference).is_right


def test_sorted_indices_select_the_sorted_values_once_each() -> None:
    x = torch.tensor([[3.0, 1.0, 1.0, 2.0]])
    (_, reference) = build_reference(
        lambda t, d: tuple(t["x"].to(d).sort(1)), {"x": x}, ["v", "i"], Rounding()
    ).outputs
    assert compare(np.array([[1, 2, 3, 0]]), DType.I64, reference).is_right
    assert compare(np.array([[2, 1, 3, 0]]), DType.I64, reference).is_right
    assert not compare(np.array([[1, 1, 3, 0]]), DType.I64, reference).is_right


def test_half_storage_rounds_once_more_but_not_twice_as_much() -> None:
    x = torch.randn(4000, generator=torch.Generator().manual_seed(3)).half()
    (reference,) = build_reference(
        lambda t, d: (t["x"].to(d).sin(),), {"x": x}, ["out"], Rounding("f16", "f32")
    ).outputs
    right = x.double().sin().half()
    assert compare(right.numpy(), DType.F16, reference).is_right
    assert not compare(right.bfloat16().half().numpy(), DType.F16, reference).is_right


def test_a_vague_reference_says_so() -> None:
    assert floats([1.0, 1.0], [0.5, 0.001]).vagueness() == 0.5
    assert floats([0.0, 0.0], 1e-44).vagueness() == 0.0
