"""`cupilot roofline`: where a problem stands on a device, before any kernel exists."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cupilot.cli.plot import roofline_plot
from cupilot.cli.units import scaled, seconds
from cupilot.device.datasheet import find_gpu, gpu_peaks
from cupilot.device.peaks import cpu_peaks
from cupilot.errors import UsageError
from cupilot.problem.loading import load
from cupilot.roofline import DevicePeaks, Placement, Source, Work, Zone, place

FOOTPRINT_BYTES = 512 << 20  # calls are timed on data that no cache still holds
_KINDS = {Source.MEASURED: "measured", Source.DATASHEET: "predicted"}
_ZONES = {Zone.MEMORY: "cyan", Zone.MIDDLE: "green", Zone.COMPUTE: "magenta", Zone.LATENCY: "yellow"}


@dataclass(frozen=True)
class Placed:
    """The problem on one device; `note` says why the peaks may be too low, or ""."""

    peaks: DevicePeaks
    placement: Placement
    note: str = ""

    @property
    def title(self) -> str:
        threads = self.peaks.threads
        return f"{self.peaks.device}, {threads} thread{'s' * (threads > 1)}" if threads else self.peaks.device


def run(problem: str, *, size: str | None, device: str, json: bool) -> int:
    """`device`: "cpu", a GPU of the data sheets ("H100 SXM", "cuda:H200"), or several with commas."""
    loaded = load(problem, size)
    work = Work.of(loaded.counts)
    arithmetic = loaded.precision.arithmetic
    placed = tuple(
        Placed(peaks, place(work, peaks, arithmetic, FOOTPRINT_BYTES), note)
        for peaks, note in _devices(device)
    )
    if json:
        print(json_module.dumps(to_json(loaded.name, str(loaded.precision), work, placed)))
    else:
        Console(highlight=False).print(page(loaded.name, str(loaded.precision), work, placed))
    return 0


def _devices(names: str) -> Iterator[tuple[DevicePeaks, str]]:
    for name in (part.strip() for part in names.split(",")):
        if name == "cpu":
            peaks = cpu_peaks()
            note = f"the peaks may be too low: {peaks.contention}" if peaks.contention else ""
            yield peaks.one_thread, note
            if peaks.all_threads.threads > 1:
                yield peaks.all_threads, note
        else:
            yield gpu_peaks(find_gpu(_installed_gpu() if name == "cuda" else name.removeprefix("cuda:"))), ""


def _installed_gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        raise UsageError(
            "there is no GPU here", hint='name one: --device "H100 SXM" places the problem on paper'
        )
    return torch.cuda.get_device_name()


def page(name: str, precision: str, work: Work, placed: tuple[Placed, ...]) -> RenderableType:
    """A table of all devices, then one plot for each."""
    parts: list[RenderableType] = [
        Text.assemble((name, "bold"), "  ", (precision, "dim")),
        Text(_needs(work), "dim"),
        Padding(_table(placed), (1, 0)),
    ]
    for item in placed:
        parts += [Text(item.title, "bold"), roofline_plot(item.placement), Text()]
    notes = dict.fromkeys(item.note for item in placed if item.note)
    parts += [Text(f"note: {note}", "yellow") for note in notes]
    return Group(*parts)


def _needs(work: Work) -> str:
    counts = [f"{scaled(count, '').strip()} {kind.value}" for kind, count in work.operations.items() if count]
    computes = f"computes {' + '.join(counts)} operations" if counts else "computes nothing"
    return f"reads {scaled(work.bytes_read, 'B')}, writes {scaled(work.bytes_written, 'B')}, {computes}"


def _table(placed: tuple[Placed, ...]) -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim", no_wrap=True)
    for _ in placed:
        table.add_column(overflow="fold")
    table.add_row("", *(Text(item.title, "bold") for item in placed))
    for label, cells in _rows([item.placement for item in placed]):
        table.add_row(label, *cells)
    return table


def _rows(placements: list[Placement]) -> Iterator[tuple[str, list[Text]]]:
    yield "zone", [Text(p.zone.value, f"bold {_ZONES[p.zone]}") for p in placements]
    yield "binds", [Text(p.binds) for p in placements]
    yield "attainable", [Text(seconds(p.attainable_s), "bold") for p in placements]
    yield "floor, bytes", [Text(seconds(p.byte_floor_s)) for p in placements]
    yield (
        "floor, operations",
        [Text(seconds(p.operation_floor_s) if p.operation_floor_s else "-") for p in placements],
    )
    yield "memory", [Text(f"{scaled(p.bytes_per_s, 'B/s')} ({p.level})") for p in placements]
    yield "plain cores", [Text(scaled(p.core_ops_per_s, "op/s")) for p in placements]
    yield (
        "matrix units",
        [
            Text(scaled(p.matrix_ops_per_s, "op/s") if p.matrix_ops_per_s > p.core_ops_per_s else "-")
            for p in placements
        ],
    )
    yield "intensity", [Text(f"{p.intensity_ops_per_byte:.3g} op/byte") for p in placements]
    yield "ridges", [Text(_ridges(p)) for p in placements]
    yield "kind", [Text(_KINDS[p.source], "dim") for p in placements]


def _ridges(p: Placement) -> str:
    first, second = p.core_ridge_ops_per_byte, p.matrix_ridge_ops_per_byte
    return f"{first:.3g} op/byte" if first == second else f"{first:.3g} and {second:.3g} op/byte"


def to_json(name: str, precision: str, work: Work, placed: tuple[Placed, ...]) -> Mapping[str, Any]:
    return {
        "problem": name,
        "precision": precision,
        "bytes_read": work.bytes_read,
        "bytes_written": work.bytes_written,
        "operations": {kind.value: count for kind, count in work.operations.items()},
        "devices": [_device_json(item) for item in placed],
    }


def _device_json(item: Placed) -> Mapping[str, Any]:
    p = item.placement
    return {
        "device": item.peaks.device,
        "threads": item.peaks.threads or None,
        "kind": _KINDS[p.source],
        "zone": p.zone.value,
        "binds": p.binds,
        "attainable_s": p.attainable_s,
        "floor_s": p.floor_s,
        "byte_floor_s": p.byte_floor_s,
        "operation_floor_s": p.operation_floor_s,
        "level": p.level,
        "bytes_per_s": p.bytes_per_s,
        "core_ops_per_s": p.core_ops_per_s,
        "matrix_ops_per_s": p.matrix_ops_per_s,
        "intensity_ops_per_byte": p.intensity_ops_per_byte,
        "ridges_ops_per_byte": [p.core_ridge_ops_per_byte, p.matrix_ridge_ops_per_byte],
        "note": item.note,
    }
