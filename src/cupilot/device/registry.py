"""The devices there are. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cupilot.device.base import Device
from cupilot.device.cpu import Cpu
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.errors import UsageError

DEVICES: Mapping[str, Callable[[], Device]] = {"cpu": Cpu, "cuda-emulated": CudaEmulated}


def open_device(name: str, arch: str | None = None) -> Device:
    """`arch`: the GPU to compile for, on devices that have a choice."""
    if name not in DEVICES:
        raise UsageError(f"unknown device {name!r}", hint=f"devices: {', '.join(DEVICES)}")
    if arch is None:
        return DEVICES[name]()
    if name != CudaEmulated.name:
        raise UsageError(f"the device {name} has no architectures", hint="leave --arch away")
    return CudaEmulated(arch)


def require_clock(name: str) -> None:
    """Evolution compares times: refuse a device that has none, before anything else happens."""
    if not open_device(name).has_clock:
        raise UsageError(
            f"{name} has no clock: it finds out whether a kernel is right, not whether one is faster",
            hint=f"judge kernels one by one: cupilot eval PROBLEM KERNEL --device {name}",
        )
