"""Packed half and bfloat arithmetic on 65,536 pairs against numpy, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sweep_kit
from sweep_kit import COUNT

from cupilot.device.base import Array

VALUE = {"f16": sweep_kit.f16_value, "bf16": sweep_kit.bf16_value}
NARROW = {"f16": sweep_kit.f16, "bf16": sweep_kit.bf16}


def _smaller(a: Array, b: Array) -> Array:
    return np.where(
        np.isnan(a), b, np.where(np.isnan(b), a, np.where((a < b) | ((a == b) & np.signbit(a)), a, b))
    )


def _larger(a: Array, b: Array) -> Array:
    return -_smaller(-a, -b)


def _strict(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, f(a, b))


def _saturated(v: Array) -> Array:
    return np.where(np.isnan(v), 0.0, np.clip(v, 0, 1))


OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add.rn": np.add,
    "sub.rn": np.subtract,
    "mul.rn": np.multiply,
    "min": _smaller,
    "max": _larger,
    "min.NaN": _strict(_smaller),
    "max.NaN": _strict(_larger),
}


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_both_halves_of_a_register(kind: str) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 2**32, COUNT, dtype=np.uint64) for _ in range(2))
    b[: COUNT // 2] = a[: COUNT // 2] + np.uint64(0x00010001)  # of like size: sums that cancel
    texts = [(f"{name}.{kind}x2 %0, %1, %2;", "r") for name in OPERATIONS]
    texts += [("add.rn.sat.f16x2 %0, %1, %2;", "r")] if kind == "f16" else []
    texts += [(f"neg.{kind}x2 %0, %1;", "r"), (f"abs.{kind}x2 %0, %1;", "r")]
    found = sweep_kit.sweep(texts, a, b, letter="r")
    for shift in (0, 16):
        x, y = (VALUE[kind](v >> np.uint64(shift) & np.uint64(0xFFFF)) for v in (a, b))
        with np.errstate(all="ignore"):
            wanted = [NARROW[kind](operation(x, y)) for operation in OPERATIONS.values()]
            wanted += [_saturated(NARROW[kind](x + y))] if kind == "f16" else []
        wanted += [-x, np.abs(x)]
        for (text, _), got, want in zip(texts, found, wanted, strict=True):
            half = VALUE[kind](got >> np.uint64(shift) & np.uint64(0xFFFF))
            if ".sat" in text:
                assert np.array_equal(half, want), text
            else:
                assert sweep_kit.same(half, want), (text, shift)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_fused_where_the_sum_is_exact(kind: str) -> None:
    """Operands of like size, so that doubles hold product and sum exactly."""
    rng = np.random.default_rng(2)
    one, spread = (0x3C00, 0x0800) if kind == "f16" else (0x3F80, 0x0200)
    a, b, c = (rng.integers(one - spread, one + spread, COUNT, dtype=np.uint64) for _ in range(3))
    b |= rng.integers(0, 2, COUNT, dtype=np.uint64) << np.uint64(15)
    texts = [(f"fma.rn.{kind} %0, %1, %2, %3;", "h"), (f"fma.rn.relu.{kind} %0, %1, %2, %3;", "h")]
    plain, relu = sweep_kit.sweep(texts, a, b, c)
    (packed,) = sweep_kit.sweep(
        [(f"fma.rn.{kind}x2 %0, %1, %2, %3;", "r")], *(v | v << np.uint64(16) for v in (a, b, c)), letter="r"
    )
    wanted = NARROW[kind](VALUE[kind](a) * VALUE[kind](b) + VALUE[kind](c))
    assert np.array_equal(VALUE[kind](packed >> np.uint64(16)), wanted)
    assert np.array_equal(VALUE[kind](packed & np.uint64(0xFFFF)), wanted)
    assert np.array_equal(VALUE[kind](plain), wanted)
    assert np.array_equal(VALUE[kind](relu), np.maximum(wanted, 0))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_comparisons_of_pairs(kind: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2**32, COUNT, dtype=np.uint64) for _ in range(2))
    b[::3] = a[::3]
    tests = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
             "ge": np.greater_equal}  # fmt: skip
    form = (
        ".reg .pred p, q; .reg .b32 t; setp.{}.{}x2 p|q, %1, %2; "
        "selp.u32 t, 1, 0, p; selp.u32 %0, 2, 0, q; or.b32 %0, %0, t;"
    )
    names = [*tests, *(f"{name}u" for name in tests), "num", "nan"]
    found = sweep_kit.sweep([(form.format(name, kind), "r") for name in names], a, b, letter="r")
    halves = [[VALUE[kind](v >> np.uint64(s) & np.uint64(0xFFFF)) for v in (a, b)] for s in (0, 16)]
    for name, got in zip(names, found, strict=True):
        for place, (x, y) in enumerate(halves):
            unordered = np.isnan(x) | np.isnan(y)
            if name in ("num", "nan"):
                wanted = unordered == (name == "nan")
            else:
                with np.errstate(all="ignore"):
                    wanted = tests[name[:2]](x, y)
                wanted = wanted | unordered if name.endswith("u") else wanted & ~unordered
            assert np.array_equal(got >> np.uint64(place) & np.uint64(1) == 1, wanted), name
