"""The compile gate: is this text a valid CUDA kernel for an architecture, and what does it take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cupilot.device.base import ElementKind, Parameter
from cupilot.device.cuda_emulated.nvrtc import (
    FILE_NAME,
    SHIM,
    Built,
    Rejected,
    Request,
    compile_cuda,
    first_error,
)
from cupilot.device.cuda_emulated.resources import Resources, read_resources
from cupilot.device.cuda_emulated.wheels import find_toolkit
from cupilot.types import Failed, Stage

_ARGUMENTS_HEADER = Path(__file__).parent / "arguments.h"
_BFLOAT_KIND = 5  # a floating kind of its own in arguments.h: both halves are two bytes wide
_RECORD = re.compile(
    r"^\.const \.align 4 \.b8 cupilot_arguments_(\d+)\[\d+\] = \{([\d, ]*)\};?\s*$", re.MULTILINE
)
_RECORD_LINE = (
    'extern "C" __constant__ auto cupilot_arguments_{i} = '
    "cupilot_abi::Kernel<decltype(&::{name})>::describe();"
)
_INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>\n]+)>", re.MULTILINE)
_SHARED_DATA = re.compile(r"uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)")
_ENTRY = re.compile(r"^\s*(?:\.\w+\s+)*\.entry\s+([\w$]+)", re.MULTILINE)


@dataclass(frozen=True)
class CudaParameter(Parameter):
    is_bfloat: bool = False


@dataclass(frozen=True)
class GatedKernel:
    """One kernel the launch program names."""

    entry: str  # its name in PTX
    parameters: tuple[CudaParameter, ...]
    resources: Resources


@dataclass(frozen=True)
class Gated:
    arch: str
    ptx: str
    cubin: Path
    kernels: Mapping[str, GatedKernel]
    log: str


def pass_gate(
    source: str,
    first_line: int,
    kernels: tuple[str, ...],
    arch: str,
    defines: Mapping[str, int],
    limit_s: float = 60.0,
) -> Gated | Failed:
    """Compile the text of a kernel file whose first line is `first_line` there, for the kernels launched."""
    text = _whole_text(source, first_line, kernels, defines)
    outcome = compile_cuda(Request(text, kernels, arch, limit_s))
    if isinstance(outcome, Rejected):
        return _explain(outcome, kernels)
    entries = set(_ENTRY.findall(outcome.ptx))
    for name in kernels:
        if outcome.entries[name] not in entries:
            return Failed(Stage.COMPILE, f"`{name}` is launched but is not a `__global__` function")
    return _gated(outcome, kernels, arch)


def _whole_text(source: str, first_line: int, kernels: tuple[str, ...], defines: Mapping[str, int]) -> str:
    """Headers come before the tunables' macros: a tunable called N must not rewrite NVIDIA's templates."""
    folders = (SHIM, *find_toolkit().includes)
    headers = [
        name for name in _INCLUDE.findall(source) if any((folder / name).is_file() for folder in folders)
    ]
    return "\n".join(
        [
            *(f"#include <{name}>" for name in headers),
            _ARGUMENTS_HEADER.read_text(),
            *(f"#define {name} {value}" for name, value in sorted(defines.items())),
            f'#line {first_line} "{FILE_NAME}"',
            source,
            '#line 1 "launch program"',
            *(_RECORD_LINE.format(i=i, name=name) for i, name in enumerate(kernels)),
            "",
        ]
    )


def _explain(rejected: Rejected, kernels: tuple[str, ...]) -> Failed:
    for name in kernels:
        if re.search(rf'identifier "{name}" is undefined|has no member "{name}"', rejected.log):
            return Failed(
                Stage.COMPILE, f"`{name}` is launched but the text defines no such kernel", rejected.log
            )
        if "non-__global__" in rejected.log and f'" {name}"' in rejected.log:
            return Failed(
                Stage.COMPILE, f"`{name}` is launched but is not a `__global__` function", rejected.log
            )
        if re.search(rf"more than one instance of overloaded function \"(?:::)?{name}\"", rejected.log):
            return Failed(
                Stage.COMPILE, f"`{name}` is overloaded: give the launched kernel its own name", rejected.log
            )
    too_much = _SHARED_DATA.search(rejected.log)
    if too_much:
        needed, most = (int(number, 16) for number in too_much.groups())
        return Failed(
            Stage.COMPILE,
            f"declares {needed} bytes of shared memory, at most {most} can be: for more, declare it "
            "`extern __shared__` and launch with shared=",
            rejected.log,
        )
    if rejected.reason == "does not compile":
        return Failed(Stage.COMPILE, f"does not compile: {first_error(rejected.log)}", rejected.log)
    return Failed(Stage.COMPILE, rejected.reason, rejected.log)


def _gated(built: Built, kernels: tuple[str, ...], arch: str) -> Gated:
    parameters = {int(i): _parameters(data) for i, data in _RECORD.findall(built.ptx)}
    resources = read_resources(built.log)
    found = {
        name: GatedKernel(built.entries[name], parameters[i], resources[built.entries[name]])
        for i, name in enumerate(kernels)
    }
    return Gated(arch, _RECORD.sub("", built.ptx), built.cubin, found, built.log)


def _parameters(data: str) -> tuple[CudaParameter, ...]:
    """PTX drops trailing zero bytes of constant data."""
    values = bytes(int(byte) for byte in data.split(",") if byte.strip())
    count = int.from_bytes(values[:4], "little")
    padded = values.ljust(4 * (count + 1), b"\0")
    words = [int.from_bytes(padded[4 * i : 4 * i + 4], "little") for i in range(1, count + 1)]
    return tuple(
        CudaParameter(
            kind=ElementKind.FLOATING if word & 0xFF == _BFLOAT_KIND else ElementKind(word & 0xFF),
            width_bytes=word >> 8 & 0xFF,
            is_pointer=bool(word >> 16 & 1),
            is_const=bool(word >> 17 & 1),
            is_bfloat=word & 0xFF == _BFLOAT_KIND,
        )
        for word in words
    )
