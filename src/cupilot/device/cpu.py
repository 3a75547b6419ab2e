"""The CPU device: kernel files in C++, compiled by g++ in a jail, run in a filtered process.

A compiled kernel is cached by everything that decides what it becomes; whatever comes out of the cache is
inspected like a fresh one. x86-64 Linux only.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cupilot.device import inspection, native
from cupilot.device.arguments import check_arguments
from cupilot.device.base import Compiled, Ring
from cupilot.device.elf import ElfError
from cupilot.device.jail import Jailed, run_jailed
from cupilot.device.session import CpuSession, open_session
from cupilot.device.source import check_source
from cupilot.errors import KernelSyntaxError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile
from cupilot.kernel.launch import run
from cupilot.kernel.nodes import Block, For, If, Start
from cupilot.kernel.plan import GridStyle, Plan
from cupilot.types import Failed, Signature, Stage

FLAGS = (
    "-std=c++20", "-O3", "-march=native", "-fPIC", "-shared", "-nostdlib", "-nostartfiles",
    "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fvisibility=hidden",
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd",
    "-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables",
    "-ftemplate-depth=200", "-fconstexpr-ops-limit=33554432", "-fmax-errors=5",
    "-fno-diagnostics-show-caret", "-fdiagnostics-color=never",
    "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,separate-code", "-Wl,-z,noexecstack", "-Wl,--as-needed",
)  # fmt: skip
_LIBRARIES = ("-lmvec", "-lm", "-lgcc")
COMPILE_LIMIT_S = 30.0
_LOG_CHARS = 6000
_FIRST_ERROR = re.compile(r"^kernel:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_ANY_ERROR = re.compile(r"^.*?(?:error|undefined reference|Error): ?(.*)$", re.MULTILINE)
_ABSENT = re.compile(r"^launch:.*?'(?:::)?(\w+)'.*? (?:was not|has not been) declared", re.MULTILINE)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_STOPPED = re.compile(r"(\w[\w ]*) signal terminated program \w+")


class Cpu:
    """See `device.base.Device`."""

    name = "cpu"
    language = "cpp"
    has_clock = True

    def compile(
        self, kernel: KernelFile, point: Mapping[str, int], signature: Signature
    ) -> Compiled | Failed:
        """Compile at one point of the tunables, inspect, and check the launches at `signature`."""
        try:
            plan = run(kernel.launch, bind(kernel, signature, point), grid_style=GridStyle.CPU)
        except KernelSyntaxError as error:
            return Failed(Stage.PARSE, f"line {error.line}: {error.message}", error.hint)
        refusal = check_source(kernel)
        if refusal is not None:
            return refusal
        names = launched(kernel.launch.statements)
        built = build(kernel, point, names)
        if isinstance(built, Failed):
            return built
        library, log = built
        compiled = _inspect(library, names, log)
        if isinstance(compiled, Failed):
            return compiled
        return check_arguments(compiled.kernels, plan, signature) or compiled

    def open(
        self, compiled: Compiled, plan: Plan, signature: Signature, ring: Ring, threads: int = 1
    ) -> CpuSession | Failed:
        refusal = check_arguments(compiled.kernels, plan, signature)
        return refusal or open_session(compiled, plan, signature, ring, threads)


def launched(block: Block) -> tuple[str, ...]:
    """The kernels a launch program names, in order of appearance, whether or not they run at some shape."""
    names: dict[str, None] = {}
    for statement in block:
        match statement:
            case Start(kernel=name):
                names[name] = None
            case If(branches=branches, otherwise=otherwise):
                for body in (*(body for _, body in branches), otherwise):
                    names |= dict.fromkeys(launched(body))
            case For(body=body):
                names |= dict.fromkeys(launched(body))
    return tuple(names)


def _translation_unit(kernel: KernelFile, point: Mapping[str, int], names: tuple[str, ...]) -> str:
    defines = "".join(f"#define {name} {value}\n" for name, value in sorted(point.items()))
    exports = "".join(f"CUPILOT_EXPORT({name})\n" for name in names)
    return f'{defines}#line {kernel.source_line} "kernel"\n{kernel.source}\n#line 1 "launch"\n{exports}'


def build(kernel: KernelFile, point: Mapping[str, int], names: tuple[str, ...]) -> tuple[Path, str] | Failed:
    """The library and the compiler's warnings."""
    cxx = native.compiler()
    text = _translation_unit(kernel, point, names)
    thunk = native.SOURCES / "thunk.h"
    parts = [cxx.identity, thunk.read_text(), text, *FLAGS, *_LIBRARIES]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    library = native.cache_dir() / "kernels" / f"{key}.so"
    log = library.with_suffix(".log")
    if library.exists() and log.exists():
        return library, log.read_text()
    library.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as work:
        source, built = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
        source.write_text(text)
        command = [str(cxx.path), *FLAGS, "-include", str(thunk), str(source), "-o", str(built), *_LIBRARIES]
        answer = run_jailed(command, Path(work), read=[thunk], limit_s=COMPILE_LIMIT_S)
        said = answer.output.replace(f"{work}/", "").replace(f"{native.SOURCES}/", "")
        said = _CONTROLS.sub("?", said)  # a terminal would act on them
        if answer.status != 0 or answer.ended or not built.is_file():
            return _compile_failure(answer, said)
        (Path(work) / "log").write_text(_trim(said))
        os.replace(Path(work) / "log", log)
        os.replace(built, library)
    return library, _trim(said)


def _compile_failure(answer: Jailed, said: str) -> Failed:
    log = _trim(said)
    if answer.ended:
        return Failed(Stage.COMPILE, f"compiling {answer.ended}", log)
    first = _FIRST_ERROR.search(said)
    if first is not None:
        return Failed(Stage.COMPILE, f"line {first[1]}: {first[2]}", log)
    absent = _ABSENT.search(said)
    if absent is not None:
        reason = f"the launch names `{absent[1]}`, but the code defines no such function"
        return Failed(Stage.COMPILE, reason, log)
    stopped = _STOPPED.search(said)
    if stopped is not None:
        return Failed(Stage.COMPILE, f"the compiler reached a limit ({stopped[1].lower()})", log)
    other = _ANY_ERROR.search(said)
    return Failed(Stage.COMPILE, other[1] if other else "the compiler stopped without a message", log)


def _trim(text: str) -> str:
    if len(text) <= _LOG_CHARS:
        return text
    left_out = f"... ({len(text) - _LOG_CHARS} characters left out) ..."
    return f"{text[: _LOG_CHARS - 1000]}\n{left_out}\n{text[-1000:]}"


def _inspect(library: Path, names: tuple[str, ...], log: str) -> Compiled | Failed:
    data = library.read_bytes()
    refusal = inspection.inspect_elf(data)
    if refusal is None:
        with tempfile.TemporaryDirectory(dir=library.parent) as work:
            refusal = inspection.inspect_instructions(library, Path(work))
    if refusal is not None:
        return Failed(Stage.INSPECT, f"the kernel {refusal}", log)
    try:
        kernels = {name: inspection.read_parameters(data, name) for name in names}
    except ElfError as error:
        return Failed(Stage.INSPECT, f"the library cannot be inspected: {error}", log)
    return Compiled(library, kernels, log)
