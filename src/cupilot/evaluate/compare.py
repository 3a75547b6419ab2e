"""Holds a candidate's raw output against the reference: the worst element, and where the wrong ones stand.

The only place where right and wrong are decided. Works in pieces that stay in cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupilot.evaluate.reference import Array, Choice, OutputReference
from cupilot.types import DType

_CHUNK = 1 << 15
_EITHER_SHARE = (
    1e-3  # how close one must come to single precision where the reference overflows and it does not
)


@dataclass(frozen=True)
class Comparison:
    """The worst element of one output; right if and only if `ratio` is at most one."""

    ratio: float
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float

    @property
    def is_right(self) -> bool:
        return self.ratio <= 1.0


def as_numbers(raw: Array, dtype: DType) -> Array:
    """Raw values as numpy can compute with them: bf16 travels as its bits."""
    if dtype is DType.BF16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw


def compare(raw: Array, dtype: DType, reference: OutputReference) -> Comparison:
    """The worst element. A shape that differs from the reference's is a fault of the caller."""
    if raw.shape != reference.value.shape:
        raise ValueError(f"output of shape {raw.shape} for a reference of shape {reference.value.shape}")
    got = np.ascontiguousarray(as_numbers(raw, dtype)).reshape(-1)
    expected = reference.value.reshape(-1)
    if got.size == 0:
        return Comparison(0.0, (), 0.0, 0.0, 0.0)
    worst, place = _worst(got, expected, reference)
    allowed = reference.allowed
    return Comparison(
        worst,
        tuple(int(i) for i in np.unravel_index(place, raw.shape)),
        float(got[place]),
        float(expected[place]),
        0.0 if allowed is None else float(allowed.reshape(-1)[place]),
    )


def wrong_places(raw: Array, dtype: DType, reference: OutputReference) -> Array:
    """A mask, shaped like the output, of the elements that are wrong."""
    got = np.ascontiguousarray(as_numbers(raw, dtype)).reshape(-1)
    ratios = _ratios(got, reference.value.reshape(-1), reference, slice(0, got.size))
    wrong: Array = ~(ratios <= 1.0)
    return wrong.reshape(raw.shape)


def _worst(got: Array, expected: Array, reference: OutputReference) -> tuple[float, int]:
    if reference.allowed is None:
        ratios = _ratios(got, expected, reference, slice(0, got.size))
        place = int(np.argmax(ratios))
        return float(ratios[place]), place
    allowed = reference.allowed.reshape(-1)
    error = np.empty(min(_CHUNK, got.size))
    worst, place = -1.0, 0
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, got.size, _CHUNK):
            part = slice(start, min(start + _CHUNK, got.size))
            ratio: Array = error[: part.stop - start]
            np.subtract(got[part], expected[part], out=ratio)
            np.abs(ratio, out=ratio)
            np.divide(ratio, allowed[part], out=ratio)
            if not math.isfinite(float(ratio.max())):
                ratio = _ratios(got, expected, reference, part)
            local = int(ratio.argmax())
            if ratio[local] > worst:
                worst, place = float(ratio[local]), start + local
    return worst, place


def _ratios(got: Array, expected: Array, reference: OutputReference, part: slice) -> Array:
    """Error over allowed error, all rules applied: never NaN, infinite where nothing excuses a difference."""
    if reference.allowed is None:
        return _discrete_ratios(got, expected, reference)
    g, y = got[part].astype(np.float64), expected[part]
    allowed = reference.allowed.reshape(-1)[part].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.abs(g - y) / allowed
        overflows = np.isinf(g) & (np.sign(g) == np.sign(y)) & (np.abs(y) + allowed >= reference.largest)
        ratio[(g == y) | (np.isnan(g) & np.isnan(y)) | overflows] = 0.0
        ratio[~np.isfinite(g) & np.isinf(allowed) & np.isfinite(y)] = np.inf
    ratio[np.isnan(ratio)] = np.inf
    inside = (reference.eager_places >= part.start) & (reference.eager_places < part.stop)
    if inside.any():
        places, eager = reference.eager_places[inside] - part.start, reference.eager_values[inside]
        same = (g[places] == eager) | (np.isnan(g[places]) & np.isnan(eager))
        with np.errstate(invalid="ignore"):
            same |= np.abs(g[places] - eager) <= _EITHER_SHARE * np.abs(eager)
        ratio[places[same]] = 0.0
    return ratio


def _discrete_ratios(got: Array, expected: Array, reference: OutputReference) -> Array:
    if reference.choice is not None:
        return _choice_ratios(got, expected, reference.choice)
    wrong = got != expected
    if reference.doubt is not None:
        wrong &= ~reference.doubt.reshape(-1)
    return np.where(wrong, np.inf, 0.0)


def _choice_ratios(got: Array, expected: Array, choice: Choice) -> Array:
    """Indices judged by the values they select, held against those the reference's indices select."""
    rows, n = choice.values.shape
    index = np.moveaxis(got.reshape(choice.shape), choice.dim, -1)
    order = index.shape
    picks = index.reshape(rows, -1).astype(np.int64)
    best = np.moveaxis(expected.reshape(choice.shape), choice.dim, -1).reshape(rows, -1).astype(np.int64)
    outside = (picks < 0) | (picks >= n)
    safe = np.where(outside, 0, picks)
    value, wanted = np.take_along_axis(choice.values, safe, 1), np.take_along_axis(choice.values, best, 1)
    allowed = np.zeros(1)
    if choice.allowed is not None:
        allowed = np.take_along_axis(choice.allowed, safe, 1) + np.take_along_axis(choice.allowed, best, 1)
    with np.errstate(invalid="ignore"):
        close = np.abs(value - wanted) <= allowed
    right = (value == wanted) | (np.isnan(value) & np.isnan(wanted)) | close
    wrong = outside | ~right
    if choice.distinct:
        wrong |= _repeated(picks)
    ratios: Any = np.moveaxis(np.where(wrong, np.inf, 0.0).reshape(order), -1, choice.dim)
    return np.ascontiguousarray(ratios).reshape(-1)


def _repeated(picks: Array) -> Array:
    """Every second and later appearance of an index in its row."""
    order = np.argsort(picks, axis=1, kind="stable")
    ranked = np.take_along_axis(picks, order, 1)
    again = np.zeros(picks.shape, dtype=bool)
    again[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    result = np.zeros(picks.shape, dtype=bool)
    np.put_along_axis(result, order, again, 1)
    return result
