"""The emulated CUDA device: kernel files in CUDA, compiled by NVRTC, executed by an interpreter on the CPU.

Finds wrong results, races and bad accesses, and counts what the kernel asks of memory. Measures no time.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from cupilot.device.base import Compiled, Ring
from cupilot.device.cpu import launched
from cupilot.device.cuda_emulated.encode.builder import UnsupportedError
from cupilot.device.cuda_emulated.encode.image import ModuleImage
from cupilot.device.cuda_emulated.encode.kernel import encode_kernel
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.gate import Gated, pass_gate
from cupilot.device.cuda_emulated.launching import check_launches
from cupilot.device.cuda_emulated.nvrtc import ARCHITECTURES
from cupilot.device.cuda_emulated.process import EmulatorProcess
from cupilot.device.cuda_emulated.ptx.parser import PtxError, parse_module
from cupilot.device.cuda_emulated.session import EmulatedSession
from cupilot.errors import KernelSyntaxError, UsageError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Plan
from cupilot.types import Failed, Signature, Stage

DEFAULT_ARCHITECTURE = "sm_80"


@dataclass(frozen=True)
class EmulatedCompiled(Compiled):
    """`library` is the cubin; what the emulator executes comes from the same compilation's PTX."""

    gated: Gated
    programs: Mapping[str, Program]  # by the name in the launch program
    image: bytes  # the module's constants

    @property
    def facts(self) -> Mapping[str, float | str]:
        found: dict[str, float | str] = {}
        for name, kernel in self.gated.kernels.items():
            taken = kernel.resources
            found[f"{name}: registers"] = taken.registers
            found[f"{name}: spilled bytes"] = taken.spilled_bytes
            found[f"{name}: stack bytes"] = taken.stack_bytes
            found[f"{name}: shared bytes"] = taken.shared_bytes
            found[f"{name}: barriers"] = taken.barriers
        return found


class CudaEmulated:
    """See `device.base.Device`."""

    name = "cuda-emulated"
    language = "cu"
    has_clock = False

    def __init__(self, arch: str = DEFAULT_ARCHITECTURE) -> None:
        if arch not in ARCHITECTURES:
            raise UsageError(
                f"unknown architecture {arch!r}", hint=f"architectures: {', '.join(ARCHITECTURES)}"
            )
        self.arch = arch

    def compile(
        self, kernel: KernelFile, point: Mapping[str, int], signature: Signature
    ) -> EmulatedCompiled | Failed:
        """Pass the gate at one point of the tunables, encode, and check the launches at `signature`."""
        try:
            plan = run(kernel.launch, bind(kernel, signature, point), grid_style=GridStyle.CUDA)
        except KernelSyntaxError as error:
            return Failed(Stage.PARSE, f"line {error.line}: {error.message}", error.hint)
        names = launched(kernel.launch.statements)
        gated = pass_gate(kernel.source, kernel.source_line, names, self.arch, point)
        if isinstance(gated, Failed):
            return gated
        compiled = _encode(gated)
        if isinstance(compiled, Failed):
            return compiled
        return check_launches(gated.kernels, compiled.programs, plan, signature, self.arch) or compiled

    def open(
        self, compiled: Compiled, plan: Plan, signature: Signature, ring: Ring, threads: int = 1
    ) -> EmulatedSession | Failed:
        """`threads` is not used: nothing here is timed."""
        assert isinstance(compiled, EmulatedCompiled)
        gated = compiled.gated
        refusal = check_launches(gated.kernels, compiled.programs, plan, signature, gated.arch)
        if refusal is not None:
            return refusal
        return EmulatedSession(gated, compiled.programs, compiled.image, plan, signature, ring)


def _encode(gated: Gated) -> EmulatedCompiled | Failed:
    try:
        module = parse_module(gated.ptx)
        image = ModuleImage(module.variables)
        programs = {name: encode_kernel(module, k.entry, image) for name, k in gated.kernels.items()}
        _check_operations(programs)
    except (UnsupportedError, PtxError) as error:
        return Failed(Stage.INSPECT, error.message, error.hint)
    kernels = {name: kernel.parameters for name, kernel in gated.kernels.items()}
    return EmulatedCompiled(gated.cubin, kernels, gated.log, gated, programs, bytes(image.data))


def _check_operations(programs: Mapping[str, Program]) -> None:
    """Every operation the encoder wrote must be one the emulator has."""
    known = _operations()
    for program in programs.values():
        for number, name in enumerate(program.names):
            if name not in known:
                position = int((program.code["op"] == number).argmax())
                raise UnsupportedError(program.places[position])


@functools.cache
def _operations() -> frozenset[str]:
    """What this build of the emulator executes."""
    with EmulatorProcess() as process:
        return process.operations()
