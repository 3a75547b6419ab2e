"""PTX instructions on every 16-bit value, or on 65,536 pairs: one kernel applies many of them."""

from __future__ import annotations

from collections.abc import Sequence

import emu_kit
import numpy as np

from cupilot.device.base import Array
from cupilot.types import DType

COUNT = 1 << 16
_C = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "f": "float", "d": "double"}
_BACK = {"f": "__float_as_uint(r)", "d": "__double_as_longlong(r)"}


def sweep(
    texts: Sequence[tuple[str, str]], *operands: Array, letter: str = "h", arch: str = "sm_90"
) -> list[Array]:
    """For each (PTX with %0 for the result and %1, %2 for operands, the result's letter) the results' bits.

    Operands are the low bits of arrays of COUNT whole numbers; a letter is a constraint of inline assembly.
    """
    given = {f"x{k}": values.astype(np.uint64).view(np.int64) for k, values in enumerate(operands)}
    places = ", ".join(f'"{letter}"(({_C[letter]})x{k}[i])' for k in range(len(operands)))
    lines = [
        f'{{ {_C[kind]} r; asm volatile("{{ {text} }}" : "={kind}"(r) : {places}); '
        f"out{n}[i] = {_BACK.get(kind, 'r')}; }}"
        for n, (text, kind) in enumerate(texts)
    ]
    parameters = [f"const long long* {name}" for name in given] + [
        f"long long* out{n}" for n in range(len(texts))
    ]
    body = "\n".join(lines)
    code = (
        f"__global__ void k({', '.join(parameters)}) {{ int i = blockIdx.x * 256 + threadIdx.x;\n{body}\n}}"
    )
    names = [*given, *(f"out{n}" for n in range(len(texts)))]
    outputs = {f"out{n}": ((COUNT,), DType.I64) for n in range(len(texts))}
    found = emu_kit.compute(code, f"k[{COUNT // 256}, 256]({', '.join(names)})", given, outputs, arch)
    return [found[f"out{n}"].view(np.uint64) for n in range(len(texts))]


def rounded(values: Array, digits: int, smallest_exponent: int, largest: float, mode: str = "rn") -> Array:
    """Doubles rounded once to a narrower binary format, as doubles."""
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(values)[1] - 1, smallest_exponent) - (digits - 1)
        scaled = np.ldexp(values, -exponent)
        whole = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}[mode](scaled)
        found = np.copysign(np.ldexp(whole, exponent), values)
        too_large = np.isfinite(values) & (np.abs(found) > largest)
        outward = (mode == "rn") | ((mode == "rp") & (values > 0)) | ((mode == "rm") & (values < 0))
        limit = np.copysign(np.where(outward, np.inf, largest), values)
        return np.where(np.isfinite(values), np.where(too_large, limit, found), values)


def f16(values: Array, mode: str = "rn") -> Array:
    return rounded(values, 11, -14, 65504.0, mode)


def bf16(values: Array, mode: str = "rn") -> Array:
    return rounded(values, 8, -126, 3.3895313892515355e38, mode)


def f16_value(bits: Array) -> Array:
    with np.errstate(invalid="ignore"):  # NaN among them
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)


def bf16_value(bits: Array) -> Array:
    return f32_value(bits.astype(np.uint32) << 16)


def f32_value(bits: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def same(found: Array, wanted: Array) -> bool:
    """Equal as numbers, zeros by their sign too; any NaN is a NaN."""
    nan = np.isnan(wanted)
    return bool(
        np.array_equal(np.isnan(found), nan)
        and np.array_equal(found[~nan], wanted[~nan])
        and np.array_equal(np.signbit(found[~nan]), np.signbit(wanted[~nan]))
    )
