"""Single PTX instructions in bulk: one kernel applies many of them to the same operands, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import emu_kit
import numpy as np

from cupilot.device.base import Array
from cupilot.types import DType

COUNT = 256
_CONSTRAINT = {"16": "h", "32": "r", "64": "l", "f32": "f", "f64": "d"}
_C_TYPE = {
    "16": "unsigned short",
    "32": "unsigned",
    "64": "unsigned long long",
    "f32": "float",
    "f64": "double",
}
_NUMPY = {"16": np.uint16, "32": np.uint32, "64": np.uint64}
_SIGNED = {"16": np.int16, "32": np.int32, "64": np.int64, "f32": np.int32, "f64": np.int64}
_DTYPE = {"16": DType.I16, "32": DType.I32, "64": DType.I64, "f32": DType.I32, "f64": DType.I64}
_BITS = {"16": "16", "32": "32", "64": "64", "f32": "32", "f64": "64"}


@dataclass(frozen=True)
class Op:
    """`text` is PTX with %0 for the result and %1, %2, %3 for operands of these register kinds."""

    text: str
    result: str
    operands: tuple[str, ...]


def apply(ops: Sequence[Op], *operands: Array, arch: str = "sm_80") -> list[Array]:
    """For each op its results as unsigned integers (bits); operand k is the low bits of the k-th array."""
    given = {f"x{k}": np.ascontiguousarray(values.astype(np.uint64)).view(np.int64)
             for k, values in enumerate(operands)}  # fmt: skip
    assert all(values.shape == (COUNT,) for values in given.values())
    lines = []
    for number, op in enumerate(ops):
        inputs = ", ".join(
            f'"{_CONSTRAINT[kind]}"({_as(kind, f"x{k}[i]")})' for k, kind in enumerate(op.operands)
        )
        text = op.text.replace('"', '\\"')
        lines.append(
            f'{{ {_C_TYPE[op.result]} r; asm volatile("{{ {text} }}" : "={_CONSTRAINT[op.result]}"(r) '
            f": {inputs}); out{number}[i] = {_back(op.result)}; }}"
        )
    parameters = [f"const long long* {name}" for name in given]
    parameters += [f"{_pointer(op.result)} out{k}" for k, op in enumerate(ops)]
    code = (
        f'extern "C" __global__ void k({", ".join(parameters)}) {{\n'
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\n" + "\n".join(lines) + "\n}"
    )
    names = [*given, *(f"out{k}" for k in range(len(ops)))]
    outputs = {f"out{k}": ((COUNT,), _DTYPE[op.result]) for k, op in enumerate(ops)}
    found = emu_kit.compute(code, f"k[2, {COUNT // 2}]({', '.join(names)})", given, outputs, arch)
    return [found[f"out{k}"].view(_NUMPY[_BITS[op.result]]) for k, op in enumerate(ops)]


def _pointer(kind: str) -> str:
    return {"16": "short*", "32": "int*", "64": "long long*"}[_BITS[kind]]


def _as(kind: str, value: str) -> str:
    if kind == "f32":
        return f"__int_as_float((int){value})"
    if kind == "f64":
        return f"__longlong_as_double({value})"
    return f"({_C_TYPE[kind]}){value}"


def _back(kind: str) -> str:
    if kind == "f32":
        return "__float_as_int(r)"
    return "__double_as_longlong(r)" if kind == "f64" else "r"
