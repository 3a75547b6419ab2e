"""`cupilot doctor`: what this machine offers, layer by layer, each with the command that mends it."""

from __future__ import annotations

import importlib.util
import platform
import time
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cupilot.device import native
from cupilot.device.contention import Watch
from cupilot.device.sandbox import probe
from cupilot.errors import CupilotError

_PROBE_S = 0.5


@dataclass(frozen=True)
class Finding:
    name: str
    works: bool
    is_required: bool
    says: str
    fix: str = ""


def run() -> int:
    """0 when kernels can be evaluated here, 2 when something required is missing."""
    console = Console(highlight=False)
    findings = [*_tools(), *_layers(), _quiet(), *_extras()]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        table.add_row(_mark(finding), finding.name, _words(finding))
    console.print(table)
    missing = [finding.name for finding in findings if finding.is_required and not finding.works]
    if missing:
        console.print(f"\n[bold red]not ready[/]: {', '.join(missing)}")
        return 2
    console.print("\n[bold green]ready[/]: kernels can be evaluated on the cpu device")
    return 0


def _mark(finding: Finding) -> Text:
    if finding.works:
        return Text("✔", "green")
    return Text("✘", "red") if finding.is_required else Text("–", "yellow")


def _words(finding: Finding) -> Text:
    text = Text(finding.says)
    if not finding.works and finding.fix:
        text.append(f"\nto fix: {finding.fix}", "yellow")
    return text


def _tools() -> list[Finding]:
    found = [
        Finding("python", True, True, platform.python_version()),
        Finding("torch", True, True, f"{torch.__version__}, {torch.get_num_threads()} threads"),
    ]
    try:
        cxx = native.compiler()
        found.append(Finding("compiler", True, True, str(cxx.path)))
    except CupilotError as error:
        found.append(Finding("compiler", False, True, error.message, error.hint))
    return found


def _layers() -> list[Finding]:
    """The probes need the compiler: they build and start the real runner."""
    try:
        layers = probe()
    except CupilotError as error:
        return [Finding("sandbox", False, True, error.message, error.hint)]
    return [
        Finding(
            layer.name,
            layer.works,
            layer.is_required,
            f"{layer.covers}. Not covered: {layer.misses}" if layer.misses else layer.covers,
            layer.fix,
        )
        for layer in layers
    ]


def _quiet() -> Finding:
    watch = Watch()
    time.sleep(_PROBE_S)
    contention = watch.contention()
    fix = "close other programs before timing; verdicts stay right, contended times come out as undecided"
    return Finding("quiet machine", not contention, False, contention or "no other process is busy", fix)


def _extras() -> list[Finding]:
    found = importlib.util.find_spec("cuda") is not None
    return [
        Finding(
            "cuda extra",
            found,
            False,
            "CUDA kernels compile and run emulated" if found else "CUDA kernels need the extra",
            "pip install 'cupilot[cuda]'",
        )
    ]
