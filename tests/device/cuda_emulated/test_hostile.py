"""Kernels that mean harm, or go badly wrong: a fault or a verdict; the emulator's process holds nothing."""

from __future__ import annotations

import time
from pathlib import Path

import emu_kit
import numpy as np
import pytest

from cupilot.device.base import Died, Ran
from cupilot.types import DType, Failed

OUT = {"out": ((256,), DType.F32)}
X = {"x": np.ones(256, np.float32)}
ABSURD = (0, 1 << 3, (1 << 64) - 64, 1 << 63, 0x7000_0000_0000, 0x7100_0000_0000, 0x7200_0000_0000,
          0x7FFF_FFFF_F000, 0x7220_0000_0000)  # fmt: skip
ACCESSES = {
    "load": 'asm volatile("ld.global.f32 %0, [%1];" : "=f"(f) : "l"(p));',
    "vector store": 'asm volatile("st.v4.f32 [%1], {%0, %0, %0, %0};" :: "f"(f), "l"(p));',
    "atomic": 'asm volatile("red.global.add.f32 [%1], %0;" :: "f"(f), "l"(p));',
    "generic atomic": 'asm volatile("atom.add.f32 %0, [%1], %0;" : "+f"(f) : "l"(p));',
    "copy": 'asm volatile("cp.async.ca.shared.global [%0], [%1], 16; cp.async.wait_all;" :: "r"(0), "l"(p));',
    "shared load": 'asm volatile("ld.shared.f32 %0, [%1];" : "=f"(f) : "r"((unsigned)p + 0x10000000u));',
    "matrix": 'asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) '
    ': "r"((unsigned)p + 0x10000000u));',
    "barrier": 'asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"((unsigned)p + 0x10000000u));',
}


@pytest.mark.parametrize("access", ACCESSES)
def test_absurd_addresses_are_faults(access: str) -> None:
    for address in ABSURD:
        code = f"""__global__ void k(const float* x, float* out) {{
            float f = x[threadIdx.x]; unsigned r = 0; unsigned long long p = {address}ull;
            {ACCESSES[access]}
            out[threadIdx.x] = f + r;
        }}"""
        opened = emu_kit.open_kernel(code, "k[1, 32](x, out)", X, OUT)
        assert not isinstance(opened, Failed), opened
        with opened as session:
            outcome = session.run(0, 1, 3)
            inside = access == "load" and address == 0x7200_0000_0000  # the module's own constants
            assert isinstance(outcome, Died) or inside, hex(address)
            assert session.fault is not None or inside, outcome


def test_printing_neither_writes_nor_floods() -> None:
    code = r"""
    #include <stdio.h>
    __global__ void k(const float* x, float* out) {
        long long where = 0;
        printf("%n%lln|%*d|%5.1f|%-8d|%c|%llx|%%|%99999999d\n", &where, &where, 3, 2.5, 7, 'z', 255ll, 1);
        for (int i = 0; i < 100000; ++i) printf("%s and %d more, %f\n", "again", i, 1.0);
        out[threadIdx.x] = (float)where;
    }"""
    opened = emu_kit.open_kernel(code, "k[1, 32](x, out)", X, OUT)
    assert not isinstance(opened, Failed), opened
    with opened as session:
        assert isinstance(session.run(0, 1, 1), Ran)
        assert np.all(session.read(0)["out"][:32] == 0)
        assert len(session.printed) < 1 << 20


def test_what_an_assertion_says_may_be_any_bytes() -> None:
    code = r"""
    extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
    __global__ void k(const float* x, float* out) {
        if (x[threadIdx.x] > 0) __assertfail("\xff\"\\ \x01", "f", 1, "g", 1);
        out[threadIdx.x] = 1;
    }"""
    assert emu_kit.fault(code, "k[1, 32](x, out)").kind == "assert"


def test_a_loop_without_end_is_stopped_by_the_clock_or_the_budget() -> None:
    code = """__global__ void k(const float* x, float* out) {
        volatile float* v = out;
        while (v[threadIdx.x] != 12345.0f) v[threadIdx.x] = x[threadIdx.x];
    }"""
    opened = emu_kit.open_kernel(code, "k[1000000, 32](x, out)", X, OUT)
    assert not isinstance(opened, Failed), opened
    with opened as session:
        start = time.monotonic()
        assert isinstance(session.run(0, 1, 1, limit_s=1.0), Died)
        assert time.monotonic() - start < 10


def test_memory_for_blocks_has_an_end() -> None:
    """Sixty-four blocks at a time, as many as may wait for each other, would take three times as much."""
    code = """__global__ void k(const float* x, float* out) {
        char big[100000];
        for (int i = 0; i < 100000; i += 4000) big[i] = (char)x[(i + threadIdx.x) % 256];
        out[threadIdx.x] = big[(int)x[threadIdx.x] * 4000] + atomicAdd(out + 255, 0.0f);
    }"""
    opened = emu_kit.open_kernel(code, "zero(out)\nk[64, 255](x, out)", X, OUT)
    assert not isinstance(opened, Failed), opened
    with opened as session:
        assert isinstance(session.run(0, 1, 1), Ran)
        lines = Path(f"/proc/{session.pid}/status").read_text().splitlines()
        peak_kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        assert peak_kib < 3 << 19  # one and a half GiB


def test_the_process_is_fenced_in() -> None:
    opened = emu_kit.open_kernel(
        "__global__ void k(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x]; }",
        "k[1, 256](x, out)", X, OUT,
    )  # fmt: skip
    assert not isinstance(opened, Failed), opened
    with opened as session:
        session.run(0, 1, 1)
        said = Path(f"/proc/{session.pid}/status").read_text()
        assert "Seccomp:\t2" in said and "NoNewPrivs:\t1" in said
        assert Path(f"/proc/{session.pid}/environ").read_bytes() == b""
        assert not list(Path(f"/proc/{session.pid}/task").iterdir())[1:]
