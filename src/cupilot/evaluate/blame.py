"""Puts a wrong output into words: what is wrong, where, how it looks, and what that usually means.

Looks at values only; the verdict itself is `compare`'s.
"""

from __future__ import annotations

import numpy as np

from cupilot.evaluate.compare import Comparison, as_numbers, wrong_places
from cupilot.evaluate.reference import Array, OutputReference
from cupilot.evaluate.suite import Case
from cupilot.types import DType

_HALF, _BF16 = 2.0**-11, 2.0**-8


def sentence(case: Case, worst: Comparison, raw: Array, dtype: DType, expected: OutputReference) -> str:
    """The reason shown to people, with the worst element and a hint."""
    wrong = wrong_places(raw, dtype, expected)
    at = f"{expected.name}[{', '.join(map(str, worst.index))}]" if worst.index else expected.name
    count = int(wrong.sum())
    share = "the only element" if wrong.size == 1 else f"{count} of {wrong.size} elements wrong"
    allowed = f" (error allowed {worst.allowed:.3g})" if expected.allowed is not None else ""
    what = f"{at} is {worst.got:.9g}, expected {worst.expected:.9g}{allowed}"
    hint = pattern(wrong, as_numbers(raw, dtype), expected)
    return f"{what}; {share}; the input exposes {case.exposes}" + (f". {hint}" if hint else "")


def pattern(wrong: Array, got: Array, expected: OutputReference) -> str:
    """What the wrong elements have in common, or an empty string."""
    return (
        _not_finite(wrong, got, expected)
        or _tail(wrong)
        or _factor(wrong, got, expected)
        or _rounding(got, expected)
    )


def _not_finite(wrong: Array, got: Array, expected: OutputReference) -> str:
    if expected.allowed is None:
        return ""
    bad = wrong & ~np.isfinite(got) & np.isfinite(expected.value)
    if bad.any():
        return "NaN or infinity: an overflow? Subtract the maximum before exp, and check divisions by zero"
    if (wrong & ~np.isfinite(expected.value)).any():
        return "NaN and infinity in the input must reach the result as in PyTorch (fmax drops NaN)"
    return ""


def _tail(wrong: Array) -> str:
    """Only beyond some index of one dimension: a tail that does not fill a block."""
    places = np.nonzero(np.atleast_1d(wrong))
    for dim in reversed(range(wrong.ndim)):
        extent, first = wrong.shape[dim], int(places[dim].min())
        last = int(places[dim].max())
        if extent > 4 and first >= extent - max(1, extent // 4):
            where = f"only index {first}" if first == last else f"only indices {first} and beyond"
            return f"Wrong in dimension {dim} at {where} of {extent}: is the tail handled?"
        if extent > 4 and last == 0:
            return f"Wrong in dimension {dim} only at index 0: is the border handled?"
    return ""


def _factor(wrong: Array, got: Array, expected: OutputReference) -> str:
    """Every wrong element off by the same factor."""
    if expected.allowed is None:
        return ""
    kept = wrong & np.isfinite(got) & np.isfinite(expected.value) & (expected.value != 0)
    if int(kept.sum()) < 4 or not bool(np.all(wrong == kept)):
        return ""
    if not got[wrong].any():
        return "Every wrong element is zero: is it written, and is its part of the sum reached?"
    ratios = got[kept].astype(np.float64) / expected.value[kept]
    middle = float(np.median(ratios))
    if abs(middle - 1) > 1e-3 and float(np.ptp(ratios)) < 1e-3 * max(abs(middle), 1e-9):
        return f"Every wrong element is {middle:.6g} times what is expected"
    return ""


def _rounding(got: Array, expected: OutputReference) -> str:
    """Errors of the size of a half-precision rounding of the largest values, everywhere."""
    if expected.allowed is None:
        return ""
    finite = np.isfinite(got) & np.isfinite(expected.value)
    if int(finite.sum()) < 4:
        return ""
    value = expected.value[finite]
    scale = float(np.sqrt(np.mean(value**2)))
    error = float(np.sqrt(np.mean((got[finite] - value) ** 2))) / scale if scale else 0.0
    if _HALF / 64 < error < _HALF * 2:
        return "The error has the size of half or tf32 rounding: the precision may not drop below f32"
    if _HALF * 2 <= error < _BF16 * 2:
        return "The error has the size of bf16 rounding: the precision may not drop below f32"
    return ""
