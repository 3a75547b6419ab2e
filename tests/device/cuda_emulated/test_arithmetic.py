"""Arithmetic in bulk: flushing, division and roots in every mode, approximations, products, carries."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sweep_kit
from sweep_kit import COUNT

from cupilot.device.base import Array

RNG = np.random.default_rng(12)
MODES = ("rn", "rz", "rm", "rp")
_LARGEST = float(np.finfo(np.float32).max)


def _f32(values: Array, mode: str = "rn") -> Array:
    return sweep_kit.rounded(values, 24, -126, _LARGEST, mode)


def _flushed(values: Array) -> Array:
    return np.where(np.abs(values) < 2.0**-126, np.copysign(0.0, values), values)


def _floats(seed: int, low: int = 0, high: int = 2**32) -> Array:
    return np.random.default_rng(seed).integers(low, high, COUNT, dtype=np.uint64)


def test_single_precision_that_flushes() -> None:
    a, b = _floats(1), _floats(2)
    a[::2] = _floats(3, 0, 0x01000000)[::2]  # around the smallest normal number
    b[::3] = _floats(4, 0x3F000000, 0x40000000)[::3]
    x, y = (_flushed(sweep_kit.f32_value(v)) for v in (a, b))
    with np.errstate(all="ignore"):
        wanted = {"add.ftz": x + y, "sub.ftz": x - y, "mul.ftz": x * y, "div.rn.ftz": x / y}
    found = sweep_kit.sweep([(f"{name}.f32 %0, %1, %2;", "r") for name in wanted], a, b, letter="r")
    for (name, exact), got in zip(wanted.items(), found, strict=True):
        with np.errstate(all="ignore"):
            assert sweep_kit.same(sweep_kit.f32_value(got), _flushed(_f32(exact))), name


def test_fused_single_precision_that_flushes() -> None:
    """Where doubles hold product and sum exactly: factors of 12 bits, sums around the smallest number."""
    a = _floats(21, 0x3F80, 0x4000) << np.uint64(16)
    b = _floats(22, 0x0000, 0x0180) << np.uint64(16)
    c = _floats(23, 0x8000, 0x8180) << np.uint64(16)
    (got,) = sweep_kit.sweep([("fma.rn.ftz.f32 %0, %1, %2, %3;", "r")], a, b, c, letter="r")
    x, y, z = (_flushed(sweep_kit.f32_value(v)) for v in (a, b, c))
    assert sweep_kit.same(sweep_kit.f32_value(got), _flushed(_f32(x * y + z)))


def test_coarse_double_precision() -> None:
    bits = np.random.default_rng(24).integers(0x3E00 << 48, 0x4200 << 48, COUNT, dtype=np.uint64)
    v = bits.view(np.float64)
    texts = [("rcp.approx.ftz.f64 %0, %1;", "l"), ("rsqrt.approx.ftz.f64 %0, %1;", "l"),
             ("rsqrt.approx.f64 %0, %1;", "l")]  # fmt: skip
    found = sweep_kit.sweep(texts, bits, letter="l")
    for exact, bound, got in zip(
        (1 / v, v**-0.5, v**-0.5), (2.0**-19, 2.0**-19, 2.0**-50), found, strict=True
    ):
        assert np.all(np.abs(got.view(np.float64) - exact) <= bound * exact)


def test_division_and_roots_in_every_mode() -> None:
    a, b = _floats(5, 0x20000000, 0x60000000), _floats(6, 0x20000000, 0x60000000)
    x, y = sweep_kit.f32_value(a), sweep_kit.f32_value(b)
    wanted = {"div": x / y, "rcp": 1 / y, "sqrt": np.sqrt(y)}
    cases = [(name, mode) for name in wanted for mode in MODES]
    texts = [(f"{n}.{m}.f32 %0, {'%1, ' if n == 'div' else ''}%2;", "r") for n, m in cases]
    found = sweep_kit.sweep(texts, a, b, letter="r")
    for (name, mode), got in zip(cases, found, strict=True):
        assert sweep_kit.same(sweep_kit.f32_value(got), _f32(wanted[name], mode)), (name, mode)


@pytest.mark.parametrize("mode", MODES)
def test_double_precision_division_and_roots_bracket_the_truth(mode: str) -> None:
    a, b = (
        np.random.default_rng(k).integers(0x3F00 << 48, 0x4100 << 48, COUNT, dtype=np.uint64) for k in (7, 8)
    )
    x, y = a.view(np.float64), b.view(np.float64)
    texts = [
        (f"div.{mode}.f64 %0, %1, %2;", "l"),
        (f"rcp.{mode}.f64 %0, %2;", "l"),
        (f"sqrt.{mode}.f64 %0, %2;", "l"),
    ]
    quotient, inverse, root = (v.view(np.float64) for v in sweep_kit.sweep(texts, a, b, letter="l"))
    for k in range(0, COUNT, 173):
        p, q = Fraction(float(x[k])), Fraction(float(y[k]))
        assert _is_rounded(float(quotient[k]), lambda v, p=p, q=q: v * q - p, mode)
        assert _is_rounded(float(inverse[k]), lambda v, q=q: v * q - 1, mode)
        assert _is_rounded(float(root[k]), lambda v, q=q: v * v - q, mode)


def _is_rounded(found: float, excess: Any, mode: str) -> bool:
    """`excess` grows with its argument and is zero at the exact result, which is positive."""
    below, above = Fraction(np.nextafter(found, 0.0)), Fraction(np.nextafter(found, np.inf))
    here = Fraction(found)
    if mode == "rn":
        return excess((below + here) / 2) <= 0 <= excess((here + above) / 2)
    if mode == "rp":
        return excess(below) < 0 <= excess(here)
    return excess(here) <= 0 < excess(above)


def test_approximate_division_stays_within_two_units() -> None:
    a, b = _floats(9, 0x30000000, 0x50000000), _floats(10, 0x30000000, 0x50000000)
    exact = sweep_kit.f32_value(a) / sweep_kit.f32_value(b)
    texts = [("div.approx.f32 %0, %1, %2;", "r"), ("div.full.f32 %0, %1, %2;", "r"),
             ("div.approx.ftz.f32 %0, %1, %2;", "r")]  # fmt: skip
    for (text, _), got in zip(texts, sweep_kit.sweep(texts, a, b, letter="r"), strict=True):
        error = np.abs(sweep_kit.f32_value(got) - exact) / np.spacing(exact.astype(np.float32))
        assert 0 < error.max() <= 2, text


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_approximate_functions_of_halves(kind: str) -> None:
    value, narrow = {
        "f16": (sweep_kit.f16_value, sweep_kit.f16), "bf16": (sweep_kit.bf16_value, sweep_kit.bf16)
    }[kind]  # fmt: skip
    bits = np.arange(COUNT, dtype=np.uint64)
    both = bits | bits << np.uint64(16)
    flush = ".ftz" if kind == "bf16" else ""
    texts = [(f"ex2.approx{flush}.{kind}x2 %0, %1;", "r"), (f"tanh.approx.{kind}x2 %0, %1;", "r")]
    single = [(f"ex2.approx{flush}.{kind} %0, %1;", "h"), (f"tanh.approx.{kind} %0, %1;", "h")]
    packed = sweep_kit.sweep(texts, both, letter="r")
    alone = sweep_kit.sweep(single, bits)
    v = value(bits)
    with np.errstate(all="ignore"):
        for wanted, two, one in zip((np.exp2(v), np.tanh(v)), packed, alone, strict=True):
            exact = narrow(wanted)
            for half in (one, two & np.uint64(0xFFFF), two >> np.uint64(16)):
                got = value(half)
                assert np.array_equal(np.isnan(got), np.isnan(exact))
                unit = 2.0 ** (-9 if kind == "f16" else -6)
                close = np.abs(got - exact) <= unit * np.abs(exact) + 2.0**-24
                assert np.all(close | np.isnan(exact) | (got == exact))


def test_narrow_products_and_sums_of_products() -> None:
    a, b = _floats(13), _floats(14)
    low = {True: lambda v: (v.astype(np.int64) << 40) >> 40, False: lambda v: v.astype(np.int64) & 0xFFFFFF}
    wanted: dict[str, Array] = {}
    for sign in (True, False):
        product = low[sign](a) * low[sign](b)
        t = "s32" if sign else "u32"
        wanted[f"mul24.lo.{t} %0, %1, %2;"] = product
        wanted[f"mul24.hi.{t} %0, %1, %2;"] = product >> 16
        wanted[f"mad24.lo.{t} %0, %1, %2, %1;"] = product + a.astype(np.int64)
    for left in "us":
        for right in "us":
            bytes_ = [
                [
                    (v >> np.uint64(8 * k)).astype(np.int8 if s == "s" else np.uint8).astype(np.int64)
                    for k in range(4)
                ]
                for v, s in ((a, left), (b, right))
            ]
            total = sum(x * y for x, y in zip(*bytes_, strict=True))
            wanted[f"dp4a.{left}32.{right}32 %0, %1, %2, %1;"] = total + a.astype(np.int64)
    found = sweep_kit.sweep([(text, "r") for text in wanted], a, b, letter="r")
    for (text, exact), got in zip(wanted.items(), found, strict=True):
        assert np.array_equal(got, exact.view(np.uint64) & np.uint64(0xFFFFFFFF)), text


def test_wide_carries() -> None:
    a, b = (np.random.default_rng(k).integers(0, 2**64, COUNT, dtype=np.uint64) for k in (15, 16))
    texts = [
        (".reg .b64 t; add.cc.u64 t, %1, %2; addc.u64 %0, 0, 0;", "l"),
        (".reg .b64 t; sub.cc.u64 t, %1, %2; subc.u64 %0, 0, 0;", "l"),
        (".reg .b64 t; mad.lo.cc.u64 t, %1, %2, %1; madc.hi.u64 %0, %1, %2, 0;", "l"),
        (".reg .b64 t; add.cc.u64 t, %1, %2; madc.lo.u64 %0, %1, 3, 5;", "l"),
    ]
    found = [v.tolist() for v in sweep_kit.sweep(texts, a, b, letter="l")]
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        wanted = ((x + y) >> 64, -(x < y) % 2**64, (x * y + x) >> 64, (3 * x + 5 + ((x + y) >> 64)) % 2**64)
        assert tuple(column[k] for column in found) == wanted, (x, y)


def test_sixteen_bit_shifts_and_moves() -> None:
    a, b = np.arange(COUNT, dtype=np.uint64), _floats(17, 0, 40)
    texts = [
        (".reg .b32 n; cvt.u32.u16 n, %2; shl.b16 %0, %1, n;", "h"),
        (".reg .b32 n; cvt.u32.u16 n, %2; shr.u16 %0, %1, n;", "h"),
        (".reg .b32 n; cvt.u32.u16 n, %2; shr.s16 %0, %1, n;", "h"),
        (".reg .b16 t; mov.b16 t, %1; mov.b32 %0, {t, %2};", "r"),
        (
            ".reg .b16 p, q, r, s; .reg .b64 t; mov.b64 t, {%1, %2, %2, %1}; mov.b64 {p, q, r, s}, t; "
            "mov.b32 %0, {r, s};",
            "r",
        ),
    ]
    left, logical, arithmetic, pair, four = sweep_kit.sweep(texts, a, b)
    shift = np.minimum(b, np.uint64(16))
    mask = np.uint64(0xFFFF)
    assert np.array_equal(left, a << shift & mask)
    assert np.array_equal(logical, a >> shift)
    signed = a.astype(np.uint16).view(np.int16).astype(np.int64) >> np.minimum(b, np.uint64(15)).astype(
        np.int64
    )
    assert np.array_equal(arithmetic, signed.view(np.uint64) & mask)
    assert np.array_equal(pair, b << np.uint64(16) | a)
    assert np.array_equal(four, a << np.uint64(16) | b)
