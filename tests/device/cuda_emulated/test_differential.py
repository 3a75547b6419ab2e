"""Random programs: every emulated thread computes what the same text does on the CPU."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from random import Random

import emu_kit
import numpy as np
import pytest

from cupilot.device import native
from cupilot.types import DType

N = 192
_BINARY = ("+", "-", "*", "&", "|", "^")
_COMPARE = ("<", "<=", ">", ">=", "==", "!=")


class _Writer:
    """One function of three unsigned numbers, with signed, wide and floating-point variables."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.loops = rng, 0

    def function(self, name: str, statements: int) -> str:
        body = self._block(statements, 2, "    ")
        return (
            f"FN unsigned {name}(unsigned a, unsigned b, unsigned c) {{\n"
            "    unsigned u[4] = {a, b, c, a ^ 0x9e3779b9u};\n    int s[2] = {(int)a, (int)(b - c)};\n"
            "    unsigned long long w[2] = {a * 0x100000001ull + b, c};\n"
            "    float f[2] = {(float)(a % 1000) - 300.0f, (float)(b % 77)};\n    unsigned char t[8];\n"
            "    for (int i = 0; i < 8; ++i) t[i] = (unsigned char)(a >> (i * 3));\n"
            f"{body}"
            "    unsigned r = u[0] ^ u[1] * 3 ^ u[2] * 5 ^ u[3] * 7 ^ (unsigned)s[0] ^ (unsigned)s[1] * 11;\n"
            "    for (int i = 0; i < 8; ++i) r = r * 31 + t[i];\n"
            "    return r ^ (unsigned)w[0] ^ (unsigned)(w[1] >> 32) ^ BITS(f[0]) ^ BITS(f[1]) * 13;\n}\n"
        )

    def _block(self, count: int, depth: int, indent: str) -> str:
        return "".join(self._statement(depth, indent) for _ in range(count))

    def _statement(self, depth: int, indent: str) -> str:
        kind = self.rng.random()
        if depth and kind < 0.18:
            rest = (
                f"{indent}}} else {{\n{self._block(2, depth - 1, indent + '    ')}"
                if self.rng.random() < 0.5
                else ""
            )
            inner = self._block(3, depth - 1, indent + "    ")
            return f"{indent}if ({self._condition()}) {{\n{inner}{rest}{indent}}}\n"
        if depth and kind < 0.3:
            self.loops += 1
            name, inner = f"i{self.loops}", self._block(2, depth - 1, indent + "    ")
            leave = f"{indent}    if ({self._condition()}) break;\n" if self.rng.random() < 0.5 else ""
            bound = f"({self._whole()} & {self.rng.choice((3, 7, 15))})"
            head = f"for (unsigned {name} = 0; {name} < {bound}; ++{name})"
            return f"{indent}{head} {{\n{inner}{leave}{indent}}}\n"
        if depth and kind < 0.36:
            cases = "".join(
                f"{indent}case {k}:\n{self._block(1, depth - 1, indent + '    ')}"
                + (f"{indent}    break;\n" if self.rng.random() < 0.8 else "")
                for k in range(4)
            )
            return f"{indent}switch ({self._whole()} % 5) {{\n{cases}{indent}default: break;\n{indent}}}\n"
        return indent + self._assignment() + "\n"

    def _assignment(self) -> str:
        kind = self.rng.random()
        if kind < 0.45:
            return f"u[{self.rng.randrange(4)}] = {self._whole()};"
        if kind < 0.6:
            op = self.rng.choice(("+", "-", "/", "%", ">>", "*"))
            right = (
                f"({self._signed()} | 1)"
                if op in "/%"
                else f"({self._whole()} & 31)"
                if op == ">>"
                else self._signed()
            )
            left = f"({self._signed()} / 2)" if op in "/%" else self._signed()
            if op in "+-*":
                return f"s[{self.rng.randrange(2)}] = (int)((unsigned){left} {op} (unsigned){right});"
            return f"s[{self.rng.randrange(2)}] = {left} {op} {right};"
        if kind < 0.75:
            op = self.rng.choice((*_BINARY, "/", "<<", ">>"))
            right = (
                "(w[1] | 1)"
                if op == "/"
                else f"({self._whole()} & 63)"
                if op in ("<<", ">>")
                else self._whole()
            )
            return f"w[{self.rng.randrange(2)}] = w[{self.rng.randrange(2)}] {op} {right};"
        if kind < 0.85:
            return f"t[{self._whole()} & 7] = (unsigned char)(t[{self._whole()} & 7] + {self._whole()});"
        op = self.rng.choice(("ADD", "MUL", "SUB", "MIN"))
        value = f"{op}(f[{self.rng.randrange(2)}], (float){self._signed()} * 0.001f)"
        bounded = "".join(f" if (!(FABS(f[{k}]) < 1e6f)) f[{k}] = 1.5f + {k};" for k in range(2))
        return f"f[{self.rng.randrange(2)}] = {value};{bounded}"

    def _whole(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return f"u[{self.rng.randrange(4)}]"
        if kind < 0.6:
            return f"{self.rng.getrandbits(self.rng.choice((4, 16, 32)))}u"
        if kind < 0.7:
            return f"(unsigned){self._signed()}"
        if kind < 0.78:
            return f"(unsigned)(w[{self.rng.randrange(2)}] >> {self.rng.randrange(33)})"
        if kind < 0.84:
            return f"({self._condition()} ? u[{self.rng.randrange(4)}] : u[{self.rng.randrange(4)}])"
        op = self.rng.choice((*_BINARY, "<<", ">>"))
        right = f"({self._whole()} & 31)" if op in ("<<", ">>") else self._whole()
        return f"({self._whole()} {op} {right})"

    def _signed(self) -> str:
        return f"s[{self.rng.randrange(2)}]"

    def _condition(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return f"u[{self.rng.randrange(4)}] % {self.rng.choice((2, 3, 5))} == {self.rng.randrange(2)}"
        if kind < 0.7:
            return f"{self._signed()} {self.rng.choice(_COMPARE)} {self._signed()}"
        if kind < 0.85:
            return f"f[0] {self.rng.choice(_COMPARE)} f[1]"
        return f"w[0] {self.rng.choice(_COMPARE)} w[1]"


_ON_GPU = """
#define FN __device__ __noinline__
#define ADD __fadd_rn
#define SUB __fsub_rn
#define MUL __fmul_rn
#define MIN fminf
#define FABS fabsf
#define BITS __float_as_uint
"""
_ON_CPU = """
#include <cstring>
#include <cmath>
#define FN static
static float ADD(float a, float b) { return a + b; }
static float SUB(float a, float b) { return a - b; }
static float MUL(float a, float b) { return a * b; }
#define MIN fminf
#define FABS fabsf
static unsigned BITS(float v) { unsigned b; memcpy(&b, &v, 4); return b; }
"""


@pytest.mark.parametrize("seed", range(6))
def test_threads_compute_what_the_cpu_does(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    count = 6
    functions = "".join(_Writer(rng).function(f"f{k}", 8 if k % 2 else 14) for k in range(count))
    calls = "".join(f"out[i * {count} + {k}] = (int)f{k}(x[i], x[i] * 7 + i, i);\n" for k in range(count))
    gpu = (
        _ON_GPU
        + functions
        + "__global__ void k(const int* x, int* out) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        + calls
        + "}"
    )
    cpu = (
        _ON_CPU
        + functions
        + f'extern "C" void run(const int* x, int* out) {{ for (int i = 0; i < {N}; ++i) {{\n'
        + calls
        + "} }"
    )
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, N).astype(np.int32)
    x[:40] = np.arange(40)
    found = emu_kit.compute(gpu, "k[2, 96](x, out)", {"x": x}, {"out": ((N * count,), DType.I32)})["out"]
    source, library = tmp_path / "program.cpp", tmp_path / "program.so"
    source.write_text(cpu)
    flags = ("-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-w", "-fno-strict-aliasing")
    subprocess.run([str(native.compiler().path), *flags, str(source), "-o", str(library)], check=True)
    wanted = np.empty(N * count, np.int32)
    ctypes.CDLL(str(library)).run(x.ctypes.data_as(ctypes.c_void_p), wanted.ctypes.data_as(ctypes.c_void_p))
    different = np.flatnonzero(found != wanted)
    assert different.size == 0, (different[:10], found[different[:10]], wanted[different[:10]])
