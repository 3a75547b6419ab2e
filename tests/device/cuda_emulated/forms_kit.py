"""PTX instructions outside the emulator's reach, each in a valid form: what has to be refused by its name.

%0 and %1 are 32- and 64-bit integers, %2 a float, %3 a double, %4 16 bits; %5 is another 32-bit integer,
%6 and %8 are addresses in global memory, %7 one in shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.kernel.file import parse_kernel
from cupilot.types import DType, Failed, Role, Signature, TensorSpec

REFUSED: Mapping[str, tuple[str, ...]] = {
    "sm_75": (
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {g0,g1,g2,g3,g0,g1,g2,g3}, {t0,t1}, {t2,t3}, "
        "{g0,g1,g2,g3,g0,g1,g2,g3};",
    ),
    "sm_80": (
        "abs.ftz.f16 %4, %4;",
        "add.sat.s32 %0, %0, %5;",
        "bmsk.clamp.b32 %0, %0, %5;",
        "createpolicy.fractional.L2::evict_first.b64 %1, 1.0;",
        "cvt.pack.sat.u8.s32.b32 %0, %0, %5, 0;",
        "discard.global.L2 [%8], 128;",
        "dp2a.lo.u32.u32 %0, %0, %5, %5;",
        "fns.b32 %0, 0xff, 0, 2;",
        "isspacep.const p, %6;",
        "lop3.or.b32 %0|p, %0, %5, 3, 0x96, 0;",
        "mad.hi.sat.s32 %0, %0, %5, %5;",
        "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {t0,t1}, {t0,t1}, {t2,t3}, {t0,t1}, %0, 0;",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {t0,t1,t2,t3}, {t0,t1,t2,t3}, {t2,t3}, "
        "{t0,t1,t2,t3};",
        "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {t0,t1}, {t2}, {t3}, {t0,t1};",
        "mov.u32 %0, %%pm0;",
        "movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;",
        "neg.ftz.f16 %4, %4;",
        "prmt.b32.f4e %0, %0, %5, 1;",
        "setp.lt.ftz.f16 p, %4, %4;",
        "slct.ftz.u32.f32 %0, %0, %5, %2;",
        "stacksave.u64 %1;",
        "szext.wrap.u32 %0, %0, %5;",
        "vabsdiff4.u32.u32.u32.add %0, %0, %5, %5;",
        "vadd.s32.s32.s32 %0, %0, %5, %5;",
        "vset4.u32.u32.eq %0, %0, %5, %5;",
        "{ .reg .b64 tex; mov.b64 tex, %1; tex.1d.v4.f32.s32 {g0,g1,g2,g3}, [tex, {%0}]; }",
        "{ .reg .b64 tex; mov.b64 tex, %1; suld.b.1d.b32.trap {t0}, [tex, {%0}]; }",
    ),
    "sm_89": (
        "cvt.rn.f16x2.e4m3x2 %0, %4;",
        "cvt.rn.satfinite.e4m3x2.f32 %4, %2, %2;",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {g0,g1,g2,g3}, {t0,t1,t2,t3}, {t2,t3}, "
        "{g0,g1,g2,g3};",
    ),
    "sm_90": (
        "add.u16x2 %0, %0, %5;",
        "atom.global.v2.f32.add {g0,g1}, [%8], {%2,%2};",
        "atom.shared::cluster.add.u32 %0, [%7], 1;",
        "barrier.cluster.arrive;",
        "barrier.cluster.wait;",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.prefetch.L2.global [%6], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%7], [%6], 16, [%7];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%7], [%6, {%0}], [%7];",
        "cp.async.bulk.wait_group 0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%8], [%7], 16;",
        "cvt.rn.satfinite.bf16x2.f32 %0, %2, %2;",
        "fma.rn.oob.f16 %4, %4, %4, %4;",
        "getctarank.shared::cluster.u32 %0, %7;",
        "ld.shared::cluster.u32 %0, [%7];",
        "mapa.shared::cluster.u32 %0, %7, 0;",
        "max.relu.s32 %0, %0, %5;",
        "max.s16x2 %0, %0, %5;",
        "max.xorsign.abs.f32 %2, %2, 0f40000000;",
        "mbarrier.arrive.expect_tx.shared.b64 %1, [%7], 16;",
        "mbarrier.complete_tx.shared::cta.relaxed.cluster.b64 [%7], 16;",
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {d0,d1,d2,d3}, {d0,d1,d2,d3}, {d0,d1}, "
        "{d0,d1,d2,d3};",
        "mov.u32 %0, %%cluster_ctarank;",
        "multimem.red.global.add.u32 [%8], %0;",
        "red.global.add.noftz.v2.f16x2 [%8], {%0,%0};",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%7], %0, [%7];",
    ),
    "sm_90a": (
        "setmaxnreg.inc.sync.aligned.u32 96;",
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%7], %1;",
        "wgmma.commit_group.sync.aligned;",
        "wgmma.fence.sync.aligned;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {g0,g1,g2,g3}, %1, %1, 1, 1, 1, 0, 0;",
        "wgmma.wait_group.sync.aligned 0;",
    ),
    "sm_100a": (
        "add.f32.bf16 %2, %4, %2;",
        "cvt.rn.satfinite.tf32.f32 %0, %2;",
        "cvt.rs.f16x2.f32 %0, %2, %2, %5;",
        "fma.rn.f32x2 %1, %1, %1, %1;",
        "ld.global.v4.b64 {w0,w1,w2,w3}, [%8];",
        "ld.global.v8.f32 {%2,g0,g1,g2,g3,g4,g5,g6}, [%8];",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {t0,t1}, [%7];",
        "redux.sync.max.abs.NaN.f32 %2, %2, 0xffffffff;",
        "tcgen05.fence::before_thread_sync;",
        "tcgen05.wait::ld.sync.aligned;",
    ),
}

_CODE = """__global__ void k(const float* x, float* out) {{
    __shared__ __align__(128) unsigned long long s[64];
    unsigned r = threadIdx.x;
    unsigned long long l = r;
    float f = x[r];
    double d = f;
    unsigned short h = r;
    s[r] = 0;
    asm volatile("{{ .reg .pred p; .reg .b32 t<4>; .reg .f32 g<8>; .reg .b64 w<4>; .reg .f64 d<4>; {text} }}"
                 : "+r"(r), "+l"(l), "+f"(f), "+d"(d), "+h"(h)
                 : "r"(r), "l"(x), "r"((unsigned)__cvta_generic_to_shared(s)), "l"(out) : "memory");
    out[threadIdx.x] = r + l + f + d + h + s[r];
}}"""
LINE = 13  # of the instruction, counted from the head of the kernel file
_FILE = "/* cupilot 1\nlaunch:\n    k[1, 32](x, out)\n*/\n"
_SIGNATURE = Signature(
    (TensorSpec("x", (256,), DType.F32, Role.INPUT),),
    {},
    (TensorSpec("out", (256,), DType.F32, Role.OUTPUT),),
)


def opcode(text: str) -> str:
    """Of the last instruction: what a refusal has to name."""
    inside = text.rstrip("; }").rsplit(";", 1)[-1]
    return inside.split()[0]


def refusal(text: str, arch: str) -> Failed | None:
    """None when the emulator takes it."""
    file = parse_kernel(_FILE + _CODE.format(text=text) + "\n")
    compiled = CudaEmulated(arch).compile(file, {}, _SIGNATURE)
    return compiled if isinstance(compiled, Failed) else None
