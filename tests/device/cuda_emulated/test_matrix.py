"""Matrix operations of warps against numpy, in every shape and type that is executed."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.device.base import Array
from cupilot.types import DType

RNG = np.random.default_rng(5)
_C = {
    "f16": "__half",
    "bf16": "__nv_bfloat16",
    "tf32": "float",
    "f64": "double",
    "s8": "signed char",
    "u8": "unsigned char",
}
_PER_REGISTER = {"f16": 2, "bf16": 2, "tf32": 1, "f64": 1, "s8": 4, "u8": 4}


def _bf16(values: Array) -> Array:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _values(kind: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Raw values and what they mean; sums of their products are exact in single precision."""
    whole = RNG.integers(-8, 8, shape)
    if kind == "bf16":
        return _bf16(whole.astype(np.float32)), whole.astype(np.float64)
    if kind == "u8":
        return np.abs(whole).astype(np.uint8), np.abs(whole).astype(np.float64)
    numpy = {"f16": np.float16, "tf32": np.float32, "f64": np.float64, "s8": np.int8}[kind]
    return whole.astype(numpy), whole.astype(np.float64)


MMA = [
    ("m16n8k16", "f16", "f32"), ("m16n8k16", "f16", "f16"), ("m16n8k16", "bf16", "f32"),
    ("m16n8k8", "f16", "f32"), ("m16n8k8", "bf16", "f32"), ("m16n8k8", "tf32", "f32"),
    ("m16n8k4", "tf32", "f32"), ("m8n8k4", "f64", "f64"),
    ("m16n8k8", "f16", "f16"),
    ("m16n8k32", "s8", "s32"), ("m16n8k16", "u8", "s32"), ("m8n8k16", "s8", "s32"),
    ("m16n8k32", "u8", "s32"), ("m16n8k16", "s8", "s32"), ("m8n8k16", "u8", "s32"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "kind", "result"), MMA, ids=lambda v: str(v))
def test_mma(shape: str, kind: str, result: str) -> None:
    m, n, k = (int(part) for part in shape[1:].replace("n", "k").split("k"))
    (a, exact_a), (b, exact_b) = _values(kind, (m, k)), _values(kind, (n, k))
    parts = _PER_REGISTER[kind]
    rows, registers_a, registers_b = m // 8, m * k // 32 // parts, n * k // 32 // parts
    c_type = {"f32": "float", "f16": "__half", "f64": "double", "s32": "int"}[result]
    registers_c = m * n // 32 // (2 if result == "f16" else 1)
    holds = "double" if kind == "f64" else "unsigned"
    letter = "d" if kind == "f64" else "r"
    out_letter = {"f32": "f", "f16": "r", "f64": "d", "s32": "r"}[result]
    out_holds = {"f32": "float", "f16": "unsigned", "f64": "double", "s32": "int"}[result]
    places = iter(range(99))
    d, ra, rb = (
        ["%" + str(next(places)) for _ in range(count)] for count in (registers_c, registers_a, registers_b)
    )
    text = f"mma.sync.aligned.{shape}.row.col.{result}.{kind}.{kind}.{result} " + ", ".join(
        "{" + ", ".join(names) + "}" for names in (d, ra, rb, d)
    )
    outputs = ", ".join(f'"+{out_letter}"(c[{i}])' for i in range(registers_c))
    inputs = ", ".join(
        f'"{letter}"({name}[{i}])'
        for name, count in (("a", registers_a), ("b", registers_b))
        for i in range(count)
    )
    code = f"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void k(const {_C[kind]}* x, const {_C[kind]}* y, {c_type}* out) {{
        const int g = threadIdx.x / 4, t = threadIdx.x % 4;
        {holds} a[{registers_a}], b[{registers_b}];
        {out_holds} c[{registers_c}] = {{}};
        for (int r = 0; r < {registers_a}; ++r) {{
            const int row = g + 8 * (r % {rows}), column = {parts} * t + {4 * parts} * (r / {rows});
            a[r] = *reinterpret_cast<const {holds}*>(x + row * {k} + column);
        }}
        for (int r = 0; r < {registers_b}; ++r)
            b[r] = *reinterpret_cast<const {holds}*>(y + g * {k} + {parts} * t + {4 * parts} * r);
        asm volatile("{text};" : {outputs} : {inputs});
        const {c_type}* values = reinterpret_cast<const {c_type}*>(c);
        for (int i = 0; i < {m * n // 32}; ++i) out[(g + 8 * (i / 2)) * {n} + 2 * t + i % 2] = values[i];
    }}"""
    dtype = {"f32": DType.F32, "f16": DType.F16, "f64": DType.F64, "s32": DType.I32}[result]
    found = emu_kit.compute(code, "k[1, 32](x, y, out)", {"x": a, "y": b}, {"out": ((m, n), dtype)})["out"]
    assert np.array_equal(found.astype(np.float64), exact_a @ exact_b.T)


WMMA = [
    ("f16", "half", "float", 16, 16, 16), ("f16", "half", "half", 16, 16, 16),
    ("f16", "half", "float", 32, 8, 16), ("f16", "half", "float", 8, 32, 16),
    ("bf16", "__nv_bfloat16", "float", 16, 16, 16),
    ("bf16", "__nv_bfloat16", "float", 32, 8, 16), ("tf32", "wmma::precision::tf32", "float", 16, 16, 8),
    ("s8", "signed char", "int", 16, 16, 16), ("s8", "signed char", "int", 8, 32, 16),
    ("f16", "half", "half", 32, 8, 16), ("f16", "half", "half", 8, 32, 16),
    ("bf16", "__nv_bfloat16", "float", 8, 32, 16), ("s8", "signed char", "int", 32, 8, 16),
    ("u8", "unsigned char", "int", 16, 16, 16), ("u8", "unsigned char", "int", 32, 8, 16),
    ("u8", "unsigned char", "int", 8, 32, 16), ("f64", "double", "double", 8, 8, 4),
]  # fmt: skip


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("kind", "element", "result", "m", "n", "k"), WMMA, ids=lambda v: str(v))
def test_wmma(kind: str, element: str, result: str, m: int, n: int, k: int, columns: bool) -> None:
    (a, exact_a), (b, exact_b) = _values(kind, (m, k)), _values(kind, (k, n))
    layout, pitch_a, pitch_b, pitch_c = ("col", m, k, m) if columns else ("row", k, n, n)
    code = f"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    #include <mma.h>
    using namespace nvcuda;
    __global__ void k(const {_C[kind]}* x, const {_C[kind]}* y, {result}* out) {{
        __shared__ __align__(32) {_C[kind]} s[{m * k}];
        for (int i = threadIdx.x; i < {m * k}; i += 32) s[i] = x[i];
        __syncwarp();
        wmma::fragment<wmma::matrix_a, {m}, {n}, {k}, {element}, wmma::{layout}_major> fa;
        wmma::fragment<wmma::matrix_b, {m}, {n}, {k}, {element}, wmma::{layout}_major> fb;
        wmma::fragment<wmma::accumulator, {m}, {n}, {k}, {result}> fc;
        wmma::fill_fragment(fc, {result}(1));
        wmma::load_matrix_sync(fa, s, {pitch_a});
        wmma::load_matrix_sync(fb, y, {pitch_b});
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(out, fc, {pitch_c}, wmma::mem_{layout}_major);
    }}"""
    dtype = {"float": DType.F32, "half": DType.F16, "int": DType.I32, "double": DType.F64}[result]
    given = {
        "x": np.ascontiguousarray(a.T if columns else a),
        "y": np.ascontiguousarray(b.T if columns else b),
    }
    shape = (n, m) if columns else (m, n)
    found = emu_kit.compute(code, "k[1, 32](x, y, out)", given, {"out": (shape, dtype)})["out"]
    assert np.array_equal((found.T if columns else found).astype(np.float64), exact_a @ exact_b + 1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_ldmatrix_and_stmatrix_turn_around(number: int, transposed: bool) -> None:
    names = ", ".join(f"%{i}" for i in range(number))
    outputs = ", ".join(f'"=r"(r[{i}])' for i in range(number))
    inputs = ", ".join(f'"r"(r[{i}])' for i in range(number))
    stored = ", ".join(f"%{i + 1}" for i in range(number))
    form = f"m8n8.x{number}{'.trans' if transposed else ''}.shared.b16"
    code = f"""
    __global__ void k(const short* x, short* out, int* held) {{
        __shared__ __align__(16) short s[256], t[256];
        for (int i = threadIdx.x; i < 256; i += 32) s[i] = x[i];
        __syncwarp();
        unsigned r[{number}], from = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % {8 * number} * 8);
        unsigned to = (unsigned)__cvta_generic_to_shared(t + threadIdx.x % {8 * number} * 8);
        asm volatile("ldmatrix.sync.aligned.{form} {{{names}}}, [%{number}];" : {outputs} : "r"(from));
        asm volatile("stmatrix.sync.aligned.{form} [%0], {{{stored}}};" :: "r"(to), {inputs});
        __syncwarp();
        for (int i = threadIdx.x; i < {64 * number}; i += 32) out[i] = t[i];
        held[threadIdx.x] = r[0];
    }}"""
    x = np.arange(256, dtype=np.int16)
    outputs_wanted = {"out0": ((64 * number,), DType.I16), "out1": ((32,), DType.I32)}
    found = emu_kit.compute(code, "k[1, 32](x, out0, out1)", {"x": x}, outputs_wanted, arch="sm_90")
    assert np.array_equal(found["out0"], x[: 64 * number])
    matrix = x[:64].reshape(8, 8).T if transposed else x[:64].reshape(8, 8)
    assert np.array_equal(found["out1"].view(np.int16).reshape(32, 2), matrix.reshape(32, 2))


def test_products_are_summed_with_the_precision_of_tensor_cores() -> None:
    """Better than half precision, and no better than single: cut towards zero, several products at a time."""
    a, b = RNG.standard_normal((16, 16)).astype(np.float16), RNG.standard_normal((16, 16)).astype(np.float16)
    code = """
    #include <mma.h>
    using namespace nvcuda;
    __global__ void k(const half* x, const half* y, float* out) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::fill_fragment(fc, 1000.0f);
        wmma::load_matrix_sync(fa, x, 16);
        wmma::load_matrix_sync(fb, y, 16);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(out, fc, 16, wmma::mem_row_major);
    }"""
    found = emu_kit.compute(code, "k[1, 32](x, y, out)", {"x": a, "y": b}, {"out": ((16, 16), DType.F32)})[
        "out"
    ]
    exact = a.astype(np.float64) @ b.astype(np.float64) + 1000
    assert np.all(found <= exact) and np.all(exact - found < 4 * 2.0**-14)
    assert np.any(found != exact.astype(np.float32))
