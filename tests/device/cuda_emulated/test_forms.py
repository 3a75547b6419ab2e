"""What is not executed is refused by name and line, new forms of known opcodes like unknown ones."""

from __future__ import annotations

import emu_kit
import forms_kit
import numpy as np
import ptx_kit
import pytest
from ptx_kit import Op

from cupilot.types import DType, Stage


@pytest.mark.parametrize("arch", forms_kit.REFUSED)
def test_is_refused_by_name_and_line(arch: str) -> None:
    for text in forms_kit.REFUSED[arch]:
        refused = forms_kit.refusal(text, arch)
        assert refused is not None, f"`{text}` is executed"
        assert refused.stage is Stage.INSPECT, refused
        assert f"line {forms_kit.LINE} " in refused.reason, refused
        assert f"`{forms_kit.opcode(text)}" in refused.reason, refused


def test_of_three_values() -> None:
    """min and max take a third value from sm_100 on."""
    rng = np.random.default_rng(9)
    values = [rng.standard_normal(ptx_kit.COUNT).astype(np.float32) for _ in range(3)]
    values[1][::7] = np.nan
    bits = [v.view(np.uint32) for v in values]
    three = ("f32", "f32", "f32")
    ops = [Op(f"{name} %0, %1, %2, %3;", "f32", three) for name in ("max.f32", "min.f32", "max.NaN.f32")]
    largest, smallest, strict = (
        found.view(np.float32) for found in ptx_kit.apply(ops, *bits, arch="sm_100a")
    )
    assert np.array_equal(largest, np.fmax(np.fmax(values[0], values[1]), values[2]))
    assert np.array_equal(smallest, np.fmin(np.fmin(values[0], values[1]), values[2]))
    assert np.array_equal(np.isnan(strict), np.isnan(values[1]))


def test_hints_move_no_values_and_a_lane_may_leave() -> None:
    text = (
        ".reg .f32 f; .reg .pred p; prefetchu.L1 [%1]; applypriority.global.L2::evict_normal [%1], 128;"
        "pmevent 1; griddepcontrol.wait; ldu.global.f32 f, [%1]; mov.b32 %0, f; setp.gt.f32 p, f, 0f42C80000;"
        "@p exit;"
    )
    code = f"""__global__ void k(const float* x, float* out) {{
        unsigned r;
        asm volatile("{{ {text} }}" : "=r"(r) : "l"(x + threadIdx.x) : "memory");
        out[threadIdx.x] = __uint_as_float(r);
    }}"""
    x = np.arange(256, dtype=np.float32)
    launch = "zero(out)\nk[1, 256](x, out)"
    found = emu_kit.compute(code, launch, {"x": x}, {"out": ((256,), DType.F32)}, "sm_90")["out"]
    assert np.array_equal(found, np.where(x > 100, 0, x))


def test_a_table_of_jumps() -> None:
    code = """__global__ void k(const int* x, int* out) {
        int r = x[threadIdx.x];
        asm volatile("{ .reg .u32 i; and.b32 i, %0, 3; ts: .branchtargets L0, L1, L2, L3;"
                     "brx.idx i, ts;"
                     "L0: add.s32 %0, %0, 100; bra L9; L1: mul.lo.s32 %0, %0, 7;"
                     "L2: sub.s32 %0, %0, 5; bra L9; L3: neg.s32 %0, %0; L9: }" : "+r"(r));
        out[threadIdx.x] = r;
    }"""
    x = np.arange(64, dtype=np.int32)
    found = emu_kit.compute(code, "k[1, 64](x, out)", {"x": x}, {"out": ((64,), DType.I32)})["out"]
    assert np.array_equal(found, np.choose(x % 4, [x + 100, x * 7 - 5, x - 5, -x]))
