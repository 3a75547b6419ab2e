"""The machine code of a compiled kernel and its instruction mix, from NVIDIA's disassembler."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cupilot.device.cuda_emulated.wheels import find_toolkit
from cupilot.device.jail import run_jailed
from cupilot.errors import DeviceUnavailable

_FUNCTION = re.compile(r"^\s*\.text\.(\S+):\s*$", re.MULTILINE)
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE
)


def disassemble(cubin: Path) -> dict[str, str]:
    """The machine code of every entry, as text, under its PTX name."""
    toolkit = find_toolkit()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        shutil.copy(cubin, work / "kernel.cubin")
        outcome = run_jailed([str(toolkit.nvdisasm), "-c", "kernel.cubin"], work, read=(toolkit.root,))
    if outcome.status != 0 or outcome.ended is not None:
        raise DeviceUnavailable(
            f"nvdisasm failed: {outcome.ended or outcome.output.strip()[:400]}",
            hint="reinstall nvidia-cuda-nvdisasm at the version of nvidia-cuda-nvrtc",
        )
    parts = _FUNCTION.split(outcome.output)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def instruction_mix(text: str) -> Mapping[str, int]:
    """How often each base opcode stands in the text; an instruction in a loop counts once."""
    return Counter(opcode.split(".")[0] for opcode in _INSTRUCTION.findall(text))
