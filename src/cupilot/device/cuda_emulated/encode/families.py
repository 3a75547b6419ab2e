"""Which function encodes which PTX opcode. An opcode that is not here is not executed, and says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cupilot.device.cuda_emulated.encode import arithmetic, asynchronous, comparing, control, matrix, moving
from cupilot.device.cuda_emulated.encode.frame import Frame
from cupilot.device.cuda_emulated.ptx.model import Instruction

Encoder = Callable[[Frame, Instruction], None]

FAMILIES: Mapping[str, Encoder] = {
    **dict.fromkeys(("add", "sub", "mul", "mad", "fma"), arithmetic.add_sub_mul_fma),
    **dict.fromkeys(("addc", "subc", "madc"), arithmetic.carry),
    "div": arithmetic.divide,
    **dict.fromkeys(("sqrt", "rcp", "rsqrt"), arithmetic.root_or_reciprocal),
    **dict.fromkeys(("sin", "cos", "lg2", "ex2", "tanh"), arithmetic.approximate),
    **dict.fromkeys(("neg", "abs", "not", "cnot", "popc", "clz", "brev", "bfind"), arithmetic.unary),
    **dict.fromkeys(("and", "or", "xor"), arithmetic.logic),
    **dict.fromkeys(("min", "max"), arithmetic.minimum_maximum),
    **dict.fromkeys(("rem", "sad", "mul24", "mad24", "dp4a", "copysign", "prmt", "shf"), arithmetic.plain),
    **dict.fromkeys(("bfe", "bfi"), arithmetic.bit_field),
    **dict.fromkeys(("shl", "shr"), arithmetic.shift),
    "lop3": arithmetic.lop3,
    "selp": arithmetic.select,
    "slct": arithmetic.select_by_sign,
    "testp": arithmetic.test_property,
    "setp": comparing.set_predicate,
    "set": comparing.set_value,
    "cvt": comparing.convert,
    "mov": moving.move,
    "cvta": moving.convert_address,
    "isspacep": moving.is_space,
    "ld": moving.load,
    "ldu": moving.load,
    "st": moving.store,
    **dict.fromkeys(("atom", "red"), moving.atomic),
    "bra": control.branch,
    **dict.fromkeys(("exit", "ret"), control.leave),
    **dict.fromkeys(("trap", "brkpt"), control.trap),
    "nanosleep": control.pause,
    **dict.fromkeys(("prefetch", "prefetchu", "applypriority", "pmevent", "griddepcontrol"), control.nothing),
    **dict.fromkeys(("bar", "barrier"), control.barrier),
    **dict.fromkeys(("membar", "fence"), control.fence),
    "shfl": control.shuffle,
    "vote": control.vote,
    "match": control.match,
    "redux": control.reduce_warp,
    "elect": control.elect,
    "activemask": control.active_mask,
    "cp": asynchronous.copy,
    "mbarrier": asynchronous.memory_barrier,
    "mma": matrix.multiply,
    "wmma": matrix.wmma,
    **dict.fromkeys(("ldmatrix", "stmatrix"), matrix.move_matrices),
}

# Executed together with other lanes, or leaving the straight path: a guard becomes a branch around them.
JUMPS = frozenset(
    {"exit", "ret", "trap", "brkpt", "bar", "barrier", "shfl", "vote", "match", "redux", "elect", "call",
     "nanosleep", "brx", "mma", "ldmatrix", "stmatrix", "wmma", "mbarrier", "cp"}
)  # fmt: skip
