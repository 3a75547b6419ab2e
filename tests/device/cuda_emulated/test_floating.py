"""Floating-point instructions and conversions against exact fractions, in every rounding mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import ptx_kit
import pytest
from ptx_kit import COUNT, Op
from rounding_kit import BF16, F16, F32, F64, Format, Number, decode, encode, float32, samples

MODES = ("rn", "rz", "rm", "rp")
KINDS: dict[str, tuple[Format, str]] = {
    "f32": (F32, "f32"), "f64": (F64, "f64"), "f16": (F16, "16"), "bf16": (BF16, "16"),
}  # fmt: skip


def _is_finite(value: Number) -> bool:
    return isinstance(value, Fraction) or math.isfinite(value)


def _add(a: Number, b: Number, mode: str) -> tuple[Number, bool]:
    """Exact sum, and the sign of a zero result."""
    if not (_is_finite(a) and _is_finite(b)):
        return float(a) + float(b) if not (_is_finite(a) or _is_finite(b)) else (
            a if not _is_finite(a) else b
        ), False
    total = Fraction(a) + Fraction(b)
    if _negative(a) == _negative(b):
        return total, _negative(a)
    return total, mode == "rm"


def _negative(value: Number) -> bool:
    return value < 0 if isinstance(value, Fraction) else math.copysign(1, value) < 0


def _multiply(a: Number, b: Number) -> tuple[Number, bool]:
    sign = _negative(a) != _negative(b)
    if _is_finite(a) and _is_finite(b):
        return Fraction(a) * Fraction(b), sign
    if (_is_finite(a) and a == 0) or (_is_finite(b) and b == 0) or a != a or b != b:
        return math.nan, False
    return -math.inf if sign else math.inf, sign


def _exact(op: str, mode: str, *given: Number) -> tuple[Number, bool]:
    if any(value != value for value in given):
        return math.nan, False
    if op == "add":
        return _add(given[0], given[1], mode)
    if op == "sub":
        return _add(given[0], -given[1], mode)
    if op == "mul":
        return _multiply(given[0], given[1])
    product, sign = _multiply(given[0], given[1])
    if isinstance(product, Fraction) and product == 0:
        product = -0.0 if sign else 0.0
    if not _is_finite(product) or not _is_finite(given[2]):
        both = not _is_finite(product) and not _is_finite(given[2])
        if product != product or (both and _negative(product) != _negative(given[2])):
            return math.nan, False
        return (product if not _is_finite(product) else given[2]), False
    return _add(product, given[2], mode)


@pytest.mark.parametrize("type_name", ["f32", "f64"])
def test_rounded_arithmetic(type_name: str) -> None:
    form, kind = KINDS[type_name]
    operands = [samples(form, COUNT, seed) for seed in (1, 2, 3)]
    cases = [(name, mode) for name in ("add", "sub", "mul", "fma") for mode in MODES]
    ops = []
    for name, mode in cases:
        places = ", ".join(f"%{k}" for k in range(4 if name == "fma" else 3))
        ops.append(Op(f"{name}.{mode}.{type_name} {places};", kind, (kind,) * (3 if name == "fma" else 2)))
    for (name, mode), op, got in zip(cases, ops, ptx_kit.apply(ops, *operands), strict=True):
        for k in range(COUNT):
            given = [decode(int(v[k]), form) for v in operands[: len(op.operands)]]
            value, zero_sign = _exact(name, mode, *given)
            _compare(int(got[k]), encode(value, form, mode, zero_sign), form, (op.text, given))


@pytest.mark.parametrize("type_name", ["f16", "bf16"])
def test_half_arithmetic(type_name: str) -> None:
    form, kind = KINDS[type_name]
    operands = [samples(form, COUNT, seed) for seed in (4, 5, 6)]
    names = ("add", "sub", "mul", "fma")
    ops = []
    for name in names:
        count = 3 if name == "fma" else 2
        places = ", ".join(f"%{k}" for k in range(count + 1))
        ops.append(Op(f"{name}.rn.{type_name} {places};", kind, (kind,) * count))
    found = ptx_kit.apply(ops, *operands, arch="sm_90")
    for name, op, got in zip(names, ops, found, strict=True):
        for k in range(COUNT):
            given = [decode(int(v[k]), form) for v in operands[: len(op.operands)]]
            value, zero_sign = _exact(name, "rn", *given)
            _compare(int(got[k]), encode(value, form, "rn", zero_sign), form, (op.text, given))


def test_packed_halves_are_two_halves() -> None:
    low, high = samples(F16, COUNT, 7), samples(F16, COUNT, 8)
    pairs = [low | high << np.uint64(16), high | low << np.uint64(16), low | low << np.uint64(16)]
    packed = Op("fma.rn.f16x2 %0, %1, %2, %3;", "32", ("32",) * 3)
    single = Op("fma.rn.f16 %0, %1, %2, %3;", "16", ("16",) * 3)
    (got,) = ptx_kit.apply([packed], *pairs)
    (lows,) = ptx_kit.apply([single], *pairs)
    (highs,) = ptx_kit.apply([single], *(p >> np.uint64(16) for p in pairs))
    assert np.array_equal(got & 0xFFFF, lows) and np.array_equal(got >> 16, highs)


def _compare(got: int, wanted: int | None, form: Format, where: Any) -> None:
    if wanted is None:
        assert decode(got, form) != decode(got, form), where
    else:
        assert got == wanted, (hex(got), hex(wanted), where)


def test_division_and_roots_round_correctly() -> None:
    a, b = samples(F32, COUNT, 9), samples(F32, COUNT, 10)
    ops = [Op("div.rn.f32 %0, %1, %2;", "f32", ("f32", "f32")), Op("rcp.rn.f32 %0, %1;", "f32", ("f32",)),
           Op("sqrt.rn.f32 %0, %1;", "f32", ("f32",)), Op("div.rn.f64 %0, %1, %2;", "f64", ("f64", "f64")),
           Op("sqrt.rn.f64 %0, %1;", "f64", ("f64",))]  # fmt: skip
    x, y = (v.astype(np.uint32).view(np.float32) for v in (a, b))
    with np.errstate(all="ignore"):
        wanted = [x / y, np.float32(1) / x, np.sqrt(x)]
        for op, got, right in zip(ops[:3], ptx_kit.apply(ops[:3], a, b), wanted, strict=True):
            assert _same(got.view(np.float32), right), op.text
        a, b = samples(F64, COUNT, 11), samples(F64, COUNT, 12)
        p, q = a.view(np.float64), b.view(np.float64)
        for op, got, right in zip(ops[3:], ptx_kit.apply(ops[3:], a, b), (p / q, np.sqrt(p)), strict=True):
            assert _same(got.view(np.float64), right), op.text


def _same(got: np.ndarray, wanted: np.ndarray) -> bool:
    bits = np.uint32 if got.dtype == np.float32 else np.uint64
    return bool(np.all((got.view(bits) == wanted.view(bits)) | (np.isnan(got) & np.isnan(wanted))))


def test_modifiers_flush_saturate_and_choose_numbers() -> None:
    a, b = samples(F32, COUNT, 13), samples(F32, COUNT, 14)
    x, y = (v.astype(np.uint32).view(np.float32) for v in (a, b))
    tiny = np.finfo(np.float32).tiny

    def flush(v: np.ndarray) -> np.ndarray:
        return np.where(np.abs(v) < tiny, np.copysign(np.float32(0), v), v).astype(np.float32)

    with np.errstate(all="ignore"):
        product = (x * y).astype(np.float32)
        larger = np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y)))
        wanted = {
            "add.ftz.f32 %0, %1, %2;": flush(flush(x) + flush(y)),
            "mul.sat.f32 %0, %1, %2;": np.where(np.isnan(product), 0, np.clip(product, 0, 1)),
            "max.f32 %0, %1, %2;": larger,
            "max.NaN.f32 %0, %1, %2;": np.maximum(x, y),
            "copysign.f32 %0, %1, %2;": np.copysign(y, x),
            "neg.f32 %0, %1;": -x,
            "abs.ftz.f32 %0, %1;": np.abs(flush(x)),
        }
        ops = [Op(text, "f32", ("f32", "f32")) for text in wanted]
        for op, got, right in zip(ops, ptx_kit.apply(ops, a, b), wanted.values(), strict=True):
            values, right = got.view(np.float32), right.astype(np.float32)
            assert np.all((values == right) | (np.isnan(values) & np.isnan(right))), op.text


# Documented errors: (relative to the result, absolute)
APPROXIMATE: dict[str, tuple[Callable[[float], float], float, float, tuple[float, float]]] = {
    "rcp.approx.f32": (lambda v: 1 / v, 2.0**-23, 0, (1e-3, 1e3)),
    "sqrt.approx.f32": (math.sqrt, 2.0**-23, 0, (1e-6, 1e6)),
    "rsqrt.approx.f32": (lambda v: 1 / math.sqrt(v), 2.0**-22.9, 0, (1e-6, 1e6)),
    "ex2.approx.f32": (lambda v: 2.0**v, 2.0**-22.5, 0, (-100, 100)),
    "lg2.approx.f32": (math.log2, 2.0**-22, 2.0**-22, (1e-6, 1e6)),
    "sin.approx.f32": (math.sin, 0, 2.0**-20.5, (-3.1, 3.1)),
    "cos.approx.f32": (math.cos, 0, 2.0**-20.5, (-3.1, 3.1)),
    "tanh.approx.f32": (math.tanh, 2.0**-10.9, 0, (-4, 4)),
}


def test_approximate_functions_stay_within_their_documented_error_and_use_it() -> None:
    rng = np.random.default_rng(15)
    for name, (exact, relative, absolute, (low, high)) in APPROXIMATE.items():
        values = rng.uniform(low, high, COUNT).astype(np.float32)
        (got,) = ptx_kit.apply([Op(f"{name} %0, %1;", "f32", ("f32",))], values.view(np.uint32))
        wanted = np.array([exact(float(v)) for v in values])
        error = np.abs(got.view(np.float32).astype(np.float64) - wanted)
        assert np.all(error <= relative * np.abs(wanted) + absolute), name
        assert np.any(got.view(np.float32) != wanted.astype(np.float32)), (
            f"{name} is exact: nothing is perturbed"
        )


INTEGERS = {"u8": 8, "s8": 8, "u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64}


def _limits(name: str) -> tuple[int, int]:
    bits = INTEGERS[name]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "s" else (0, (1 << bits) - 1)


def _whole(value: Number, mode: str) -> int | None:
    if not _is_finite(value):
        return None
    exact = Fraction(value)
    rounders: dict[str, Callable[[Fraction], int]] = {
        "rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil,
    }  # fmt: skip
    return rounders[mode](exact)


@pytest.mark.parametrize("source", ["f32", "f64", "f16"])
def test_conversions_to_integers_round_and_stay_in_range(source: str) -> None:
    form, kind = KINDS[source]
    bits = samples(form, COUNT, 16)
    cases = [(target, mode) for target in INTEGERS for mode in ("rni", "rzi", "rmi", "rpi")]
    ops = []
    for target, mode in cases:
        wide = max(INTEGERS[target], 16)
        ops.append(Op(f"cvt.{mode}.{target}.{source} %0, %1;", str(wide), (kind,)))
    for (target, mode), got in zip(cases, ptx_kit.apply(ops, bits), strict=True):
        low, high = _limits(target)
        for k in range(COUNT):
            value = decode(int(bits[k]), form)
            whole = _whole(value, mode)
            if whole is None:
                if value != value:
                    continue  # checked by name below
                whole = high if value > 0 else low
            clamped = min(max(whole, low), high)
            assert int(got[k]) == clamped % (1 << got.dtype.itemsize * 8), (target, mode, value)


@pytest.mark.parametrize("target", ["f32", "f64", "f16", "bf16"])
def test_conversions_to_floating_point_round_in_every_mode(target: str) -> None:
    form, kind = KINDS[target]
    rng = np.random.default_rng(17)
    wide = np.array(
        [int.from_bytes(rng.bytes(8), "little") >> int(rng.integers(64)) for _ in range(COUNT)], np.uint64
    )
    cases: list[tuple[str, str, Callable[[int], Number]]] = []
    if target != "bf16":
        for source in ("u64", "s64", "u32", "s32", "u16", "s16"):
            size = INTEGERS[source]
            for mode in MODES:

                def value(raw: int, size: int = size, source: str = source) -> Fraction:
                    cut = raw % (1 << size)
                    return Fraction(cut - (1 << size) if source[0] == "s" and cut >> size - 1 else cut)

                cases.append((f"cvt.{mode}.{target}.{source} %0, %1;", str(size), value))
    ops = [Op(text, kind, (operand,)) for text, operand, _ in cases]
    if ops:
        for (text, _, exact), got in zip(cases, ptx_kit.apply(ops, wide), strict=True):
            mode = text.split(".")[1]
            for k in range(COUNT):
                _compare(int(got[k]), encode(exact(int(wide[k])), form, mode), form, (text, int(wide[k])))
    sources = {"f32": "f64", "f16": "f32", "bf16": "f32"}
    if target in sources:
        source = sources[target]
        from_form, from_kind = KINDS[source]
        bits = samples(from_form, COUNT, 18)
        modes = MODES if target == "f32" else ("rn", "rz")
        ops = [Op(f"cvt.{mode}.{target}.{source} %0, %1;", kind, (from_kind,)) for mode in modes]
        for mode, got in zip(modes, ptx_kit.apply(ops, bits, arch="sm_90"), strict=True):
            for k in range(COUNT):
                value = decode(int(bits[k]), from_form)
                _compare(int(got[k]), encode(value, form, mode), form, (target, source, mode, value))


def test_saturating_conversions() -> None:
    bits = np.array(
        [int.from_bytes(np.random.default_rng(19 + k).bytes(4), "little") for k in range(COUNT)], np.uint64
    )
    ops = [
        Op(f"cvt.sat.{to}.s32 %0, %1;", "16" if to in ("u16", "s16") else "32", ("32",))
        for to in ("u16", "s16", "u32")
    ]
    for to, got in zip(("u16", "s16", "u32"), ptx_kit.apply(ops, bits), strict=True):
        low, high = _limits(to)
        for k in range(COUNT):
            value = int(np.int64(np.uint32(bits[k]).astype(np.int32)))
            assert int(got[k]) == min(max(value, low), high) % (1 << got.dtype.itemsize * 8)
    floats = samples(F32, COUNT, 20)
    (got,) = ptx_kit.apply([Op("cvt.sat.f32.f32 %0, %1;", "f32", ("f32",))], floats)
    for k in range(COUNT):
        value = float32(int(floats[k]))
        assert float32(int(got[k])) == (0 if value != value else min(max(value, 0.0), 1.0))


def test_pairs_are_packed_high_first_and_tf32_keeps_ten_bits() -> None:
    a, b = samples(F32, COUNT, 21), samples(F32, COUNT, 22)
    ops = [
        Op("cvt.rn.f16x2.f32 %0, %1, %2;", "32", ("f32", "f32")),
        Op("cvt.rna.tf32.f32 %0, %1;", "32", ("f32",)),
    ]
    pairs, tf32 = ptx_kit.apply(ops, a, b)
    for k in range(COUNT):
        high, low = (encode(decode(int(v[k]), F32), F16) for v in (a, b))
        _compare(int(pairs[k]) >> 16, high, F16, "high")
        _compare(int(pairs[k]) & 0xFFFF, low, F16, "low")
        value, cut = float32(int(a[k])), float32(int(tf32[k]))
        if math.isfinite(value) and abs(value) < 1e38 and abs(value) > 1e-37:
            assert int(tf32[k]) & 0x1FFF == 0 and abs(cut - value) <= abs(value) * 2.0**-11
