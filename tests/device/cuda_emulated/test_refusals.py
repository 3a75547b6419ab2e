"""What the emulator does not execute is said by name and line, and launches are checked before they run."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.errors import UsageError
from cupilot.types import DType, Stage

UNSUPPORTED = {
    "wgmma.fence.sync.aligned;": "wgmma",
    "cp.async.bulk.commit_group;": "cp.async.bulk",
    "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%0},{%1},{%1},{%0,%0};": "mma",
    "barrier.cluster.arrive;": "barrier.cluster",
}


@pytest.mark.parametrize(("text", "name"), UNSUPPORTED.items(), ids=UNSUPPORTED.values())
def test_an_instruction_that_is_not_executed_is_named(text: str, name: str) -> None:
    operands = ': "+r"(r) : "r"(r)' if "%" in text else "::"
    code = f"""__global__ void k(const float* x, float* out) {{
  int r = 0;
  asm volatile("{text}" {operands});
}}"""
    failed = emu_kit.refusal(code, arch="sm_90a")
    assert failed.stage is Stage.INSPECT
    assert "line 7" in failed.reason and f"`{name}" in failed.reason, failed.reason


def test_recursion_is_refused() -> None:
    code = """
    __device__ __noinline__ int f(int n) { return n < 2 ? 1 : f(n - 1) + f(n - 2); }
    __global__ void k(const float* x, float* out) { out[0] = f((int)x[0]); }"""
    assert "recursion" in emu_kit.refusal(code).reason


def test_calls_that_multiply_are_cut_short() -> None:
    functions = "".join(
        f"__device__ __noinline__ float f{i}(float v) {{ return f{i - 1}(v) + f{i - 1}(v * 2); }}\n"
        for i in range(1, 22)
    )
    code = f"""__device__ __noinline__ float f0(float v) {{ return v + 1; }}
    {functions}
    __global__ void k(const float* x, float* out) {{ out[0] = f21(x[0]); }}"""
    refused = emu_kit.refusal(code)
    assert refused.stage is Stage.INSPECT and "100000 instructions" in refused.reason


LAUNCHES = {
    "k[1, 64](x, out, shared=200000)": "bytes of shared memory per block; sm_80 has",
    "k[100000, 32](x, out, cooperative=1)": "a cooperative grid of 100000 blocks",
    "k[1, 32](x, out, cluster=2)": "the emulator has no clusters",
    "k[1, 512](x, out)": "__launch_bounds__ promises at most 256",
}


@pytest.mark.parametrize(("launch", "words"), LAUNCHES.items(), ids=LAUNCHES.keys())
def test_launches_that_cannot_be(launch: str, words: str) -> None:
    code = "__global__ void __launch_bounds__(256) k(const float* x, float* out) { out[threadIdx.x] = x[0]; }"
    failed = emu_kit.refusal(code, launch)
    assert failed.stage is Stage.LOAD and words in failed.reason, failed


ARGUMENTS = {
    "const double* x, float* out": "wrong element type for `x`",
    "float* x, float* out": "takes the input `x` by a pointer it could write through",
    "const float* x, int out": "is a number but receives the tensor `out`",
    "const float* x": "has 1 parameters but is launched with 2",
}


@pytest.mark.parametrize(("parameters", "words"), ARGUMENTS.items(), ids=ARGUMENTS.keys())
def test_arguments_that_do_not_fit(parameters: str, words: str) -> None:
    failed = emu_kit.refusal(f"__global__ void k({parameters}) {{}}")
    assert failed.stage is Stage.COMPILE and words in failed.reason, failed


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(UsageError, match="sm_80"):
        CudaEmulated("sm_10")


def test_what_is_unspecified_varies() -> None:
    """Multiprocessors, approximate functions and uninitialised registers cannot be relied on."""
    code = """
    __global__ void k(float* out, int* where) {
        int sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        where[blockIdx.x] = sm;
        out[blockIdx.x] = __expf(1.0f + blockIdx.x);
    }"""
    outputs = {"out0": ((64,), DType.F32), "out1": ((64,), DType.I32)}
    first, second = (
        emu_kit.compute(code, "k[64, 1](out0, out1)", {}, outputs, order_seed=seed) for seed in (1, 2)
    )
    assert not np.array_equal(first["out1"], second["out1"])
    assert not np.array_equal(first["out0"], second["out0"])


def test_it_says_where_it_does_not_follow_races() -> None:
    code = """
    __global__ void k(float* out, int* count) {
        out[blockIdx.x] = 1;
        __threadfence();
        atomicAdd(count, 1);
    }"""
    outputs = {"out0": ((3000,), DType.F32), "out1": ((1,), DType.I32)}
    for blocks, followed in ((100, True), (3000, False)):
        opened = emu_kit.open_kernel(code, f"zero(out1)\nk[{blocks}, 1](out0, out1)", {}, outputs)
        with opened as session:  # type: ignore[union-attr]
            session.run(0, 1, 1)
            assert session.counted().kernels[0].races_followed is followed


def test_printf_reaches_the_parent() -> None:
    code = r"""
    #include <stdio.h>
    __global__ void k(float* out) {
        printf("%d of %s: %.1f%%\n", threadIdx.x, "two", 2.5);
        out[0] = 1;
    }"""
    opened = emu_kit.open_kernel(code, "k[1, 2](out)", {}, {"out": ((1,), DType.F32)})
    with opened as session:  # type: ignore[union-attr]
        session.run(0, 1, 1)
        assert session.printed == "0 of two: 2.5%\n1 of two: 2.5%\n"
