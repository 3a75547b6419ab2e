"""Every atomic operation, in every type, order and scope, in global and shared memory: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import emu_kit
import numpy as np
import pytest

from cupilot.device.base import Array
from cupilot.types import DType

N = 64
ORDERS = ("", ".relaxed.cta", ".relaxed.gpu", ".relaxed.sys", ".acquire.gpu", ".release.gpu", ".acq_rel.cta")
BITS = {"u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64, "f32": 32, "f64": 64}
_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}  # fmt: skip
CASES = [
    *(("add", kind) for kind in ("u32", "s32", "u64", "f32", "f64")),
    *((op, kind) for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    *((op, kind) for op in ("and", "or", "xor") for kind in ("b32", "b64")),
]


def _numbers(kind: str) -> Array:
    """Small whole numbers: their sums are exact in every type."""
    low = 0 if kind[0] in "ub" else -500
    return np.random.default_rng(sum(map(ord, kind))).integers(low, 500, N)


def _bits(values: Array, kind: str) -> Array:
    if kind[0] == "f":
        return values.astype(f"float{kind[1:]}").view(f"uint{kind[1:]}").astype(np.uint64)
    return values.astype(np.int64).view(np.uint64) & np.uint64(2 ** BITS[kind] - 1)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_what_is_left_does_not_depend_on_the_order(space: str) -> None:
    """`atom` in one half of the cells, `red` in the other; all orders and scopes on one cell each."""
    given, lines, wanted = {}, [], []
    for number, (op, kind) in enumerate(CASES):
        letter, c_type = ("l", "unsigned long long") if BITS[kind] == 64 else ("r", "unsigned")
        values = _numbers(kind)
        given[f"x{number}"] = _bits(values, kind).view(np.int64)
        result = _bits(np.array([reduce(_FOLD[op], values.tolist(), 0)]), kind)[0]
        for place, order in enumerate(ORDERS):
            cell = f"cells + {8 * (len(ORDERS) * number + place)}"
            address = f"({cell})" if space == "global" else f"(unsigned)__cvta_generic_to_shared({cell})"
            suffix = f"{order}.{space}.{op}.{kind}"
            where = f'"{"l" if space == "global" else "r"}"({address})'
            # A reduction knows no acquiring order.
            if place % 2 and "acq" not in order:
                text = f'asm volatile("red{suffix} [%0], %1;" :: {where}, "{letter}"(v) : "memory");'
            else:
                text = f'asm volatile("{{ .reg .b{BITS[kind]} t; atom{suffix} t, [%0], %1; }}" :: {where}, '
                text += f'"{letter}"(v) : "memory");'
            lines.append(f"{{ const {c_type} v = ({c_type})x{number}[threadIdx.x]; {text} }}")
            wanted.append(result)
    cells = len(CASES) * len(ORDERS)
    parameters = ", ".join(f"const long long* {name}" for name in given)
    body = "\n".join(lines)
    if space == "global":
        head, tail = "char* cells = reinterpret_cast<char*>(out);", ""
    else:
        head = f"__shared__ long long held[{cells}]; char* cells = reinterpret_cast<char*>(held);"
        head += f"for (int i = threadIdx.x; i < {cells}; i += {N}) held[i] = 0; __syncthreads();"
        tail = f"__syncthreads(); for (int i = threadIdx.x; i < {cells}; i += {N}) out[i] = held[i];"
    code = f"__global__ void k({parameters}, long long* out) {{ {head}\n{body}\n{tail} }}"
    launch = f"zero(out)\nk[1, {N}]({', '.join(given)}, out)"
    found = emu_kit.compute(code, launch, given, {"out": ((cells,), DType.I64)})["out"].view(np.uint64)
    for place, (got, want) in enumerate(zip(found.tolist(), wanted, strict=True)):
        assert got == want, (CASES[place // len(ORDERS)], ORDERS[place % len(ORDERS)])


def test_exchanges_and_swaps_pass_values_from_hand_to_hand() -> None:
    code = """
    __global__ void k(int* out, int* seen, long long* wide, long long* passed, int* counts, short* half) {
        const int t = blockIdx.x * 32 + threadIdx.x;
        seen[t] = atomicExch(out, t + 1);
        passed[t] = atomicExch(reinterpret_cast<unsigned long long*>(wide), t + 1ull);
        atomicInc(reinterpret_cast<unsigned*>(counts), 6);
        atomicDec(reinterpret_cast<unsigned*>(counts) + 1, 6);
        for (int old = 0, found;; old = found) {
            found = atomicCAS(counts + 2, old, old + 5);
            if (found == old) break;
        }
        unsigned short* cell = reinterpret_cast<unsigned short*>(half);
        for (unsigned short old = 0, found;; old = found) {
            found = atomicCAS(cell, old, (unsigned short)(old + 3));
            if (found == old) break;
        }
    }"""
    shapes = {"out0": (1, DType.I32), "out1": (N, DType.I32), "out2": (1, DType.I64), "out3": (N, DType.I64),
              "out4": (3, DType.I32), "out5": (1, DType.I16)}  # fmt: skip
    outputs = {name: ((size,), dtype) for name, (size, dtype) in shapes.items()}
    zeros = "\n".join(f"zero({name})" for name in outputs)
    found = emu_kit.compute(code, f"{zeros}\nk[2, 32]({', '.join(outputs)})", {}, outputs)
    for last, seen in (("out0", "out1"), ("out2", "out3")):
        assert sorted([*found[seen].tolist(), int(found[last][0])]) == list(range(N + 1))
    assert found["out4"].tolist() == [N % 7, (7 - N % 7) % 7, 5 * N]
    assert found["out5"][0] == 3 * N


def test_halves_are_added_in_pairs_and_alone() -> None:
    code = """
    #include <cuda_bf16.h>
    __global__ void k(__nv_bfloat16* out, const float* x) {
        atomicAdd(out, __float2bfloat16(x[threadIdx.x]));
        atomicAdd(reinterpret_cast<__nv_bfloat162*>(out) + 1, __floats2bfloat162_rn(x[threadIdx.x], 2.0f));
    }"""
    x = np.arange(32, dtype=np.float32) % 4
    found = emu_kit.compute(
        code, "zero(out)\nk[1, 32](out, x)", {"x": x}, {"out": ((4,), DType.BF16)}, "sm_90"
    )["out"]
    assert (found.astype(np.uint32) << 16).view(np.float32).tolist() == [48.0, 0.0, 48.0, 64.0]
