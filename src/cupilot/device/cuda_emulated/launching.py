"""From a step of a plan to a launch: limits of the architecture checked, arguments packed."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from cupilot.device.base import ElementKind, Parameter
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.gate import CudaParameter, GatedKernel
from cupilot.device.cuda_emulated.occupancy import MAX_THREADS_PER_BLOCK, MULTIPROCESSORS, occupancy
from cupilot.kernel.plan import Launch, Plan, TensorArg
from cupilot.types import DType, Failed, Signature, Stage

# Multiprocessors of the smallest common part of an architecture: what a cooperative grid has to fit on.
MULTIPROCESSOR_COUNTS: Mapping[str, int] = {
    "sm_75": 40, "sm_80": 108, "sm_86": 46, "sm_89": 58, "sm_90": 114, "sm_90a": 114, "sm_100a": 148,
    "sm_120": 48,
}  # fmt: skip
_SPELLING: Mapping[DType, str] = {
    DType.F64: "double", DType.F32: "float", DType.F16: "__half", DType.BF16: "__nv_bfloat16",
    DType.I64: "long long", DType.I32: "int", DType.I16: "short", DType.I8: "signed char",
    DType.U8: "unsigned char",
    DType.BOOL: "bool",
}  # fmt: skip
_KINDS: Mapping[DType, frozenset[ElementKind]] = {
    **dict.fromkeys((DType.F64, DType.F32), frozenset({ElementKind.FLOATING})),
    **dict.fromkeys((DType.F16, DType.BF16), frozenset({ElementKind.FLOATING, ElementKind.UNSIGNED})),
    **dict.fromkeys((DType.I64, DType.I32, DType.I16, DType.I8), frozenset({ElementKind.SIGNED})),
    DType.U8: frozenset({ElementKind.UNSIGNED}),
    DType.BOOL: frozenset({ElementKind.BOOLEAN, ElementKind.UNSIGNED}),
}


def check_launches(
    kernels: Mapping[str, GatedKernel],
    programs: Mapping[str, Program],
    plan: Plan,
    signature: Signature,
    arch: str,
) -> Failed | None:
    """The first launch that its kernel or the architecture does not allow."""
    dtypes = {t.name: t.dtype for t in (*signature.tensors, *signature.outputs)}
    dtypes |= {s.name: s.dtype for s in plan.scratch}
    inputs = {t.name for t in signature.tensors}
    for step in plan.steps:
        if not isinstance(step, Launch):
            continue
        kernel = kernels[step.kernel]
        problem = _check_arguments(step, kernel.parameters, dtypes, inputs)
        if problem is not None:
            return Failed(Stage.COMPILE, f"line {step.line}: {problem}")
        limit = _check_limits(step, kernel, programs[step.kernel], arch)
        if limit is not None:
            return Failed(Stage.LOAD, f"line {step.line}: `{step.kernel}` cannot be launched: {limit}")
    return None


def _check_limits(launch: Launch, kernel: GatedKernel, program: Program, arch: str) -> str | None:
    threads = math.prod(launch.block or (1,))
    shared = program.static_shared + launch.attributes.get("shared", 0)
    most = MULTIPROCESSORS[arch].shared_bytes_per_block
    if threads > MAX_THREADS_PER_BLOCK:
        return f"{threads} threads per block; at most {MAX_THREADS_PER_BLOCK}"
    if program.max_threads is not None and threads > program.max_threads:
        return f"{threads} threads per block; its __launch_bounds__ promises at most {program.max_threads}"
    if shared > most:
        return f"{shared} bytes of shared memory per block; {arch} has {most}"
    if launch.attributes.get("cluster", 0) > 1:
        return "the emulator has no clusters"
    found = occupancy(arch, threads, kernel.resources.registers, shared)
    if found.blocks == 0:
        return f"{kernel.resources.registers} registers for each of {threads} threads do not fit: use fewer"
    blocks = math.prod(launch.grid)
    room = found.blocks * MULTIPROCESSOR_COUNTS[arch]
    if launch.attributes.get("cooperative", 0) and blocks > room:
        return f"a cooperative grid of {blocks} blocks; at most {room} run at the same time on {arch}"
    return None


def _check_arguments(
    launch: Launch, parameters: tuple[CudaParameter, ...], dtypes: Mapping[str, DType], inputs: set[str]
) -> str | None:
    if len(parameters) != len(launch.args):
        given = len(launch.args)
        return f"`{launch.kernel}` has {len(parameters)} parameters but is launched with {given} arguments"
    for position, (parameter, argument) in enumerate(zip(parameters, launch.args, strict=True), 1):
        where = f"parameter {position} of `{launch.kernel}`"
        if isinstance(argument, TensorArg):
            problem = _check_tensor(
                where, parameter, argument.name, dtypes[argument.name], argument.name in inputs
            )
        else:
            problem = _check_number(where, parameter, argument)
        if problem is not None:
            return problem
    return None


def _check_tensor(
    where: str, parameter: CudaParameter, name: str, dtype: DType, is_input: bool
) -> str | None:
    spelling = f"{'const ' if is_input else ''}{_SPELLING[dtype]}*"
    if not parameter.is_pointer:
        return f"{where} is a number but receives the tensor `{name}`: declare it `{spelling}`"
    fits = parameter.kind in _KINDS[dtype] and parameter.width_bytes == dtype.size_bytes
    if parameter.kind is ElementKind.FLOATING and dtype in (DType.F16, DType.BF16):
        fits = fits and parameter.is_bfloat == (dtype is DType.BF16)
    opaque = parameter.kind is ElementKind.OPAQUE  # a struct or void: the compiler cannot say more
    if not fits and not opaque:
        return f"{where} has the wrong element type for `{name}` ({dtype}): declare it `{spelling}`"
    if is_input and not parameter.is_const:
        return (
            f"{where} takes the input `{name}` by a pointer it could write through: declare it `{spelling}`"
        )
    return None


def _check_number(where: str, parameter: Parameter, value: int | float) -> str | None:
    if parameter.is_pointer:
        return f"{where} is a pointer but receives the number {value}"
    if parameter.kind is ElementKind.OPAQUE:
        return f"{where} has a type that cannot be passed: use a plain number type"
    if parameter.kind is ElementKind.FLOATING:
        return None if parameter.width_bytes >= 4 else f"{where} is a half: declare it `float`"
    if isinstance(value, float):
        return f"{where} is an integer but receives {value!r}: declare it `float` or `double`"
    bits = 8 * parameter.width_bytes
    low, high = (
        (-(1 << (bits - 1)), 1 << (bits - 1)) if parameter.kind is ElementKind.SIGNED else (0, 1 << bits)
    )
    if parameter.kind is ElementKind.BOOLEAN:
        high = 2
    return None if low <= value < high else f"{where} is too narrow for {value}: declare it `long long`"


def pack_parameters(
    launch: Launch, kernel: GatedKernel, program: Program, addresses: Mapping[str, int]
) -> bytes:
    packed = bytearray(program.parameter_bytes)
    for (offset, size), parameter, argument in zip(
        program.parameter_offsets, kernel.parameters, launch.args, strict=True
    ):
        if isinstance(argument, TensorArg):
            value = addresses[argument.name].to_bytes(8, "little")
        elif parameter.kind is ElementKind.FLOATING:
            value = struct.pack("<f" if parameter.width_bytes == 4 else "<d", argument)
        else:
            value = (int(argument) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        packed[offset : offset + size] = value
    return bytes(packed)


def triple(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z
