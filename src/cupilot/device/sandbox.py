"""Which layers of the sandbox hold on this machine, found by trying them: what `cupilot doctor` shows.

Nothing runs without the required layers: the runner refuses to start. The others make the walls thicker.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cupilot.device import native
from cupilot.device.jail import run_jailed
from cupilot.device.memory import read_memory, span_of
from cupilot.device.session import RUNNER_FLAGS, end_process
from cupilot.errors import CupilotError

_START_S = 5.0  # in which a process that was begun is in memory, however busy the machine


@dataclass(frozen=True)
class Layer:
    """One layer: whether it works here, what it covers and what not, and the command that fixes it."""

    name: str
    works: bool
    is_required: bool
    covers: str
    misses: str
    fix: str


@dataclass(frozen=True)
class _Probe:
    name: str
    try_it: Callable[[], bool]
    is_required: bool
    covers: str
    misses: str
    fix: str


def probe() -> tuple[Layer, ...]:
    return tuple(
        Layer(each.name, each.try_it(), each.is_required, each.covers, each.misses, each.fix)
        for each in _PROBES
    )


def _jail(*command: str, read: tuple[Path, ...] = ()) -> tuple[int, str]:
    with tempfile.TemporaryDirectory(dir=native.cache_dir()) as work:
        answer = run_jailed(command, Path(work), read=read, limit_s=5.0)
    return answer.status, answer.output.strip()


def _filters_calls() -> bool:
    filter_refused = 124  # jail.cpp
    return _jail("/bin/true")[0] != filter_refused


def _limits_files() -> bool:
    return _jail("/bin/cat", "/etc/passwd")[0] != 0


def _limits_resources() -> bool:
    return _jail("/bin/sh", "-c", "ulimit -f 1 && head -c 100000 /dev/zero > big")[0] != 0


def _isolates_network() -> bool:
    status, inside = _jail("/bin/readlink", "/proc/self/ns/net", read=(Path("/proc"),))
    return status == 0 and inside != os.readlink("/proc/self/ns/net")


def _reaches_memory() -> bool:
    """Read the first bytes of a waiting runner's own program."""
    process = _idle_runner()
    try:
        start = _program_at(process.pid)
        found = np.zeros(4, np.uint8)
        read_memory(process.pid, [span_of(found)], [(start, 4)])
        return found.tobytes() == b"\x7fELF"
    except (CupilotError, OSError, ValueError):
        return False
    finally:
        end_process(process)


def _program_at(pid: int) -> int:
    """The address of a process's own program. One that was only just begun has a stack and nothing else."""
    latest_s = time.monotonic() + _START_S
    while True:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        if (first := next((line for line in lines if line.split()[-1].startswith("/")), None)) is not None:
            return int(first.split("-", 1)[0], 16)
        if time.monotonic() > latest_s:
            raise ValueError(f"process {pid} has no program")
        time.sleep(0.001)


def _reads_cpu_clock() -> bool:
    process = _idle_runner()
    try:
        return time.clock_gettime_ns((~process.pid << 3) | 2) >= 0
    except OSError:
        return False
    finally:
        end_process(process)


def _idle_runner() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(native.program("runner", *RUNNER_FLAGS))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )


def _has_huge_pages() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


_PROBES = (
    _Probe(
        "system-call filter", _filters_calls, True,
        "a loaded kernel can read its commands, write its answers and exit; any other system call kills it",
        "what needs no system call: registers, caches, the memory of its own process",
        "run on Linux 4.14 or newer with seccomp; in a container: --security-opt seccomp=unconfined",
    ),
    _Probe(
        "process memory", _reaches_memory, True,
        "inputs and outputs move without shared pages; expected values never enter the kernel's process",
        "",
        "sysctl kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE",
    ),
    _Probe(
        "process CPU clock", _reads_cpu_clock, True,
        "time is read outside the process that is timed",
        "work done by the system on its behalf while it does not run",
        "run on Linux",
    ),
    _Probe(
        "file access (Landlock)", _limits_files, False,
        "the compiler sees headers and libraries only; a library being loaded sees no other file",
        "whether a file exists; without this layer, only the check of #include lines stands",
        "boot Linux 5.13 or newer with landlock in the lsm= list",
    ),
    _Probe(
        "resource limits", _limits_resources, False,
        "memory, CPU time and file size of compiler and kernel",
        "memory bandwidth and caches, which all processes share",
        "run on Linux",
    ),
    _Probe(
        "namespaces", _isolates_network, False,
        "the compiler has no network, even where its system-call filter had a hole",
        "the kernel's process, which needs none: it can open no socket",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0 (on Ubuntu)",
    ),
    _Probe(
        "huge pages", _has_huge_pages, False,
        "times do not depend on how memory happens to be scattered",
        "",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
)  # fmt: skip
