"""Behaviour of measuring and keeping peaks. How high they are is checked by `benchmarks/peaks.py`."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cupilot.device import contention, native, peaks
from cupilot.device.assembly import read_loops
from cupilot.device.caches import Cache, data_caches
from cupilot.device.contention import Watch
from cupilot.device.peaks import CpuPeaks, cpu_peaks, highest
from cupilot.roofline import DevicePeaks, Format, MemoryLevel, Pattern, Source


def device_peaks(scale: float = 1.0, **changes: object) -> DevicePeaks:
    return replace(
        DevicePeaks(
            device="cpu",
            source=Source.MEASURED,
            threads=1,
            levels=(
                MemoryLevel("L1", 1000, {Pattern.READ: 100 * scale}),
                MemoryLevel("DRAM", None, {Pattern.READ: 10 * scale, Pattern.STREAM_COPY: 8 * scale}),
            ),
            core_ops_per_s={Format.F32: 50 * scale},
            matrix_ops_per_s={},
            special_per_s=5 * scale,
            launch_s=1e-6 / scale,
        ),
        **changes,
    )


def reading(scale: float = 1.0, disturbed: str = "") -> CpuPeaks:
    return CpuPeaks(device_peaks(scale), device_peaks(2 * scale), disturbed)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[CpuPeaks]:
    """What the next measurements find; they are taken from the front. Nothing else is measured."""
    queue: list[CpuPeaks] = []
    monkeypatch.setenv("CUPILOT_CACHE", str(tmp_path))
    monkeypatch.setattr(peaks, "_measure", lambda _cpus: queue.pop(0))
    return queue


def test_peaks_are_measured_once(readings: list[CpuPeaks]) -> None:
    readings.append(reading())
    assert cpu_peaks() == cpu_peaks() == reading()


def test_peaks_only_go_up(readings: list[CpuPeaks]) -> None:
    readings += [reading(1.0), reading(0.5), reading(3.0)]
    assert cpu_peaks() == reading(1.0)
    assert cpu_peaks(force=True) == reading(1.0)
    assert cpu_peaks(force=True) == reading(3.0)
    assert cpu_peaks() == reading(3.0)


def test_a_busy_machine_is_measured_again_and_said_so(readings: list[CpuPeaks]) -> None:
    readings += [reading(0.7, "busy"), reading(0.5, "busy")]
    assert cpu_peaks() == reading(0.7, "busy")
    assert not readings
    assert cpu_peaks().contention == "busy"  # not at once again


def test_peaks_of_a_busy_machine_are_replaced_later(
    readings: list[CpuPeaks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "_RETRY_AFTER_S", -1.0)
    readings += [reading(0.5, "busy")] * 2 + [reading(1.0)]
    assert cpu_peaks().contention == "busy"
    assert cpu_peaks() == reading(1.0)
    assert cpu_peaks() == reading(1.0)  # quiet: kept


def test_a_quiet_reading_ends_the_attempts(readings: list[CpuPeaks]) -> None:
    readings += [reading(0.5, "busy"), reading(1.0)]
    assert cpu_peaks() == reading(1.0)


def test_the_highest_of_two_readings_is_taken_figure_by_figure() -> None:
    a, b = device_peaks(), device_peaks(0.5, core_ops_per_s={Format.F32: 70.0, Format.I8: 9.0}, launch_s=1e-7)
    best = highest(CpuPeaks(a, a), CpuPeaks(b, b)).one_thread
    assert best.levels == a.levels
    assert best.core_ops_per_s == {Format.F32: 70.0, Format.I8: 9.0}
    assert best.launch_s == 1e-7


def test_other_cpus_are_another_machine() -> None:
    assert peaks._identity([0]) == peaks._identity([0])
    assert peaks._identity([0]) != peaks._identity([0, 1])


def test_a_damaged_file_is_measured_again(readings: list[CpuPeaks], tmp_path: Path) -> None:
    readings += [reading(1.0), reading(2.0)]
    cpu_peaks()
    (file,) = (tmp_path / "peaks").glob("*.json")
    file.write_text("{}")
    assert cpu_peaks() == reading(2.0)


def test_the_program_measures_every_level_and_precision() -> None:
    cpu = sorted(os.sched_getaffinity(0))[0]
    measured, share = peaks._run([cpu])
    assert measured.threads == 1
    assert measured.levels[-1].capacity_bytes is None
    for level in measured.levels:
        assert set(level.bytes_per_s) == set(Pattern)
        assert all(rate > 1e8 for rate in level.bytes_per_s.values())
    assert {Format.F32, Format.F64} <= set(measured.core_ops_per_s)
    assert min(*measured.core_ops_per_s.values(), measured.special_per_s) > 1e8
    assert 0 < measured.launch_s < 1e-3
    assert 0 < share < 1.1


def test_the_arithmetic_loops_run_on_registers_alone() -> None:
    program = native.program("peaks", *peaks._FLAGS)
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(program)], capture_output=True, text=True, check=True
    ).stdout
    loops = [
        loop for loop in read_loops(listing) if "multiply_add" in loop.function or "3dot" in loop.function
    ]
    assert len(loops) >= 2
    for loop in loops:
        assert loop.packed >= 12
        assert loop.packed == loop.accumulators
        assert loop.spills == loop.loads == loop.stores == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are x86-64 machines")
@pytest.mark.parametrize("machine", ["x86-64", "haswell", "alderlake", "sapphirerapids"])
def test_the_program_is_valid_for_machines_unlike_this_one(machine: str) -> None:
    command = [str(native.compiler().path), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, f"-march={machine}", str(native.SOURCES / "peaks.cpp")], check=True)


def test_caches_shared_by_cpus_count_once(tmp_path: Path) -> None:
    for cpu in (0, 1):
        for index, (level, kind, size, shared) in enumerate(
            [
                (1, "Data", "32K", cpu),
                (1, "Instruction", "64K", cpu),
                (2, "Unified", "1M", cpu),
                (3, "Unified", "32M", "0-1"),
            ]
        ):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            for name, value in {
                "level": level,
                "type": kind,
                "size": size,
                "shared_cpu_list": shared,
            }.items():
                (folder / name).write_text(f"{value}\n")
    assert data_caches([0], tmp_path) == (Cache(1, 32 << 10), Cache(2, 1 << 20), Cache(3, 32 << 20))
    assert data_caches([0, 1], tmp_path) == (Cache(1, 64 << 10), Cache(2, 2 << 20), Cache(3, 32 << 20))
    assert len(data_caches([7], tmp_path)) == 3  # nothing known: typical sizes


def test_others_at_work_are_contention_and_we_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own, wall = 100.0, 10.0, 1000.0
    watch = Watch(wall_s=wall, busy_s=busy, own_s=own)
    monkeypatch.setattr(contention.time, "monotonic", lambda: wall + 2)
    monkeypatch.setattr(contention, "own_cpu_s", lambda: own + 2)
    monkeypatch.setattr(contention, "busy_cpu_s", lambda: busy + 2.05)
    assert watch.contention() == ""
    monkeypatch.setattr(contention, "busy_cpu_s", lambda: busy + 4)
    assert "1.0 CPUs" in watch.contention()
