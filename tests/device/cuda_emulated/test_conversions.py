"""Conversions of every 8- and 16-bit value, with every rounding and saturation, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import sweep_kit
from sweep_kit import COUNT

from cupilot.device.base import Array

EVERY = np.arange(COUNT)
ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
VALUE = {"f16": sweep_kit.f16_value, "bf16": sweep_kit.bf16_value}
NARROW = {"f16": sweep_kit.f16, "bf16": sweep_kit.bf16}
MODES = ("rn", "rz", "rm", "rp")


def _letter(integer: str) -> str:
    return {"8": "r", "16": "h", "32": "r", "64": "l"}[integer[1:]]


def _range(integer: str) -> tuple[int, int]:
    bits = int(integer[1:])
    return (0, 2**bits - 1) if integer[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _whole(values: Array, integer: str) -> Array:
    """Clamped to the type; NaN is zero, or the top bit alone in 64 bits."""
    low, high = _range(integer)
    inside = [0 if v != v else high if v >= high else low if v <= low else int(v) for v in values.tolist()]
    found = np.array([v % 2**64 for v in inside], np.uint64)
    return np.where(np.isnan(values), np.uint64(1 << 63 if integer[1:] == "64" else 0), found)


def _cut(bits: Array, integer: str) -> Array:
    size = int(integer[1:])
    return bits & np.uint64(2**size - 1)


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_half_to_integers(source: str) -> None:
    kinds = [to for to in INTEGERS if source == "f16" or to[1:] != "8"]  # PTX has no bf16 to 8 bits
    cases = [(f"cvt.{mode}.{to}.{source} %0, %1;", to, mode) for mode in ROUND for to in kinds]
    found = sweep_kit.sweep([(text, _letter(to)) for text, to, _ in cases], EVERY)
    values = VALUE[source](EVERY)
    with np.errstate(invalid="ignore"):
        whole = {mode: rounding(values) for mode, rounding in ROUND.items()}
    for (text, to, mode), got in zip(cases, found, strict=True):
        assert np.array_equal(_cut(got, to), _cut(_whole(whole[mode], to), to)), text


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_half_to_floating_point(source: str) -> None:
    values = VALUE[source](EVERY)
    with np.errstate(all="ignore"):
        single, double, clamped, relu = sweep_kit.sweep(
            [
                (f"cvt.f32.{source} %0, %1;", "f"),
                (f"cvt.f64.{source} %0, %1;", "d"),
                (f".reg .f32 t; cvt.f32.{source} t, %1; cvt.rn.sat.{source}.f32 %0, t;", "h")
                if source == "f16"
                else (f".reg .f32 t; cvt.f32.{source} t, %1; cvt.rn.{source}.f32 %0, t;", "h"),
                (f".reg .f32 t; cvt.f32.{source} t, %1; cvt.rn.relu.{source}.f32 %0, t;", "h"),
            ],
            EVERY,
        )
    assert sweep_kit.same(sweep_kit.f32_value(single), values)
    assert sweep_kit.same(double.view(np.float64), values)
    if source == "f16":
        wanted = np.where(np.isnan(values), 0, np.clip(values, 0, 1))
        assert np.array_equal(VALUE[source](clamped), wanted)
    else:
        assert sweep_kit.same(VALUE[source](clamped), values)
    wanted = np.where(np.isnan(values), values, np.where(values > 0, values, 0.0))
    assert sweep_kit.same(VALUE[source](relu), wanted)


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_every_small_integer_to_halves(target: str) -> None:
    """By way of all four rounding modes, from 8 and 16 bits, signed and not."""
    cases = [
        (f"cvt.{mode}.{target}.{source} %0, %1;", source, mode)
        for mode in MODES
        for source in ("u8", "s8", "u16", "s16")
        if target == "f16" or source[1:] != "8"
    ]
    found = sweep_kit.sweep([(text, "h") for text, _, _ in cases], EVERY)
    for (text, source, mode), got in zip(cases, found, strict=True):
        numbers = EVERY.astype(f"{'int' if source[0] == 's' else 'uint'}{source[1:]}").astype(np.float64)
        assert np.array_equal(VALUE[target](got), NARROW[target](numbers, mode)), text


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_single_precision_to_halves_in_every_mode(target: str) -> None:
    """Bit patterns of all sizes: the halves' own range is met often."""
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2**32, COUNT, dtype=np.uint64)
    near = rng.integers(0x33000000, 0x48000000, COUNT // 2, dtype=np.uint64)
    bits[: COUNT // 2] = near | rng.integers(0, 2, COUNT // 2, dtype=np.uint64) << np.uint64(31)
    values = sweep_kit.f32_value(bits)
    modes = ("rn", "rz")  # the others are not in PTX
    texts = [(f".reg .f32 t; mov.b32 t, %1; cvt.{mode}.{target}.f32 %0, t;", "h") for mode in modes]
    for mode, got in zip(modes, sweep_kit.sweep(texts, bits, letter="r"), strict=True):
        assert sweep_kit.same(VALUE[target](got), NARROW[target](values, mode)), mode


def test_integers_of_all_widths_truncate_or_saturate() -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 2**64, COUNT, dtype=np.uint64)
    values[: COUNT // 2] = (rng.integers(-70000, 70000, COUNT // 2)).astype(np.int64).view(np.uint64)
    cases = [
        (
            f"{_narrowed(source)} cvt{sat}.{to}.{source} %0, {'t' if source[1:] != '64' else '%1'};",
            source,
            to,
            sat,
        )
        for source in INTEGERS
        for to in INTEGERS
        for sat in ("", ".sat")
        if source != to and (not sat or not _holds(to, source))
    ]
    for start in range(0, len(cases), 28):
        part = cases[start : start + 28]
        found = sweep_kit.sweep([(text, _letter(to)) for text, _, to, _ in part], values, letter="l")
        for (text, source, to, sat), got in zip(part, found, strict=True):
            given = values.astype(f"{'int' if source[0] == 's' else 'uint'}{source[1:]}")
            low, high = _range(to)
            wanted = given
            if sat:
                least, most = _range(source)
                wanted = np.clip(given, max(low, least), min(high, most)).astype(given.dtype)
            extended = wanted.astype(np.int64 if source[0] == "s" else np.uint64).view(np.uint64)
            assert np.array_equal(_cut(got, to), _cut(extended, to)), text


def _holds(to: str, source: str) -> bool:
    """Nothing of the source's is out of the target's range: saturation has no meaning then."""
    (low, high), (least, most) = _range(to), _range(source)
    return low <= least and most <= high


def _narrowed(source: str) -> str:
    """The low bits of %1 in a register of the source's size, called t."""
    size = {"8": "32", "16": "16", "32": "32", "64": "64"}[source[1:]]
    return "" if size == "64" else f".reg .b{size} t; cvt.u{size}.u64 t, %1;"


@pytest.mark.parametrize("target", ["f16", "bf16"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64", "f64"])
def test_wide_numbers_to_halves_in_every_mode(target: str, source: str) -> None:
    rng = np.random.default_rng(7)
    if source == "f64":
        values = np.ldexp(rng.standard_normal(COUNT), rng.integers(-40, 20, COUNT))
        bits = values.view(np.uint64)
    else:
        values = (rng.integers(-(2**31), 2**31, COUNT) >> rng.integers(0, 28, COUNT)).astype(np.float64)
        values = np.abs(values) if source[0] == "u" else values
        bits = values.astype(np.int64).view(np.uint64)
    texts = [(f"cvt.{mode}.{target}.{source} %0, %1;", "h") for mode in MODES]
    found = sweep_kit.sweep(texts, bits, letter="r" if source[1:] == "32" else "l")
    for mode, got in zip(MODES, found, strict=True):
        assert np.array_equal(VALUE[target](got), NARROW[target](values, mode)), mode


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_to_whole_numbers_and_to_each_other(kind: str) -> None:
    values = VALUE[kind](EVERY)
    other = "bf16" if kind == "f16" else "f16"
    texts = [(f"cvt.{mode}.{kind}.{kind} %0, %1;", "h") for mode in ROUND]
    *whole, across = sweep_kit.sweep([*texts, (f"cvt.rn.{other}.{kind} %0, %1;", "h")], EVERY)
    with np.errstate(invalid="ignore"):
        for (mode, rounding), got in zip(ROUND.items(), whole, strict=True):
            assert sweep_kit.same(VALUE[kind](got), rounding(values)), mode
    assert sweep_kit.same(VALUE[other](across), NARROW[other](values))


def test_pairs_whole_floats_and_small_integers() -> None:
    rng = np.random.default_rng(11)
    a, b = (rng.integers(0x38000000, 0x48000000, COUNT, dtype=np.uint64) for _ in range(2))
    a |= rng.integers(0, 2, COUNT, dtype=np.uint64) << np.uint64(31)
    x, y = sweep_kit.f32_value(a), sweep_kit.f32_value(b)
    pairs = {
        f"cvt.{mode}{relu}.{kind}x2.f32 %0, %1, %2;": (kind, mode, bool(relu))
        for kind in ("f16", "bf16") for mode in ("rn", "rz") for relu in ("", ".relu")
    }  # fmt: skip
    found = sweep_kit.sweep([(text, "r") for text in pairs], a, b, letter="r")
    for (text, (kind, mode, relu)), got in zip(pairs.items(), found, strict=True):
        for half, v in ((got >> np.uint64(16), x), (got & np.uint64(0xFFFF), y)):
            wanted = NARROW[kind](np.maximum(v, 0) if relu else v, mode)
            assert np.array_equal(VALUE[kind](half), wanted), text
    texts = [(f"cvt.{mode}.f32.f32 %0, %1;", "r") for mode in ROUND]
    texts += [
        ("cvt.rn.f32.s8 %0, %1;", "r"),
        ("cvt.rn.f32.u8 %0, %1;", "r"),
        ("cvt.rn.tf32.f32 %0, %1;", "r"),
    ]
    *whole, signed, unsigned, tf32 = sweep_kit.sweep(texts, a, letter="r")
    for (mode, rounding), got in zip(ROUND.items(), whole, strict=True):
        assert sweep_kit.same(sweep_kit.f32_value(got), rounding(x)), mode
    assert np.array_equal(sweep_kit.f32_value(signed), a.astype(np.int8).astype(np.float64))
    assert np.array_equal(sweep_kit.f32_value(unsigned), a.astype(np.uint8).astype(np.float64))
    assert np.array_equal(sweep_kit.f32_value(tf32), sweep_kit.rounded(x, 11, -126, np.inf))
    doubles = [(f"cvt.{mode}.f64.f64 %0, %1;", "l") for mode in ROUND]
    doubles += [("cvt.rn.f64.s8 %0, %1;", "l"), ("cvt.rn.f64.u8 %0, %1;", "l")]
    wide = (x * 1.000001).view(np.uint64)
    *whole, signed, unsigned = sweep_kit.sweep(doubles[:4], wide, letter="l") + sweep_kit.sweep(
        doubles[4:], a, letter="r"
    )
    for (mode, rounding), got in zip(ROUND.items(), whole, strict=True):
        assert sweep_kit.same(got.view(np.float64), rounding(wide.view(np.float64))), mode
    assert np.array_equal(signed.view(np.float64), a.astype(np.int8).astype(np.float64))
    assert np.array_equal(unsigned.view(np.float64), a.astype(np.uint8).astype(np.float64))
