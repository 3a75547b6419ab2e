"""Does a plan pass each kernel what its parameters say? Answered from the compiler's record of the types."""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.device.base import ElementKind, Parameter
from cupilot.kernel.plan import Launch, Plan, TensorArg
from cupilot.types import DType, Failed, Signature, Stage

# The element kinds a pointer may have for each dtype; the width must be the dtype's own.
_FITTING: Mapping[DType, frozenset[ElementKind]] = {
    DType.F64: frozenset({ElementKind.FLOATING}),
    DType.F32: frozenset({ElementKind.FLOATING}),
    DType.F16: frozenset({ElementKind.FLOATING, ElementKind.UNSIGNED}),
    DType.BF16: frozenset({ElementKind.FLOATING, ElementKind.UNSIGNED, ElementKind.OPAQUE}),
    DType.I64: frozenset({ElementKind.SIGNED}),
    DType.I32: frozenset({ElementKind.SIGNED}),
    DType.I16: frozenset({ElementKind.SIGNED}),
    DType.I8: frozenset({ElementKind.SIGNED}),
    DType.U8: frozenset({ElementKind.UNSIGNED}),
    DType.BOOL: frozenset({ElementKind.BOOLEAN, ElementKind.UNSIGNED}),
}
_SPELLING: Mapping[DType, str] = {
    DType.F64: "double", DType.F32: "float", DType.F16: "_Float16", DType.BF16: "unsigned short",
    DType.I64: "long", DType.I32: "int", DType.I16: "short", DType.I8: "signed char",
    DType.U8: "unsigned char", DType.BOOL: "bool",
}  # fmt: skip
_MAX_PARAMETERS = 131


def check_arguments(
    kernels: Mapping[str, tuple[Parameter, ...]], plan: Plan, signature: Signature
) -> Failed | None:
    """The first launch that does not fit, as a compile-stage failure."""
    dtypes = {t.name: t.dtype for t in (*signature.tensors, *signature.outputs)}
    dtypes |= {s.name: s.dtype for s in plan.scratch}
    inputs = {t.name for t in signature.tensors}
    for step in plan.steps:
        if isinstance(step, Launch):
            problem = _check_launch(step, kernels[step.kernel], dtypes, inputs)
            if problem is not None:
                return Failed(Stage.COMPILE, f"line {step.line}: {problem}")
    return None


def _check_launch(
    launch: Launch, parameters: tuple[Parameter, ...], dtypes: Mapping[str, DType], inputs: set[str]
) -> str | None:
    name, rank = launch.kernel, len(launch.grid)
    expected = rank + len(launch.args)
    if len(parameters) != expected or expected > _MAX_PARAMETERS:
        blocks = "a block number" if rank == 1 else f"{rank} block numbers"
        return (
            f"`{name}` has {len(parameters)} parameters but is launched with {blocks} and "
            f"{len(launch.args)} argument{'s' if len(launch.args) != 1 else ''}"
        )
    for position, (parameter, extent) in enumerate(zip(parameters, launch.grid, strict=False), 1):
        if parameter.is_pointer or not _is_integer(parameter) or parameter.width_bytes < 4:
            return f"parameter {position} of `{name}` receives a block number: declare it `long`"
        if not _fits(extent - 1, parameter):
            return f"parameter {position} of `{name}` is too narrow for {extent} blocks: declare it `long`"
    pairs = zip(parameters[rank:], launch.args, strict=True)
    for position, (parameter, argument) in enumerate(pairs, rank + 1):
        where = f"parameter {position} of `{name}`"
        problem = (
            _check_tensor(where, parameter, argument.name, dtypes[argument.name], argument.name in inputs)
            if isinstance(argument, TensorArg)
            else _check_number(where, parameter, argument)
        )
        if problem is not None:
            return problem
    return None


def _check_tensor(where: str, parameter: Parameter, name: str, dtype: DType, is_input: bool) -> str | None:
    spelling = f"{'const ' if is_input else ''}{_SPELLING[dtype]}*"
    if not parameter.is_pointer:
        return f"{where} is a number but receives the tensor `{name}`: declare it `{spelling}`"
    if parameter.width_bytes != dtype.size_bytes or parameter.kind not in _FITTING[dtype]:
        return f"{where} has the wrong element type for `{name}` ({dtype}): declare it `{spelling}`"
    if is_input and not parameter.is_const:
        return f"{where} takes the input `{name}` by a pointer that can write: declare it `{spelling}`"
    return None


def _check_number(where: str, parameter: Parameter, value: int | float) -> str | None:
    if parameter.is_pointer:
        return f"{where} is a pointer but receives the number {value}"
    if parameter.kind is ElementKind.OPAQUE:
        return f"{where} has a type that cannot be passed: use a plain number type"
    if isinstance(value, float) and parameter.kind is not ElementKind.FLOATING:
        return f"{where} is an integer but receives {value!r}: declare it `float` or `double`"
    if _is_integer(parameter) and not _fits(int(value), parameter):
        return f"{where} is too narrow for {value}: declare it `long`"
    return None


def _is_integer(parameter: Parameter) -> bool:
    return parameter.kind in (ElementKind.SIGNED, ElementKind.UNSIGNED, ElementKind.BOOLEAN)


def _fits(value: int, parameter: Parameter) -> bool:
    if parameter.kind is ElementKind.BOOLEAN:
        return value in (0, 1)
    bits = 8 * parameter.width_bytes
    if parameter.kind is ElementKind.SIGNED:
        return -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    return 0 <= value < 1 << bits
