"""What the compile gate says of good and bad CUDA text."""

from __future__ import annotations

import pytest

from cupilot.device.base import ElementKind
from cupilot.device.cuda_emulated import nvrtc, sass
from cupilot.device.cuda_emulated.gate import Gated, pass_gate
from cupilot.device.cuda_emulated.occupancy import Limiter, occupancy
from cupilot.types import Failed, Stage

SCALE = """
#include <cfloat>
#include <cmath>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void scale(const float* __restrict__ x, __half* y, const __nv_bfloat16* z, const float4* v,
                      int n, bool flag, size_t m, double s) {
    __shared__ float tile[256];
    int i = blockIdx.x * THREADS + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : -FLT_MAX;
    __syncthreads();
    float t = tile[(threadIdx.x + 1) % THREADS];
    if (i < n && flag) y[i] = __float2half(t * s + float(z[i]) + std::fmax(v[m].x, 0.f));
}
"""


def gate(
    source: str, *kernels: str, arch: str = "sm_80", line: int = 1, limit_s: float = 60, **defines: int
) -> Gated | Failed:
    return pass_gate(source, line, kernels, arch, defines, limit_s)


def passed(source: str, *kernels: str, arch: str = "sm_80", **defines: int) -> Gated:
    outcome = gate(source, *kernels, arch=arch, **defines)
    assert isinstance(outcome, Gated), outcome
    return outcome


def failed(source: str, *kernels: str, line: int = 1, limit_s: float = 60) -> Failed:
    outcome = gate(source, *kernels, line=line, limit_s=limit_s)
    assert isinstance(outcome, Failed)
    assert outcome.stage is Stage.COMPILE
    return outcome


@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
def test_reports_resources_on_every_architecture(arch: str) -> None:
    kernel = passed(SCALE, "scale", arch=arch, THREADS=256).kernels["scale"]
    assert 8 <= kernel.resources.registers <= 64
    assert kernel.resources.shared_bytes == 1024
    assert kernel.resources.barriers == 1
    assert kernel.resources.spill_store_bytes == kernel.resources.stack_bytes == 0


def test_the_compiler_says_what_each_parameter_is() -> None:
    kernel = passed(SCALE, "scale", THREADS=256).kernels["scale"]
    described = [(p.kind, p.width_bytes, p.is_pointer, p.is_const, p.is_bfloat) for p in kernel.parameters]
    floating = ElementKind.FLOATING
    assert described == [
        (floating, 4, True, True, False),
        (floating, 2, True, False, False),
        (floating, 2, True, True, True),
        (floating, 4, True, True, False),
        (ElementKind.SIGNED, 4, False, False, False),
        (ElementKind.BOOLEAN, 1, False, False, False),
        (ElementKind.UNSIGNED, 8, False, False, False),
        (floating, 8, False, False, False),
    ]


def test_a_kernel_keeps_its_name_or_is_found_under_its_mangled_one() -> None:
    assert passed(SCALE, "scale", THREADS=64).kernels["scale"].entry.startswith("_Z5scale")
    kernels = passed('extern "C" __global__ void plain(int* x) { *x = 1; }', "plain").kernels
    assert kernels["plain"].entry == "plain"


def test_a_tunable_does_not_rewrite_the_headers() -> None:
    source = "#include <cuda_pipeline.h>\n__global__ void k(int* x) { *x = N; }"
    assert "mov.u32 \t%r1, 7" in passed(source, "k", N=7).ptx


def test_an_error_stands_at_its_line_of_the_kernel_file() -> None:
    outcome = failed("\n\n__global__ void k(float* x) {\n  x[0] = y;\n}", "k", line=10)
    assert outcome.reason == 'does not compile: line 13: error: identifier "y" is undefined'


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            '__global__ void k(float* x) {\nasm("foo.bar %0;" :: "f"(x[0]));\n}',
            "line 2: error: Unknown",
        ),
        ("extern __device__ float f(); __global__ void k(float* x) { *x = f(); }", "Unresolved extern"),
        ("#error never\n__global__ void k(float* x) { *x = 1; }", "line 1: catastrophic error"),
        (
            "__global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = *x; __syncthreads();"
            "*x = s[(int)*x]; }",
            "declares 80000 bytes of shared memory, at most 49152",
        ),
        ("__global__ void other(float* x) { *x = 1; }", "the text defines no such kernel"),
        ("__device__ void k(float* x) { *x = 1; }", "is not a `__global__` function"),
        ("#include <torch/extension.h>\n__global__ void k(float* x) { *x = 1; }", "cannot open source file"),
        ('#include "/etc/passwd"\n__global__ void k(float* x) { *x = 1; }', "does not compile"),
        (
            "template <int N> struct F { static const int v = F<N - 1>::v + 1; };"
            "__global__ void k(int* x) { *x = F<100000000>::v; }",
            "excessive recursion",
        ),
    ],
)
def test_bad_text_is_refused_with_a_reason(source: str, says: str) -> None:
    outcome = failed(source, "k")
    assert says in outcome.reason
    assert "root:" not in outcome.log


def test_a_compilation_has_a_time_limit() -> None:
    bomb = (
        "template <int A, int B> struct F { static const long v = F<A - 1, B>::v + F<A - 1, B + A * 7>::v; };"
        "template <int B> struct F<0, B> { static const long v = B; };"
        "__global__ void k(long* x) { *x = F<40, 0>::v; }"
    )
    assert "took longer than 1.5 s" in failed(bomb, "k", limit_s=1.5).reason


def test_machine_code_has_an_instruction_mix() -> None:
    gated = passed(SCALE, "scale", THREADS=256)
    text = sass.disassemble(gated.cubin)[gated.kernels["scale"].entry]
    mix = sass.instruction_mix(text)
    assert mix["BAR"] == 1
    assert mix["STS"] == 1
    assert mix["EXIT"] >= 1


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ("sm_80", 256, 32, 0, 8, Limiter.WARPS),
        ("sm_80", 256, 128, 0, 2, Limiter.REGISTERS),
        ("sm_80", 256, 32, 48 * 1024, 3, Limiter.SHARED),
        ("sm_80", 32, 16, 0, 32, Limiter.BLOCKS),
        ("sm_75", 1024, 64, 0, 1, Limiter.WARPS),
        ("sm_90", 1024, 255, 0, 0, Limiter.NOTHING_FITS),
        ("sm_86", 128, 40, 99 * 1024, 1, Limiter.SHARED),
    ],
)
def test_occupancy_follows_the_published_rules(
    arch: str, threads: int, registers: int, shared: int, blocks: int, limiter: Limiter
) -> None:
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
