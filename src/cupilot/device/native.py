"""Builds the C++ programs we ship (`native/`), once per compiler and machine, on first use.

Also answers which compiler that is. Nothing here ever compiles a candidate.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cupilot.errors import DeviceUnavailable

SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-O2", "-std=c++20", "-fno-exceptions", "-fno-rtti")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler and everything about it and this machine that decides what it produces."""

    path: Path
    identity: str


def cache_dir() -> Path:
    """Where built programs and compiled kernels are kept; `CUPILOT_CACHE` moves it."""
    chosen = os.environ.get("CUPILOT_CACHE")
    shared = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    base = Path(chosen) if chosen else shared / "cupilot"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceUnavailable(
            f"cannot create the cache folder {base}: {error.strerror}",
            hint="set CUPILOT_CACHE to a folder you can write to",
        ) from error
    return base.resolve()


def compiler() -> Compiler:
    """The C++ compiler: `CUPILOT_CXX`, or g++."""
    return _find_compiler(os.environ.get("CUPILOT_CXX", "g++"))


@functools.cache
def _find_compiler(name: str) -> Compiler:
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        raise DeviceUnavailable(
            f"the CPU device needs x86-64 Linux, this is {platform.machine()} {platform.system()}",
            hint="run cuPilot in a Linux virtual machine or on a Linux server",
        )
    found = shutil.which(name)
    if found is None:
        raise DeviceUnavailable(
            f"no C++ compiler: {name} was not found",
            hint="install one (apt-get install g++), or set CUPILOT_CXX to the path of yours",
        )
    answer = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        message = f"{found} does not run: {answer.stderr.strip()}"
        raise DeviceUnavailable(message, hint="set CUPILOT_CXX to g++")
    return Compiler(Path(found), f"{found}\n{answer.stdout}\n{cpu_identity()}")


@functools.cache
def cpu_identity() -> str:
    """Model and instruction sets: a library built with -march=native is good on exactly this."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return platform.processor()
    kept = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
    return "\n".join(line for line in lines if line.split("\t")[0].split(":")[0].strip() in kept)


def program(name: str, *flags: str, shared: bool = False) -> Path:
    """The built program (or shared library) of `native/<name>.cpp`."""
    return _build(name, flags, shared, compiler(), cache_dir())


@functools.cache
def _build(name: str, flags: tuple[str, ...], shared: bool, cxx: Compiler, cache: Path) -> Path:
    source = SOURCES / f"{name}.cpp"
    command = [str(cxx.path), *_FLAGS, *(("-shared", "-fPIC") if shared else ()), str(source)]
    texts = [source, *sorted(SOURCES.glob("*.h"))]
    parts = [cxx.identity, *command, *flags, *(text.read_text() for text in texts)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    target = cache / "programs" / f"{name}-{key}"
    if target.exists():
        return target
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        built = Path(work) / name
        answer = subprocess.run(
            [*command, "-o", str(built), *flags], capture_output=True, text=True, check=False, cwd=work
        )
        if answer.returncode != 0:
            raise DeviceUnavailable(
                f"cuPilot's own program {name} does not compile here:\n{answer.stderr.strip()[-2000:]}",
                hint="install g++ 11 or newer and the Linux headers (apt-get install g++ linux-libc-dev)",
            )
        built.replace(target)
    return target
