"""A kernel file compiled at one point of its tunables: the thing that is verified, timed and raced.

Knows how to open a session at any shape of the problem. Does not judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cupilot.device.base import Compiled, Device, Ring, Session
from cupilot.errors import KernelSyntaxError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Plan
from cupilot.types import Failed, Signature, Stage

# Kernels are verified in so many slots; timed calls are repeated in as many: nothing tells the two apart.
VERIFY_RING = Ring(inputs=3, outputs=2)
GRID_STYLES = {"cpp": GridStyle.CPU, "cu": GridStyle.CUDA}


@dataclass(frozen=True)
class BuiltKernel:
    kernel: KernelFile
    point: Mapping[str, int]
    compiled: Compiled
    device: Device

    def plan(self, signature: Signature) -> Plan | Failed:
        """What the launch program does at these shapes."""
        try:
            return run(
                self.kernel.launch,
                bind(self.kernel, signature, self.point),
                grid_style=GRID_STYLES[self.device.language],
            )
        except KernelSyntaxError as error:
            return Failed(Stage.LOAD, f"line {error.line}: {error.message}", error.hint)

    def open(self, signature: Signature, ring: Ring, threads: int = 1) -> Session | Failed:
        """A fresh process that holds the kernel at these shapes."""
        plan = self.plan(signature)
        if isinstance(plan, Failed):
            return plan
        return self.device.open(self.compiled, plan, signature, ring, threads)


def build(
    kernel: KernelFile, point: Mapping[str, int], signature: Signature, device: Device
) -> BuiltKernel | Failed:
    """Compile and inspect; argument types are checked at `signature`."""
    compiled = device.compile(kernel, point, signature)
    return compiled if isinstance(compiled, Failed) else BuiltKernel(kernel, point, compiled, device)
