"""Rounding of exact fractions to binary floating-point formats, in every mode, bit for bit."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Format:
    digits: int  # significant, the hidden one included
    largest_exponent: int
    bits: int

    @property
    def smallest_exponent(self) -> int:
        return 1 - self.largest_exponent

    @property
    def largest(self) -> Fraction:
        return Fraction(2) ** (self.largest_exponent + 1) * (1 - Fraction(1, 2**self.digits))


F16, BF16 = Format(11, 15, 16), Format(8, 127, 16)
F32, F64 = Format(24, 127, 32), Format(53, 1023, 64)
Number = Fraction | float  # floats: infinities and NaN, and the two zeros


def decode(bits: int, f: Format) -> Number:
    sign = -1 if bits >> (f.bits - 1) else 1
    mantissa_bits = f.digits - 1
    exponent = bits >> mantissa_bits & ((1 << f.bits - 1 - mantissa_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if exponent == 2 * f.largest_exponent + 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0 and mantissa == 0:
        return sign * 0.0
    scale = max(exponent, 1) - f.largest_exponent - mantissa_bits
    return sign * Fraction(mantissa + ((1 << mantissa_bits) if exponent else 0)) * Fraction(2) ** scale


def encode(value: Number, f: Format, mode: str = "rn", zero_sign: bool = False) -> int | None:
    """The bits of the rounded value; None stands for any NaN."""
    top = 1 << f.bits - 1
    infinity = (2 * f.largest_exponent + 1) << f.digits - 1
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return infinity | (top if value < 0 else 0)
        return top if math.copysign(1, value) < 0 else 0
    if value == 0:
        return top if zero_sign else 0
    negative, size = value < 0, abs(value)
    exponent = max(_exponent(size), f.smallest_exponent)
    unit = Fraction(2) ** (exponent - f.digits + 1)
    whole, rest = divmod(size, unit)
    up = {"rz": False, "rm": negative and rest > 0, "rp": not negative and rest > 0}.get(mode)
    if up is None:
        up = rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1)
    rounded = (whole + up) * unit
    sign = top if negative else 0
    if rounded > f.largest:
        inward = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        return sign | (infinity - 1 if inward else infinity)
    if rounded == 0:
        return sign
    exponent = max(_exponent(rounded), f.smallest_exponent)
    mantissa = int(rounded / Fraction(2) ** (exponent - f.digits + 1))
    if mantissa < 1 << f.digits - 1:
        return sign | mantissa
    biased = exponent + f.largest_exponent
    return sign | biased << f.digits - 1 | (mantissa - (1 << f.digits - 1))


def _exponent(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def float32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def samples(f: Format, count: int, seed: int) -> np.ndarray:
    """Bits: special values, denormals, neighbours of one, random ones of all sizes and of moderate size."""
    rng = np.random.default_rng(seed)
    one = f.largest_exponent << f.digits - 1
    infinity = (2 * f.largest_exponent + 1) << f.digits - 1
    top = 1 << f.bits - 1
    edges = [0, 1, 2, one, one + 1, one - 1, infinity, infinity - 1, infinity + 1, 1 << f.digits - 1,
             (1 << f.digits - 1) - 1, one + (1 << f.digits - 2)]  # fmt: skip
    edges += [edge | top for edge in edges]
    rng.shuffle(edges)
    spread = (count - len(edges)) // 2
    anything = [int.from_bytes(rng.bytes(8), "little") % (1 << f.bits) for _ in range(spread)]
    moderate = []
    for _ in range(count - len(edges) - spread):
        exponent = int(rng.integers(-3, 4)) + f.largest_exponent
        mantissa = int.from_bytes(rng.bytes(8), "little") % (1 << f.digits - 1)
        moderate.append(int(rng.integers(2)) * top | exponent << f.digits - 1 | mantissa)
    return np.array(edges + anything + moderate, np.uint64)
