"""Runs a compiler or disassembler on untrusted text: jailed, with limits, and with its words capped."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cupilot.device import native

LOG_LIMIT_BYTES = 1 << 20
_ADDRESS_BYTES = 6 << 30
_FILE_BYTES = 64 << 20
_SYSTEM = (
    "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include", "/usr/bin", "/usr/local/include",
    "/usr/local/lib", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives",
)  # fmt: skip


@dataclass(frozen=True)
class Jailed:
    """What came of it. `ended` is None, or why the program was stopped."""

    status: int
    output: str
    ended: str | None


def run_jailed(
    command: Sequence[str],
    work: Path,
    *,
    read: Sequence[Path] = (),
    limit_s: float = 30.0,
    most_bytes: int = LOG_LIMIT_BYTES,
) -> Jailed:
    """Run `command` in `work`, which it may write; it can read what a compiler needs, and `read`."""
    readable = [*_SYSTEM, *_toolchain(), *map(str, read)]
    limits = [str(os.getpid()), str(int(limit_s) + 1), str(_ADDRESS_BYTES), str(_FILE_BYTES)]
    process = subprocess.Popen(
        [str(native.program("jail")), *limits, str(work), *readable, "--", *command],
        cwd=work,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, ended = _listen(process, limit_s, most_bytes)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return Jailed(status, output.decode(errors="replace"), ended)


def _listen(process: subprocess.Popen[bytes], limit_s: float, most_bytes: int) -> tuple[bytes, str | None]:
    """Collect output until the program closes it; then the program's own end, all before the deadline."""
    assert process.stdout is not None
    deadline = time.monotonic() + limit_s
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            # Twice: who was stopped and goes on finds the deadline past, and the answer there.
            if not (selector.select(max(0.0, deadline - time.monotonic())) or selector.select(0.0)):
                return b"".join(parts), f"took longer than {limit_s:g} s"
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > most_bytes:
                return b"".join(parts), f"printed more than {most_bytes >> 20} MB"
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return b"".join(parts), f"took longer than {limit_s:g} s"
    return b"".join(parts), None


def _toolchain() -> list[str]:
    """The folders of a compiler that does not live under /usr."""
    prefix = native.compiler().path.resolve().parent.parent
    if str(prefix) in ("/", "/usr"):
        return []
    return [str(prefix / name) for name in ("bin", "lib", "lib64", "libexec", "include")]
