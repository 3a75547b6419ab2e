"""Builds the emulator's program from `native/`, once per compiler and machine, two files at a time."""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path

from cupilot.device import native
from cupilot.errors import DeviceUnavailable

_SOURCES = Path(__file__).parent / "native"
_SHARED = native.SOURCES / "sandbox.h"
_FLAGS = (
    "-std=c++20", "-O2", "-ftree-vectorize", "-fvect-cost-model=unlimited", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
)  # fmt: skip


class Vectors(StrEnum):
    """Which vector instructions the emulator is built with: the machine's own, or a named set."""

    NATIVE = "native"
    AVX2 = "avx2"
    PORTABLE = "portable"


_TARGETS = {
    Vectors.NATIVE: ("-march=native", "-mprefer-vector-width=512"),
    Vectors.AVX2: ("-march=x86-64-v3",),
    Vectors.PORTABLE: ("-march=x86-64-v2",),
}


def emulator(vectors: Vectors = Vectors.NATIVE) -> Path:
    """The built program."""
    return _build(vectors, native.compiler(), native.cache_dir())


@functools.cache
def _build(vectors: Vectors, cxx: native.Compiler, cache: Path) -> Path:
    flags = (*_FLAGS, *_TARGETS[vectors], f"-I{_SHARED.parent}")
    texts = [path.read_text() for path in (*sorted(_SOURCES.iterdir()), _SHARED)]
    key = hashlib.sha256("\0".join([cxx.identity, *flags, *texts]).encode()).hexdigest()
    target = cache / "programs" / f"emulator-{key[:24]}"
    if target.exists():
        return target
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        objects = [Path(work) / f"{path.stem}.o" for path in sorted(_SOURCES.glob("*.cpp"))]
        commands = [
            [str(cxx.path), *flags, "-c", str(_SOURCES / f"{out.stem}.cpp"), "-o", str(out)]
            for out in objects
        ]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_run, commands))
        built = Path(work) / "emulator"
        _run([str(cxx.path), *map(str, objects), "-o", str(built)])
        built.replace(target)
    return target


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise DeviceUnavailable(
            f"the CUDA emulator does not compile here:\n{answer.stderr.strip()[-2000:]}",
            hint="cuPilot needs g++ 11 or newer (apt-get install g++)",
        )
