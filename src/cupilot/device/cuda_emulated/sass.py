"""The machine code of a compiled kernel and its instruction mix, from NVIDIA's disassembler."""

from __future__ import annotations

import json
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


def machine_code(cubin: Path) -> Mapping[str, Mapping[str, int]]:
    """The instruction mix of every entry, remembered beside the cubin."""
    known = cubin.with_name("mix.json")
    if known.exists():
        found: Mapping[str, Mapping[str, int]] = json.loads(known.read_text())
        return found
    found = {entry: instruction_mix(text) for entry, text in disassemble(cubin).items()}
    with tempfile.NamedTemporaryFile("w", dir=cubin.parent, delete=False) as file:
        json.dump(found, file)
    Path(file.name).replace(known)
    return found


def instruction_mix(text: str) -> Mapping[str, int]:
    """How often each base opcode stands in the text; one in a loop counts once, padding does not."""
    found = Counter(opcode.split(".")[0] for opcode in _INSTRUCTION.findall(text))
    return {opcode: n for opcode, n in found.most_common() if opcode != "NOP"}
