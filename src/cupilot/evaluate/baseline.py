"""What a kernel is compared with: the user's module under torch, in processes set up like a candidate's.

Same core, same page-aligned huge-page memory, same rings of inputs and outputs, same commands. `eager` is the
module as it is; `compile` goes through torch.compile; `library` uses the best library route known for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from cupilot.device import native
from cupilot.device.base import Array, Died, Ran, Ring
from cupilot.device.layout import Layout, lay_out
from cupilot.device.worker import Slots, Worker
from cupilot.errors import ProblemError
from cupilot.kernel.plan import Plan
from cupilot.problem.problem import Problem
from cupilot.types import Signature

_PROGRAM = "cupilot.evaluate.baseline_worker"
_START_LIMIT_S = 60.0
_COMPILE_LIMIT_S = 180.0


class BaselineKind(StrEnum):
    EAGER = "eager"
    COMPILE = "compile"
    LIBRARY = "library"


@dataclass(frozen=True)
class Unavailable:
    """There is no such baseline for this problem, and why."""

    reason: str


@dataclass
class BaselineSession:
    """One forked process with the module and its rings; driven like a candidate's session."""

    worker: Worker
    _inputs: Slots

    @property
    def pid(self) -> int:
        return self.worker.pid

    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        self._inputs.write(slot, tensors)

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        outcome = self.worker.ask(first, count, order_seed, limit_s)
        return outcome if isinstance(outcome, Ran) else Died(outcome.value)

    def cpu_time_ns(self) -> int:
        return self.worker.cpu_time_ns()

    def pin(self, core: int) -> None:
        self.worker.pin(core)

    def close(self) -> None:
        for end in (self.worker.commands, self.worker.answers):
            with contextlib.suppress(OSError):
                os.close(end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BaselineHost:
    """A process with torch and one problem loaded, from which baselines are forked. A context manager."""

    def __init__(self, problem: Problem) -> None:
        if problem.path is None:
            raise ProblemError(
                f"{problem.name} has no file that a baseline process could load",
                hint="put the module into a problem file: Model, get_inputs, get_init_inputs",
            )
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_START_LIMIT_S)
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the host)
        self._process = subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(theirs.fileno()), str(problem.path), problem.size or ""],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        self._is_ready = False

    def fork(
        self, kind: BaselineKind, signature: Signature, ring: Ring, threads: int = 1
    ) -> BaselineSession | Unavailable:
        """A fresh process; `signature` is the problem's at the shapes to be timed."""
        self._wait_until_ready()
        layout = lay_out(signature, Plan((), ()), Ring(ring.inputs, 0))
        (their_commands, commands), (answers, their_answers) = os.pipe(), os.pipe()
        request = json.dumps(_request(kind, signature, ring, layout, threads)).encode()
        socket.send_fds(self._control, [request], [their_commands, their_answers])
        os.close(their_commands)
        os.close(their_answers)
        (pid,) = struct.unpack("<Q", self._control.recv(8))
        worker = Worker(pid, commands, answers)
        session = BaselineSession(worker, Slots(pid, 0, (), ()))
        limit_s = _COMPILE_LIMIT_S if kind is BaselineKind.COMPILE else _START_LIMIT_S
        said = worker.introduction(limit_s)
        if said is None or said[0] != 0:
            session.close()
            return Unavailable(said[2].strip().splitlines()[-1] if said else "the baseline did not start")
        return BaselineSession(worker, Slots(pid, said[1], signature.tensors, layout.inputs))

    def _wait_until_ready(self) -> None:
        if self._is_ready:
            return
        if self._control.recv(16) != b"ready":
            self._complaints.seek(0)
            words = self._complaints.read().decode(errors="replace").strip()
            raise ProblemError(f"the baseline process cannot load the problem:\n{words[-2000:]}")
        self._is_ready = True

    def close(self) -> None:
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._complaints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _request(
    kind: BaselineKind, signature: Signature, ring: Ring, layout: Layout, threads: int
) -> dict[str, object]:
    return {
        "kind": kind.value,
        "threads": threads,
        "inputs": ring.inputs,
        "outputs": ring.outputs,
        "bytes": layout.size,
        "stride": layout.inputs[0].stride if layout.inputs else 0,
        "tensors": [
            (spec.name, spec.dtype.value, spec.shape, place.offset)
            for spec, place in zip(signature.tensors, layout.inputs, strict=True)
        ],
    }


def _environment() -> dict[str, str]:
    """The user's, one thread to begin with, and memory from the arena, not the system, for every tensor."""
    arena = native.program("arena", "-ldl", shared=True)
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",  # where all threads are asked for: spinners would lose scheduler ticks
        "MKL_NUM_THREADS": "1",
        "LD_PRELOAD": str(arena),
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "20000000000",
        "TORCHINDUCTOR_CACHE_DIR": str(native.cache_dir() / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
