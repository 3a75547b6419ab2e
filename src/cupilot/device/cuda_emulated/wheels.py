"""Where the wheels of the extra `cuda` put NVIDIA's compiler, headers and disassembler."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from cupilot.errors import DeviceUnavailable

INSTALL_HINT = "pip install 'cupilot[cuda]'"


@dataclass(frozen=True)
class Toolkit:
    root: Path
    nvrtc: Path  # the shared library
    nvdisasm: Path

    @property
    def includes(self) -> tuple[Path, ...]:
        return (self.root / "include", self.root / "include" / "cccl")


def find_toolkit() -> Toolkit:
    """Raises DeviceUnavailable, naming the missing wheel and the extra that brings it."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        for root in sorted(Path(place).glob("cu[0-9]*"), reverse=True):
            return _complete(root)
    raise DeviceUnavailable("NVIDIA's compiler for CUDA (NVRTC) is not installed", hint=INSTALL_HINT)


def _complete(root: Path) -> Toolkit:
    libraries = sorted(root.glob("lib/libnvrtc.so.*"))
    disassembler = root / "bin" / "nvdisasm"
    needed = {
        "nvidia-cuda-nvrtc": bool(libraries),
        "nvidia-cuda-nvdisasm": disassembler.exists(),
        "nvidia-cuda-runtime": (root / "include" / "cuda_fp16.h").exists(),
        "nvidia-cuda-crt": (root / "include" / "crt").exists(),
        "nvidia-cuda-cccl": (root / "include" / "cccl").exists(),
    }
    missing = [wheel for wheel, present in needed.items() if not present]
    if missing:
        raise DeviceUnavailable(f"the CUDA compiler lacks {', '.join(missing)}", hint=INSTALL_HINT)
    return Toolkit(root, libraries[0], disassembler)
