"""Asynchronous copies, mbarriers, reducing barriers and other waiting, by what they leave behind."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.types import DType

X = np.arange(1, 1025, dtype=np.float32)
OUT = {"out": ((1024,), DType.F32)}


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("wait", ["cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"])
def test_copies_arrive_with_zeros_behind_what_is_taken(size: int, wait: str) -> None:
    words = size // 4
    cache = "cg" if size == 16 else "ca"
    code = f"""__global__ void k(const float* x, float* out) {{
        __shared__ __align__(16) float s[256 * {words}];
        const unsigned to = (unsigned)__cvta_generic_to_shared(s + {words} * threadIdx.x);
        const int taken = threadIdx.x % 2 ? {size} : threadIdx.x % 4 ? {size} / 2 : 0;
        asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size}, %2;"
                     :: "r"(to), "l"(x + {words} * threadIdx.x), "r"(taken));
        asm volatile("{wait}" ::: "memory");
        __syncthreads();
        for (int i = threadIdx.x; i < 256 * {words}; i += 256) out[i] = s[i];
    }}"""
    found = emu_kit.compute(code, "zero(out)\nk[1, 256](x, out)", {"x": X}, OUT)["out"][: 256 * words]
    wanted = X[: 256 * words].view(np.uint8).reshape(256, size).copy()
    wanted[2::4, size // 2 :] = 0
    wanted[0::4] = 0
    assert np.array_equal(found.view(np.uint8).reshape(256, size), wanted)


def test_groups_are_waited_for_one_by_one() -> None:
    code = """
    #include <cuda_pipeline.h>
    __global__ void k(const float* x, float* out) {
        __shared__ float s[4][64];
        for (int g = 0; g < 4; ++g) {
            __pipeline_memcpy_async(&s[g][threadIdx.x], x + 64 * g + threadIdx.x, 4);
            __pipeline_commit();
        }
        __pipeline_wait_prior(3); out[threadIdx.x] = s[0][threadIdx.x];
        __pipeline_wait_prior(2); out[64 + threadIdx.x] = s[1][threadIdx.x];
        __pipeline_wait_prior(0); __syncthreads();
        out[128 + threadIdx.x] = s[2][63 - threadIdx.x]; out[192 + threadIdx.x] = s[3][63 - threadIdx.x];
    }"""
    found = emu_kit.compute(code, "k[1, 64](x, out)", {"x": X}, OUT)["out"].reshape(16, 64)
    rows = X.reshape(16, 64)
    assert np.array_equal(found[:2], rows[:2]) and np.array_equal(found[2:4], rows[2:4, ::-1])


def test_an_mbarrier_counts_phases_and_waits_for_copies() -> None:
    code = """__global__ void k(const float* x, float* out) {
        __shared__ __align__(8) unsigned long long bar;
        __shared__ float s[64];
        const unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
        const unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
        if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(b));
        __syncthreads();
        unsigned long long state;
        unsigned before, done;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(before) : "l"(state));
        do asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                        : "=r"(done) : "r"(b), "l"(state) : "memory"); while (!done);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + threadIdx.x));
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(b) : "memory");
        do asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1;"
                        "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(b) : "memory"); while (!done);
        out[threadIdx.x] = s[63 - threadIdx.x];
        out[64 + threadIdx.x] = before;
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(b));
    }"""
    found = emu_kit.compute(code, "k[1, 64](x, out)", {"x": X}, OUT)["out"]
    assert np.array_equal(found[:64], X[63::-1])
    assert sorted(found[64:128]) == list(range(1, 65))


def test_barriers_that_reduce_and_barriers_with_numbers() -> None:
    code = """__global__ void k(const float* x, float* out) {
        __shared__ float s[64];
        const int t = threadIdx.x, v = (int)x[t];
        out[t] = __syncthreads_count(v % 3 == 0);
        out[128 + t] = __syncthreads_and(v > 0) + 2 * __syncthreads_and(v > 1);
        out[256 + t] = __syncthreads_or(v == 128) + 2 * __syncthreads_or(v > 128);
        if (t < 64) { s[t] = v; asm volatile("bar.arrive 3, 128;" ::: "memory"); }
        else { asm volatile("bar.sync 3, 128;" ::: "memory"); out[384 + t - 64] = s[127 - t]; }
    }"""
    found = emu_kit.compute(code, "k[1, 128](x, out)", {"x": X}, OUT)["out"]
    assert np.all(found[:128] == 42) and np.all(found[128:256] == 1) and np.all(found[256:384] == 1)
    assert np.array_equal(found[384:448], X[63::-1])


def test_leaders_wide_matches_and_special_registers() -> None:
    code = """__global__ void k(const float* x, float* out) {
        unsigned leader, chosen, lanes, equal, all, small;
        asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }"
                     : "=r"(leader), "=r"(chosen));
        const unsigned long long wide = (unsigned long long)(threadIdx.x % 3) << 40;
        asm volatile("match.any.sync.b64 %0, %1, 0xffffffff;" : "=r"(equal) : "l"(wide));
        asm volatile("{ .reg .pred p; match.all.sync.b64 %0|p, %1, 0xffffffff; }"
                     : "=r"(all) : "l"(wide >> 50));
        asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(lanes) : "r"(threadIdx.x));
        asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(small) : "r"((int)threadIdx.x - 9));
        unsigned long long clock;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(clock));
        asm volatile("prefetch.global.L1 [%0]; nanosleep.u32 1;" :: "l"(x));
        float* o = out + 6 * threadIdx.x;
        o[0] = leader; o[1] = chosen; o[2] = __popc(equal) * 100 + (equal >> threadIdx.x & 1);
        o[3] = __popc(all); o[4] = lanes; o[5] = (int)small + (clock == 0);
    }"""
    found = emu_kit.compute(code, "k[1, 32](x, out)", {"x": X}, OUT, "sm_90")["out"][:192].reshape(32, 6)
    assert len(set(found[:, 0])) == 1 and found[:, 1].sum() == 1
    counts = np.array([(np.arange(32) % 3 == t % 3).sum() for t in range(32)])
    assert np.array_equal(found[:, 2], counts * 100 + 1)
    assert np.all(found[:, 3] == 32) and np.all(found[:, 4] == 496) and np.all(found[:, 5] == -9)
