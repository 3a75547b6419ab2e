"""What can be found wrong with arguments at once. Nothing here imports torch, which takes seconds."""

from __future__ import annotations

import os
from pathlib import Path

from cupilot.device.base import Device
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.device.datasheet import find_gpu
from cupilot.device.registry import DEVICES, open_device
from cupilot.errors import UsageError
from cupilot.problem.locating import locate


def check_evaluation(
    problem: str, kernel: Path, device: str, arch: str | None, threads: int
) -> tuple[str, Device]:
    """The kernel's text and the device, of an evaluation whose arguments make sense."""
    text = read_kernel(kernel)
    cores = len(os.sched_getaffinity(0))
    if threads > cores:
        raise UsageError(f"{threads} threads on {cores} cores", hint=f"give --threads {cores} at most")
    opened = open_device(device, arch)
    _check_language(kernel, opened)
    locate(problem)
    return text, opened


def read_kernel(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"no kernel file {path}", hint="give the path of a .cpp or .cu kernel file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="a kernel file is UTF-8 text") from error


def _check_language(kernel: Path, device: Device) -> None:
    """A kernel for another device is told apart by its suffix, before a compiler says it at length."""
    for name, make in DEVICES.items():
        language = make().language
        if kernel.suffix == f".{language}" and language != device.language:
            what = f"{kernel} is for another device than {device.name}"
            raise UsageError(what, hint=f"add --device {name}")


def check_places(problem: str, devices: str) -> None:
    """Devices that the roofline knows ("cuda" is the one installed), and a problem that is there."""
    for name in (part.strip() for part in devices.split(",")):
        if name == CudaEmulated.name:
            raise UsageError(
                f"{name} has no peaks: it counts, and measures no time",
                hint='name the GPU that is meant: --device "H100 SXM" places the problem on paper',
            )
        if name not in ("cpu", "cuda"):
            find_gpu(name.removeprefix("cuda:"))
    locate(problem)
