"""What this machine's cores and memory can do at most: measured once, kept with the machine's identity.

`native/peaks.cpp` measures; this file decides what to measure, whether the machine was quiet enough to
believe it, and what to keep. Peaks only go up: a slower reading never replaces a faster one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cupilot.device import native
from cupilot.device.caches import data_caches
from cupilot.device.contention import Watch
from cupilot.errors import DeviceUnavailable
from cupilot.roofline import DevicePeaks, Format, MemoryLevel, Pattern, Source

_FLAGS = ("-O3", "-march=native", "-pthread")
_ATTEMPTS = 2  # while the machine is busy
_NEAR, _FAR = (
    1.25,
    4.0,
)  # of the last cache: just outside it part of the traffic hits, far out next to nothing
_MAIN_MEMORY_BYTES = 256 << 20
_QUIET_SHARE = 0.95  # of the wall time that our threads must have had a CPU
_RETRY_AFTER_S = 300.0
_LIMIT_S = 120.0

Key = TypeVar("Key")


@dataclass(frozen=True)
class CpuPeaks:
    """Peaks of one thread and of all; `contention` says what disturbed them, "" for a quiet machine."""

    one_thread: DevicePeaks
    all_threads: DevicePeaks
    contention: str = ""


def cpu_peaks(*, force: bool = False) -> CpuPeaks:
    """This machine's peaks, for the CPUs this process may use; about three seconds the first time.

    Call it before pinning the process. `force` measures again and keeps the higher of old and new. Peaks
    from a busy machine are marked, and measured again the next time, until one reading was quiet.
    """
    cpus = sorted(os.sched_getaffinity(0))
    folder = native.cache_dir() / "peaks"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{_identity(cpus)}.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two measurements at once would disturb each other
        stored = _read(file)
        if stored is None:
            return _store(file, _measure_until_quiet(cpus))
        if force or (stored.contention and time.time() - file.stat().st_mtime > _RETRY_AFTER_S):
            return _store(file, highest(stored, _measure(cpus)))
        return stored


def highest(a: CpuPeaks, b: CpuPeaks) -> CpuPeaks:
    """The better of two readings of the same machine, figure by figure; quiet if one of them was."""
    return CpuPeaks(
        _higher(a.one_thread, b.one_thread),
        _higher(a.all_threads, b.all_threads),
        b.contention if a.contention else "",
    )


def _higher(a: DevicePeaks, b: DevicePeaks) -> DevicePeaks:
    return replace(
        a,
        levels=tuple(
            replace(x, bytes_per_s=_larger(x.bytes_per_s, y.bytes_per_s))
            for x, y in zip(a.levels, b.levels, strict=True)
        ),
        core_ops_per_s=_larger(a.core_ops_per_s, b.core_ops_per_s),
        matrix_ops_per_s=_larger(a.matrix_ops_per_s, b.matrix_ops_per_s),
        special_per_s=max(a.special_per_s, b.special_per_s),
        launch_s=min(a.launch_s, b.launch_s),
    )


def _larger(a: Mapping[Key, float], b: Mapping[Key, float]) -> dict[Key, float]:
    return {key: max(a.get(key, 0.0), b.get(key, 0.0)) for key in {**a, **b}}


def _measure_until_quiet(cpus: Sequence[int]) -> CpuPeaks:
    best = _measure(cpus)
    for _ in range(_ATTEMPTS - 1):
        if not best.contention:
            break
        best = highest(best, _measure(cpus))
    return best


def _measure(cpus: Sequence[int]) -> CpuPeaks:
    watch = Watch()
    one_thread, share = _run(cpus[:1])
    all_threads, share_all = _run(cpus) if len(cpus) > 1 else (one_thread, share)
    contention = watch.contention()
    if not contention and min(share, share_all) < _QUIET_SHARE:
        contention = f"our threads had a CPU for only {min(share, share_all):.0%} of the time"
    return CpuPeaks(one_thread, all_threads, contention)


@dataclass(frozen=True)
class _Level:
    """A level, and the working set of one thread that shows it at its best."""

    name: str
    capacity_bytes: int | None
    probe_bytes: int


def _levels(cpus: Sequence[int]) -> tuple[_Level, ...]:
    """The caches, the edge of the last one, and main memory.

    Just outside the last cache a clever replacement policy still finds part of the data there. Charging that
    range at the speed of main memory would accuse honest kernels.
    """
    threads = len(cpus)
    caches = data_caches(cpus)
    levels = [_Level(f"L{c.level}", c.size_bytes, c.size_bytes * 5 // 8 // threads) for c in caches]
    last = caches[-1].size_bytes
    spare_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    far = min(max(int(_FAR * last), _MAIN_MEMORY_BYTES), max(spare_bytes, 2 * last))
    edge = _Level(f"edge of L{caches[-1].level}", int(_FAR * last), int(_NEAR * last) // threads)
    return (*levels, edge, _Level("DRAM", None, far // threads))


def _run(cpus: Sequence[int]) -> tuple[DevicePeaks, float]:
    """Peaks of threads on these CPUs, and the share of the time that the first one had its CPU."""
    levels = _levels(cpus)
    probes = [f"{i}={level.probe_bytes}" for i, level in enumerate(levels)]
    command = [str(native.program("peaks", *_FLAGS)), ",".join(map(str, cpus)), *probes]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise DeviceUnavailable(
            f"measuring the machine's peaks took over {_LIMIT_S:g} s", hint="try again when it is less busy"
        ) from None
    if answer.returncode != 0:
        raise DeviceUnavailable(
            f"measuring the machine's peaks failed: {answer.stderr.strip() or f'status {answer.returncode}'}",
            hint=f"run it by hand to see more: {' '.join(command)}",
        )
    figures: dict[tuple[str, str], float] = {}
    for line in answer.stdout.splitlines():
        kind, name, value = line.rsplit(maxsplit=2)
        figures[kind, name] = float(value)
    return _peaks(levels, len(cpus), figures), figures["share", "cpu"]


def _peaks(levels: Sequence[_Level], threads: int, figures: Mapping[tuple[str, str], float]) -> DevicePeaks:
    def of(kind: str) -> dict[str, float]:
        return {name: value for (k, name), value in figures.items() if k == kind}

    return DevicePeaks(
        device="cpu",
        source=Source.MEASURED,
        threads=threads,
        levels=tuple(
            MemoryLevel(
                level.name,
                level.capacity_bytes,
                {Pattern(name.replace("_", " ")): rate for name, rate in of(f"memory {i}").items()},
            )
            for i, level in enumerate(levels)
        ),
        core_ops_per_s={Format(name): rate for name, rate in of("arithmetic core").items()},
        matrix_ops_per_s={Format(name): rate for name, rate in of("arithmetic matrix").items()},
        special_per_s=figures["special", "f32"],
        launch_s=figures["launch", "empty"],
    )


def _identity(cpus: Sequence[int]) -> str:
    """Changes with everything that could change the peaks, and with the way we measure them."""
    sources = [p.read_text() for p in sorted(native.SOURCES.glob("peaks*"))]
    parts = [native.compiler().identity, _microcode(), platform.release(), str(cpus), str(_levels_key(cpus))]
    return hashlib.sha256("\0".join([*parts, *sources]).encode()).hexdigest()[:24]


def _levels_key(cpus: Sequence[int]) -> tuple[object, ...]:
    return (data_caches(cpus[:1]), data_caches(cpus), os.sysconf("SC_PHYS_PAGES"))


def _microcode() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("microcode")), "")


def _store(file: Path, peaks: CpuPeaks) -> CpuPeaks:
    data = {
        "one_thread": _to_json(peaks.one_thread),
        "all_threads": _to_json(peaks.all_threads),
        "contention": peaks.contention,
    }
    part = file.with_suffix(".part")
    part.write_text(json.dumps(data, indent=1))
    part.replace(file)
    return peaks


def _read(file: Path) -> CpuPeaks | None:
    try:
        data = json.loads(file.read_text())
        return CpuPeaks(_from_json(data["one_thread"]), _from_json(data["all_threads"]), data["contention"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or not ours: measure


def _to_json(peaks: DevicePeaks) -> dict[str, Any]:
    return {
        "threads": peaks.threads,
        "levels": [[x.name, x.capacity_bytes, dict(x.bytes_per_s)] for x in peaks.levels],
        "core_ops_per_s": dict(peaks.core_ops_per_s),
        "matrix_ops_per_s": dict(peaks.matrix_ops_per_s),
        "special_per_s": peaks.special_per_s,
        "launch_s": peaks.launch_s,
    }


def _from_json(data: Mapping[str, Any]) -> DevicePeaks:
    return DevicePeaks(
        device="cpu",
        source=Source.MEASURED,
        threads=data["threads"],
        levels=tuple(
            MemoryLevel(name, capacity, {Pattern(p): rate for p, rate in rates.items()})
            for name, capacity, rates in data["levels"]
        ),
        core_ops_per_s={Format(name): rate for name, rate in data["core_ops_per_s"].items()},
        matrix_ops_per_s={Format(name): rate for name, rate in data["matrix_ops_per_s"].items()},
        special_per_s=data["special_per_s"],
        launch_s=data["launch_s"],
    )
