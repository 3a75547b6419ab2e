"""CUDA C++ to PTX and machine code with NVRTC, in a jailed process with a time limit; answers stay on disk.

Needs no driver and no GPU. Knows nothing of kernel files: text and options in, text and a cubin out.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cupilot.device import native
from cupilot.device.cuda_emulated.ptx.parser import source_line
from cupilot.device.cuda_emulated.wheels import Toolkit, find_toolkit
from cupilot.device.jail import run_jailed

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120")
_HERE = Path(__file__).parent
SHIM = _HERE / "shim"
_CHILD = _HERE / "nvrtc_child.py"
FILE_NAME = "kernel.cu"
# Suppressed: macros of our prelude that <cuda/std/climits> spells differently (47), unused functions (177).
_OPTIONS = (
    "-std=c++17", "-lineinfo", "--ptxas-options=-v", "-default-device", "-diag-suppress=47,177",
    "--pre-include=cupilot_prelude.h",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    source: str
    kernels: tuple[str, ...]  # names as the launch program spells them
    arch: str
    limit_s: float = 60.0


@dataclass(frozen=True)
class Built:
    ptx: str
    cubin: Path
    entries: dict[str, str]  # a kernel's name as launched -> as the PTX spells it
    log: str  # ptxas's resource report and warnings


@dataclass(frozen=True)
class Rejected:
    """`reason` completes "the kernel ..."; `log` is the compiler's own text."""

    reason: str
    log: str


def compile_cuda(request: Request) -> Built | Rejected:
    """Compile, or find the answer of an earlier identical request."""
    toolkit = find_toolkit()
    options = [f"-arch={request.arch}", *_OPTIONS]
    folder = native.cache_dir() / "nvrtc" / _key(toolkit, options, request)
    if not (folder / "answer.json").exists():
        rejected = _compile(toolkit, options, request, folder)
        if rejected is not None:
            return rejected
    answer = json.loads((folder / "answer.json").read_text())
    if not answer["ok"]:
        ptx = folder / "ptx"
        text = ptx.read_text(errors="replace") if ptx.exists() else ""
        return Rejected("does not compile", _in_the_source(answer["log"], text))
    return Built(
        (folder / "ptx").read_text(errors="replace"), folder / "cubin", answer["names"], answer["log"]
    )


def _key(toolkit: Toolkit, options: list[str], request: Request) -> str:
    shim = [path.read_text() for path in (*sorted(SHIM.iterdir()), _CHILD)]
    text = json.dumps([str(toolkit.nvrtc.resolve()), options, request.kernels, request.source, shim])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _compile(toolkit: Toolkit, options: list[str], request: Request, folder: Path) -> Rejected | None:
    """None once the folder holds the compiler's answer, good or bad. A stopped compiler leaves nothing."""
    includes = [f"-I{path}" for path in (SHIM, *toolkit.includes)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        work = Path(scratch)
        question = {
            "library": str(toolkit.nvrtc), "name": FILE_NAME, "source": request.source,
            "kernels": request.kernels, "options": [*options, *includes],
        }  # fmt: skip
        (work / "request.json").write_text(json.dumps(question))
        python = Path(sys.executable).resolve()
        readable = (python.parent, Path(sys.base_prefix) / "lib", toolkit.root, _HERE)
        command = [str(python), "-I", "-S", str(_CHILD)]
        outcome = run_jailed(command, work, read=readable, limit_s=request.limit_s)
        if outcome.ended is not None:
            return Rejected(f"was not compiled: the compiler {outcome.ended}", outcome.output)
        if not (work / "answer.json").exists():
            return Rejected(f"stops the compiler (status {outcome.status})", outcome.output)
        (work / "request.json").unlink()
        shutil.copytree(work, folder, dirs_exist_ok=True)
    return None


_LOCATION = re.compile(
    rf"^(?:.*/)?{re.escape(FILE_NAME)}\((\d+)\): (?:catastrophic |internal )?error.*$", re.MULTILINE
)
_ASSEMBLER = re.compile(
    r"^ptxas application ptx input, line (\d+); (?:error|fatal)\s*:\s*(.*)$", re.MULTILINE
)
_LINKING = re.compile(r"^\s*ptxas\s+(?:error|fatal)\s*:\s*(.*)$", re.MULTILINE)


def _in_the_source(log: str, ptx: str) -> str:
    """The assembler's complaints about inline assembly, at their lines of the kernel file."""

    def moved(match: re.Match[str]) -> str:
        line = source_line(ptx, int(match[1]))
        return f"{FILE_NAME}({line}): error: {match[2]}" if line else match[0]

    return _ASSEMBLER.sub(moved, log)


def first_error(log: str) -> str:
    """The first error with its line in the kernel file, or the log's first line."""
    located, linking = _LOCATION.search(log), _LINKING.search(log)
    if located:
        return f"line {located[1]}: {located[0].split(': ', 1)[1]}"
    if linking:
        return linking[1]
    return next((line for line in log.splitlines() if line.strip()), "the compiler gave no reason")
