"""Loads, stores and atomics in every state space, type and width."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.types import DType

N = 256
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", [DType.I8, DType.I16, DType.I32, DType.I64, DType.F64, DType.F16])
def test_every_width_through_shared_and_local_memory(dtype: DType) -> None:
    c_type = {"i8": "signed char", "i16": "short", "i32": "int", "i64": "long long", "f64": "double",
              "f16": "__half"}[dtype.value]  # fmt: skip
    x = RNG.integers(-100, 100, N).astype(
        {"f16": np.float16, "f64": np.float64}.get(dtype.value, f"i{dtype.size_bytes}")
    )
    code = f"""
    #include <cuda_fp16.h>
    __global__ void k(const {c_type}* x, {c_type}* out, int turn) {{
        __shared__ {c_type} s[128];
        {c_type} a[4];
        s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 4; ++i) a[(i + turn) % 4] = s[(threadIdx.x + i) % 128];
        out[blockIdx.x * 128 + threadIdx.x] = a[(threadIdx.x + turn) % 4];
    }}"""
    found = emu_kit.compute(code, "k[2, 128](x, out, 1)", {"x": x}, {"out": ((N,), dtype)})["out"]
    lanes = np.arange(128)
    wanted = np.concatenate([x[b : b + 128][(lanes + lanes % 4) % 128] for b in (0, 128)])
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("vector", ["float2", "float4", "double2", "uchar4", "short4", "int2"])
def test_vectors_and_generic_addresses(vector: str) -> None:
    code = f"""
    __device__ __noinline__ {vector} get(const {vector}* p) {{ return *p; }}
    __global__ void k(const float* x, float* out) {{
        __shared__ {vector} s[16];
        const {vector}* from = reinterpret_cast<const {vector}*>(x);
        if (threadIdx.x < 16) s[threadIdx.x] = from[threadIdx.x];
        __syncthreads();
        const {vector}* p = threadIdx.x % 2 ? s : from;
        if (threadIdx.x < 16) reinterpret_cast<{vector}*>(out)[15 - threadIdx.x] = get(p + threadIdx.x);
    }}"""
    x = RNG.standard_normal(N).astype(np.float32)
    size = {"float2": 8, "float4": 16, "double2": 16, "uchar4": 4, "short4": 8, "int2": 8}[vector]
    raw = emu_kit.compute(code, "k[1, 64](x, out)", {"x": x}, {"out": ((N,), DType.F32)})["out"].tobytes()
    given = x.tobytes()
    for k in range(16):
        assert raw[(15 - k) * size : (16 - k) * size] == given[k * size : (k + 1) * size]


def test_constant_memory_dynamic_shared_memory_and_structs() -> None:
    code = """
    struct Pair { int a; float b; };
    __constant__ Pair table[3] = {{1, 0.5f}, {2, 1.5f}, {3, 2.5f}};
    __device__ const float more[2] = {10.0f, 20.0f};
    __global__ void k(const float* x, float* out, float scale, double shift, long long n, bool flag) {
        extern __shared__ char raw[];
        Pair* pairs = reinterpret_cast<Pair*>(raw);
        pairs[threadIdx.x] = table[threadIdx.x % 3];
        __syncthreads();
        Pair p = pairs[(threadIdx.x + 1) % blockDim.x];
        const float sum = p.a * scale + p.b + (float)shift;
        if (flag && threadIdx.x < n) out[threadIdx.x] = sum + more[threadIdx.x % 2];
    }"""
    x = np.zeros(N, np.float32)
    out = {"out": ((64,), DType.F32)}
    found = emu_kit.compute(code, "k[1, 64](x, out, 2.0, 0.25, 64, 1, shared=512)", {"x": x}, out)["out"]
    k = (np.arange(64) + 1) % 64 % 3
    assert np.array_equal(found, (k + 1) * 2.0 + (k + 0.5) + 0.25 + np.array([10, 20])[np.arange(64) % 2])


ATOMICS = {
    "atomicAdd(out, v)": int.__add__, "atomicSub(out, v)": int.__sub__, "atomicMin(out, v)": min,
    "atomicMax(out, v)": max, "atomicAnd(out, v)": int.__and__, "atomicOr(out, v)": int.__or__,
    "atomicXor(out, v)": int.__xor__,
}  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_lose_nothing(space: str) -> None:
    x = RNG.integers(-1000, 1000, N).astype(np.int32)
    for call, operation in ATOMICS.items():
        where = call.replace("out", "s") if space == "shared" else call
        body = {
            "global": f"{where};",
            "shared": f"__shared__ int s[1]; if (threadIdx.x == 0) s[0] = 0; __syncthreads(); {where};"
            "__syncthreads(); if (threadIdx.x == 0) out[0] = s[0];",
        }[space]
        head = "__global__ void k(const int* x, int* out) { int v = x[blockIdx.x * 128 + threadIdx.x];"
        code = f"{head} {body} }}"
        grid = "k[2, 128](x, out)" if space == "global" else "k[1, 128](x, out)"
        found = emu_kit.compute(code, f"zero(out)\n{grid}", {"x": x}, {"out": ((1,), DType.I32)})["out"][0]
        wanted = 0
        for v in x[: 256 if space == "global" else 128]:
            wanted = operation(wanted, int(v))
        assert found == np.int32(wanted), call


def test_atomics_give_back_what_was_there() -> None:
    code = """
    __global__ void k(int* out, int* wrapped, long long* wide) {
        out[1 + blockIdx.x * 64 + threadIdx.x] = atomicAdd(out, 1);
        atomicInc(reinterpret_cast<unsigned*>(wrapped), 9);
        unsigned long long* w = reinterpret_cast<unsigned long long*>(wide);
        unsigned long long seen = atomicAdd(w, 0), before;
        do { before = seen; seen = atomicCAS(w, before, before * 3 + 1); } while (seen != before);
    }"""
    launch = "zero(out0)\nzero(out1)\nzero(out2)\nk[2, 64](out0, out1, out2)"
    outputs = {"out0": ((129,), DType.I32), "out1": ((1,), DType.I32), "out2": ((1,), DType.I64)}
    found = emu_kit.compute(code, launch, {}, outputs)
    assert sorted(found["out0"][1:]) == list(range(128)) and found["out1"][0] == 128 % 10
    value = 0
    for _ in range(128):
        value = (value * 3 + 1) % 2**64
    assert int(found["out2"].view(np.uint64)[0]) == value


def test_floating_atomics() -> None:
    code = """
    #include <cuda_fp16.h>
    __global__ void k(float* a, double* b, __half* c) {
        atomicAdd(a, 0.5f); atomicAdd(b, 0.25); atomicAdd(c, __float2half(0.5f));
        atomicAdd(reinterpret_cast<__half2*>(c) + 1, __floats2half2_rn(1.0f, 2.0f));
    }"""
    launch = "zero(out0)\nzero(out1)\nzero(out2)\nk[2, 32](out0, out1, out2)"
    outputs = {"out0": ((1,), DType.F32), "out1": ((1,), DType.F64), "out2": ((4,), DType.F16)}
    found = emu_kit.compute(code, launch, {}, outputs)
    assert found["out0"][0] == 32 and found["out1"][0] == 16
    assert list(found["out2"]) == [32, 0, 64, 128]
