"""The loops of compiled functions. Everything is compiled once, for AVX2, and never run."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from cupilot.device.assembly import Loop, facts, innermost_loops, main_loops, read_loops
from cupilot.device.instructions import parse_instruction

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump"), reason="needs objdump and x86-64"
)

SOURCE = """
#include <immintrin.h>
#include <cmath>
#define KERNEL extern "C" void
typedef const float* __restrict__ In;
typedef float* __restrict__ Out;

KERNEL saxpy(long b, In x, Out y, long n) { for (long i = 0; i < n; ++i) y[i] += 2.5f * x[i]; }
KERNEL exponential(long b, In x, Out y, long n) { for (long i = 0; i < n; ++i) y[i] = expf(x[i]); }
KERNEL ordered_sum(long b, In x, Out y, long n) {
    float s = 0;
    for (long i = 0; i < n; ++i) s += x[i];
    *y = s;
}
KERNEL four_sums(long b, In x, Out y, long n) {
    __m256 s[4] = {};
    for (long i = 0; i < n; i += 32) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) s[j] = _mm256_add_ps(s[j], _mm256_loadu_ps(x + i + 8 * j));
    }
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3])));
}
KERNEL reciprocal(long b, In x, Out y, long n) { for (long i = 0; i < n; ++i) y[i] = 1.0f / x[i]; }
KERNEL indirect(long b, In x, const int* __restrict__ at, Out y, long n) {
    for (long i = 0; i < n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_i32gather_ps(x, _mm256_loadu_si256((const __m256i*)(at + i)), 4));
}
KERNEL streamed(long b, In x, Out y, long n) {
    for (long i = 0; i < n; i += 8) _mm256_stream_ps(y + i, _mm256_loadu_ps(x + i));
}
KERNEL crowded(long b, In x, Out y, long n) {
    __m256 s[24];
#pragma GCC unroll 24
    for (int j = 0; j < 24; ++j) s[j] = _mm256_loadu_ps(y + 8 * j);
    for (long i = 0; i < n; ++i) {
        __m256 v = _mm256_broadcast_ss(x + i);
#pragma GCC unroll 24
        for (int j = 0; j < 24; ++j) s[j] = _mm256_fmadd_ps(s[j], v, v);
    }
#pragma GCC unroll 24
    for (int j = 0; j < 24; ++j) _mm256_storeu_ps(y + 8 * j, s[j]);
}
KERNEL nested(long b, In x, In w, Out y, long n) {
    for (long i = 0; i < n; ++i) for (long j = 0; j < n; ++j) for (long k = 0; k < n; ++k)
        y[i * n + k] += x[i * n + j] * w[j * n + k];
}
KERNEL straight(long b, In x, Out y, long n) { y[b] = x[b] * 2; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assembly")
    (folder / "k.cpp").write_text(SOURCE)
    flags = ["-O3", "-mavx2", "-mfma", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, "k.cpp", "-o", "k.so"], cwd=folder, check=True)
    return folder / "k.so"


@pytest.fixture(scope="module")
def loops(library: Path) -> Mapping[str, Loop]:
    """The widest main loop of each function."""
    found = innermost_loops(library, library.parent)
    assert found is not None
    return {loop.function: loop for loop in sorted(main_loops(found), key=lambda loop: loop.vector_bits)}


def test_a_vector_loop(loops: Mapping[str, Loop]) -> None:
    loop = loops["saxpy"]
    assert loop.vector_bits == 256
    assert (loop.packed, loop.scalar, loop.fused) == (1, 0, 1)
    assert (loop.loads, loop.stores) == (2, 1)
    assert loop.depth == 1
    assert not loop.calls
    assert loop.accumulators == 0
    assert loop.operations == {"mul", "add"}


def test_a_call_in_a_loop_is_named(loops: Mapping[str, Loop]) -> None:
    assert loops["exponential"].calls == ("expf",)


def test_an_ordered_sum_is_one_scalar_chain(loops: Mapping[str, Loop]) -> None:
    loop = loops["ordered_sum"]
    assert loop.packed == 0
    assert loop.accumulators == 1
    assert loop.chain == loop.scalar


def test_independent_sums_are_told_apart(loops: Mapping[str, Loop]) -> None:
    assert (loops["four_sums"].accumulators, loops["four_sums"].chain) == (4, 1)


def test_divisions_gathers_and_streaming_stores_are_counted(loops: Mapping[str, Loop]) -> None:
    assert loops["reciprocal"].divides >= 1
    assert loops["indirect"].gathers == 1
    assert loops["streamed"].streaming_stores == 1
    assert loops["saxpy"].divides == loops["saxpy"].gathers == loops["saxpy"].streaming_stores == 0


def test_more_accumulators_than_registers_are_seen_on_the_stack(loops: Mapping[str, Loop]) -> None:
    assert loops["crowded"].spills >= 8
    assert loops["four_sums"].spills == 0


def test_the_innermost_of_nested_loops(loops: Mapping[str, Loop]) -> None:
    assert loops["nested"].depth == 3
    assert loops["nested"].vector_bits == 256


def test_straight_code_and_the_runtime_have_no_loops(loops: Mapping[str, Loop]) -> None:
    assert "straight" not in loops
    assert not any("tm_clones" in name for name in loops)


def test_facts_of_all_loops_together(library: Path) -> None:
    found = innermost_loops(library, library.parent)
    assert found is not None
    together = facts(found)
    assert together["vector_bits"] == 256
    assert 0 < together["vector_share"] < 1
    assert together["calls"] == 1
    assert together["loop_depth"] == 3
    assert facts(()) == {}


LISTING = """
0000000000001000 <kernel>:
    1000:\ttest   %rdx,%rdx
    1003:\tje     1020 <kernel+0x20>
    1005:\txor    %eax,%eax
    1010:\tvaddps (%rsi,%rax,4),%ymm0,%ymm0
    1015:\tadd    $0x8,%rax
    1019:\tcmp    %rax,%rdx
    101c:\tjne    1010 <kernel+0x10>
    1020:\tvaddss (%rsi,%rax,4),%xmm1,%xmm1
    1025:\tinc    %rax
    1028:\tcmp    %rax,%rcx
    102b:\tjne    1020 <kernel+0x20>
    102d:\tret
    1030:\txor    %eax,%eax
    1032:\tjmp    1020 <kernel+0x20>
"""


def test_code_laid_out_backwards_is_no_loop() -> None:
    assert [hex(loop.address) for loop in read_loops(LISTING)] == ["0x1010", "0x1020"]
    assert all(loop.depth == 1 and loop.instructions == 4 for loop in read_loops(LISTING))


def test_a_remainder_is_not_a_main_loop() -> None:
    assert [loop.vector_bits for loop in main_loops(read_loops(LISTING))] == [256]


def test_an_ordered_sum_beside_a_vector_loop_is_a_main_loop() -> None:
    no_sum = LISTING.replace("(%rsi,%rax,4),%ymm0,%ymm0", "(%rsi,%rax,4),%ymm1,%ymm0")
    assert len(main_loops(read_loops(no_sum))) == 2


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("10:\tvfmadd231ps %zmm1,%zmm2,%zmm3", {"1", "2", "3"}, {"3"}),
        ("10:\tvaddps %ymm1,%ymm2,%ymm3", {"1", "2"}, {"3"}),
        ("10:\taddps  %xmm1,%xmm2", {"1", "2"}, {"2"}),
        ("10:\tvmovups %ymm4,(%rdi,%rax,1)", {"4"}, set()),
        ("10:\tvxorps %xmm5,%xmm5,%xmm5", set(), {"5"}),
        ("10:\tvucomiss %xmm1,%xmm0", {"0", "1"}, set()),
        ("10:\tvmaxps 0x40(%rsp),%ymm7,%ymm7", {"7"}, {"7"}),
    ],
)
def test_registers_read_and_written(line: str, reads: set[str], writes: set[str]) -> None:
    instruction = parse_instruction(line)
    assert instruction is not None
    assert instruction.vectors_used() == (reads, writes)


def test_lines_that_are_no_instructions() -> None:
    for line in ("", "Disassembly of section .text:", "0000000000001000 <kernel>:", "\t..."):
        assert parse_instruction(line) is None
