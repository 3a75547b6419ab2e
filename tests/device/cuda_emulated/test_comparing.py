"""Comparisons, selections, signs and extremes on bit patterns of all kinds, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sweep_kit
from sweep_kit import COUNT

from cupilot.device.base import Array

ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}  # fmt: skip
VALUE: dict[str, Callable[[Array], Array]] = {
    "f16": sweep_kit.f16_value,
    "bf16": sweep_kit.bf16_value,
    "f32": sweep_kit.f32_value,
    "f64": lambda bits: bits.view(np.float64),
    **{f"{sign}{size}": lambda bits, t=f"{kind}{size}": bits.astype(t)
       for sign, kind in (("u", "uint"), ("s", "int")) for size in (16, 32, 64)},
}  # fmt: skip
LETTER = {16: "h", 32: "r", 64: "l"}


def _size(kind: str) -> int:
    return int(kind.lstrip("bfsu"))


def _operands(kind: str, seed: int = 5) -> tuple[Array, Array]:
    """Equal ones, neighbours, NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    top = 2 ** _size(kind)
    a, b = (rng.integers(0, top, COUNT, dtype=np.uint64) for _ in range(2))
    b[: COUNT // 4] = a[: COUNT // 4]
    b[COUNT // 4 : COUNT // 2] = (a[COUNT // 4 : COUNT // 2] + np.uint64(1)) & np.uint64(top - 1)
    if "f" in kind:
        digits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[kind]
        infinity = (top // 2 - 1) >> digits << digits
        a[::97], b[::89], a[::83] = infinity, infinity, infinity + 1
        a[::79], b[::79] = 0, top // 2
    return a, b


def _unordered(kind: str, a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b) if "f" in kind else np.zeros(a.shape, bool)


@pytest.mark.parametrize("kind", [k for k in VALUE if k[1:] not in ("32", "64") or k[0] == "f"])
def test_comparisons(kind: str) -> None:
    bits = _operands(kind)
    a, b = (VALUE[kind](v) for v in bits)
    names = [*ORDERED, *((*(f"{n}u" for n in ORDERED), "num", "nan") if "f" in kind else ())]
    form = ".reg .pred p, q; setp.{}.{} p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;"
    if kind in ("f16", "bf16"):  # these have one result only
        form = ".reg .pred p; setp.{}.{} p, %1, %2; selp.u32 %0, 1, 2, p;"
    texts = [(form.format(name, kind), "r") for name in names]
    found = sweep_kit.sweep(texts, *bits, letter=LETTER[_size(kind)])
    unordered = _unordered(kind, a, b)
    for name, got in zip(names, found, strict=True):
        if name in ("num", "nan"):
            wanted = unordered == (name == "nan")
        else:
            with np.errstate(invalid="ignore"):
                wanted = ORDERED[name[:2]](a, b)
            wanted = wanted | unordered if name.endswith("u") else wanted & ~unordered
        assert np.array_equal(got, np.where(wanted, 1, 2)), name


def test_comparisons_combine_and_give_values() -> None:
    bits = _operands("f32")
    a, b = (sweep_kit.f32_value(v) for v in bits)
    odd = bits[0] % np.uint64(2) == 1
    head = ".reg .pred p, q; .reg .b32 t; and.b32 t, %1, 1; setp.eq.u32 q, t, 1;"
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    texts = [(f"{head} setp.lt.{n}.f32 p, %1, %2, q; selp.u32 %0, 1, 0, p;", "r") for n in combine]
    texts += [(f"{head} setp.lt.{n}.f32 p, %1, %2, !q; selp.u32 %0, 1, 0, p;", "r") for n in combine]
    texts += [
        ("set.lt.u32.f32 %0, %1, %2;", "r"), ("set.ge.f32.f32 %0, %1, %2;", "r"),
        ("set.lt.s32.u32 %0, %1, %2;", "r"), ("setp.lt.ftz.f32 p, %1, %2; selp.u32 %0, 1, 0, p;", "r"),
        ("slct.b32.f32 %0, %1, %2, %2;", "r"), ("slct.u64.f32 %0, 1, 2, %2;", "l"),
        ("slct.u64.s32 %0, 1, 2, %2;", "l"), ("selp.b32 %0, %1, %2, q;", "r"),
    ]  # fmt: skip
    texts[-5] = (f".reg .pred p; {texts[-5][0]}", "r")
    texts[-1] = (f"{head} {texts[-1][0]}", "r")
    found = sweep_kit.sweep(texts, *bits, letter="r")
    with np.errstate(invalid="ignore"):
        less, at_least = np.less(a, b), np.greater_equal(a, b)
        tiny = [np.where(np.abs(v) < 2.0**-126, 0.0, v) for v in (a, b)]
        flushed = np.less(*tiny)
        negative = ~(b >= 0)
    sign = (bits[1].astype(np.uint32).view(np.int32)) < 0
    wanted = [f(less, odd) for f in combine.values()] + [f(less, ~odd) for f in combine.values()]
    wanted += [less * np.uint64(0xFFFFFFFF), at_least * np.uint64(0x3F800000)]
    wanted += [(bits[0] < bits[1]) * np.uint64(0xFFFFFFFF), flushed]
    wanted += [np.where(negative, bits[1], bits[0]), np.where(negative, 2, 1), np.where(sign, 2, 1)]
    wanted += [np.where(odd, bits[0], bits[1])]
    for (text, _), got, want in zip(texts, found, wanted, strict=True):
        assert np.array_equal(got, want.astype(np.uint64)), text


def _smaller(a: Array, b: Array) -> Array:
    return np.where(
        np.isnan(a), b, np.where(np.isnan(b), a, np.where((a < b) | ((a == b) & np.signbit(a)), a, b))
    )


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_extremes_and_signs(kind: str) -> None:
    bits = _operands(kind)
    letter = LETTER[_size(kind)]
    a, b = (VALUE[kind](v) for v in bits)
    nan = _unordered(kind, a, b)
    least, most = _smaller(a, b), -_smaller(-a, -b)
    cases = {"min": least, "max": most, "abs": np.abs(a), "neg": -a}
    if kind != "f64":
        cases |= {"min.NaN": np.where(nan, np.nan, least), "max.NaN": np.where(nan, np.nan, most)}
    if kind in ("f32", "f64"):
        cases["copysign"] = np.copysign(b, a)
    if kind == "f32":
        x, y = (np.where(np.abs(v) < 2.0**-126, np.copysign(0.0, v), v) for v in (a, b))
        least, most = _smaller(x, y), -_smaller(-x, -y)
        cases |= {
            "min.ftz": least, "max.ftz": most, "abs.ftz": np.abs(x), "neg.ftz": -x,
            "min.ftz.NaN": np.where(nan, np.nan, least), "max.ftz.NaN": np.where(nan, np.nan, most),
        }  # fmt: skip
    texts = [
        (f"{name}.{kind} %0, %1{'' if name.startswith(('abs', 'neg')) else ', %2'};", letter)
        for name in cases
    ]
    for name, got in zip(cases, sweep_kit.sweep(texts, *bits, letter=letter), strict=True):
        assert sweep_kit.same(VALUE[kind](got), cases[name]), name


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_properties(kind: str) -> None:
    bits, _ = _operands(kind)
    v = VALUE[kind](bits)
    tiny = 2.0**-126 if kind == "f32" else 2.0**-1022
    wanted = {
        "finite": np.isfinite(v), "infinite": np.isinf(v), "number": ~np.isnan(v), "notanumber": np.isnan(v),
        "normal": np.isfinite(v) & (np.abs(v) >= tiny), "subnormal": (v != 0) & (np.abs(v) < tiny),
    }  # fmt: skip
    texts = [(f".reg .pred p; testp.{n}.{kind} p, %1; selp.u32 %0, 1, 0, p;", "r") for n in wanted]
    found = sweep_kit.sweep(texts, bits, letter=LETTER[_size(kind)])
    for name, got in zip(wanted, found, strict=True):
        assert np.array_equal(got == 1, wanted[name]), name
