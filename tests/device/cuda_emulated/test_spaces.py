"""Loads and stores of every width and vector in every state space, and through generic addresses to each."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.types import DType

KINDS = {"u8": "r", "s8": "r", "u16": "h", "b32": "r", "b64": "l"}
HOLDS = {"r": "unsigned", "h": "unsigned short", "l": "unsigned long long"}
THREADS = 64


@pytest.mark.parametrize(
    "where", ["global", "shared", "local", "generic to global", "generic to shared", "generic to local"]
)
def test_what_is_stored_is_loaded(where: str) -> None:
    """32 bytes per thread go by way of the space, in pieces of each kind and vector, and come back."""
    space = "" if where.startswith("generic") else f".{where}"
    base = where.split()[-1]
    lines, number = [], 0
    for kind, letter in KINDS.items():
        size = int(kind[1:]) // 8
        for vector in (1, 2, 4):
            if size * vector > 16:
                continue
            registers = ", ".join(f"v{k}" for k in range(vector))
            group = registers if vector == 1 else f"{{{registers}}}"
            form = f"{'' if vector == 1 else f'.v{vector}'}.{kind}"
            declared = f".reg .b{32 if letter == 'r' else size * 8} v<4>; .reg .b64 a;"
            address = "" if not space or base == "global" else f"cvta.to.{base}.u64 a, %1;"
            to, source = ("%1", "%0") if not address else ("a", "%0")
            step = size * vector
            there = f"ld.global{form} {group}, [{source}]; st{space}{form} [{to}], {group};"
            back = f"ld{space}{form} {group}, [{to}]; st.global{form} [{source}], {group};"
            for text, outside in ((there, "from"), (back, f"back + {32 * number}")):
                lines.append(
                    f'for (int i = 0; i < 32; i += {step}) asm volatile("{{ {declared} {address} {text} }}" '
                    f':: "l"({outside} + i), "l"(place + i) : "memory");'
                )
            number += 1
    held = {
        "global": "char* place = other + 32 * threadIdx.x;",
        "shared": f"__shared__ __align__(16) char s[{32 * THREADS}]; char* place = s + 32 * threadIdx.x;",
        "local": "__align__(16) char mine[32]; char* place = mine;",
    }[base]
    body = "\n".join(lines)
    code = f"""__global__ void k(const signed char* x, signed char* out, signed char* scratch) {{
        const char* from = reinterpret_cast<const char*>(x) + 32 * threadIdx.x;
        char* back = reinterpret_cast<char*>(out) + {32 * number} * threadIdx.x;
        char* other = reinterpret_cast<char*>(scratch);
        {held}
        {body}
    }}"""
    x = np.random.default_rng(1).integers(-128, 128, (THREADS, 32)).astype(np.int8)
    launch = f"other = scratch({32 * THREADS}, i8)\nk[1, {THREADS}](x, out, other)"
    found = emu_kit.compute(code, launch, {"x": x}, {"out": ((THREADS, number, 32), DType.I8)})["out"]
    assert np.array_equal(found, np.repeat(x[:, None, :], number, axis=1))


def test_narrow_loads_extend_and_addresses_know_their_space() -> None:
    code = """__global__ void k(const signed char* x, long long* out) {
        __shared__ signed char s[64];
        signed char mine[4];
        for (int i = 0; i < 4; ++i) mine[(i + threadIdx.x) % 4] = x[i];
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        long long wide; int plain; unsigned zero;
        asm volatile("ld.global.s8 %0, [%1];" : "=l"(wide) : "l"(x + threadIdx.x));
        asm volatile("ld.s8 %0, [%1];" : "=r"(plain) : "l"(s + threadIdx.x));
        asm volatile("ld.u8 %0, [%1];" : "=r"(zero) : "l"(s + threadIdx.x));
        const void* places[3] = {x, s, mine};
        unsigned spaces = 0;
        for (int p = 0; p < 3; ++p) {
            const void* place = places[p];
            unsigned found;
            asm volatile("{ .reg .pred a, b, c; .reg .b32 t; isspacep.global a, %1; isspacep.shared b, %1;"
                         "isspacep.local c, %1; selp.u32 %0, 1, 0, a; selp.u32 t, 2, 0, b; or.b32 %0, %0, t;"
                         "selp.u32 t, 4, 0, c; or.b32 %0, %0, t; }" : "=r"(found) : "l"(place));
            spaces |= found << 3 * p;
        }
        out[4 * threadIdx.x] = wide; out[4 * threadIdx.x + 1] = plain; out[4 * threadIdx.x + 2] = zero;
        out[4 * threadIdx.x + 3] = spaces;
    }"""
    x = np.arange(-32, 32).astype(np.int8)
    found = emu_kit.compute(code, "k[1, 64](x, out)", {"x": x}, {"out": ((64, 4), DType.I64)})["out"]
    assert np.array_equal(found[:, 0], x) and np.array_equal(found[:, 1], x)
    assert np.array_equal(found[:, 2], x.view(np.uint8))
    assert np.all(found[:, 3] == 0b100_010_001)
