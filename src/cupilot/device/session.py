"""One runner process with one candidate: starts it, moves data in and out, gives it work, sees how it ends.

The runner (native/runner.cpp) cannot open, map or start anything once the candidate is loaded. The parent
reads and writes its memory, reads its CPU clock, and kills it when it is late. The process also dies with the
thread that opened the session. Not covered: side channels through caches and the branch predictor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from cupilot.device import native
from cupilot.device.base import NUMPY_TYPES, Array, Compiled, Died, Ran, Ring
from cupilot.device.block import CPU_LIMIT_S, pack_block
from cupilot.device.layout import Layout, Place, lay_out
from cupilot.device.memory import Poison, SessionOverError, Span, read_memory, span_of, write_memory
from cupilot.errors import DeviceUnavailable
from cupilot.kernel.plan import Plan
from cupilot.types import Failed, Signature, Stage, TensorSpec

_START_LIMIT_S = 20.0
_MOST_WORDS = 4096
RUNNER_FLAGS = ("-Wl,--no-as-needed", "-lmvec", "-lm", "-pthread", "-ldl")

_DEATHS: Mapping[int, str] = {
    signal.SIGSYS: "made a system call, which no kernel may (SIGSYS)",
    signal.SIGSEGV: "touched memory outside its buffers, or used a forbidden instruction (SIGSEGV)",
    signal.SIGBUS: "touched memory that is not there (SIGBUS)",
    signal.SIGILL: "ran an instruction this CPU does not have, or ran past the end of a function (SIGILL)",
    signal.SIGFPE: "divided an integer by zero (SIGFPE)",
    signal.SIGTRAP: "ran into a trap (SIGTRAP)",
    signal.SIGABRT: "aborted (SIGABRT)",
    signal.SIGXCPU: f"used more than {CPU_LIMIT_S} s of CPU time (SIGXCPU)",
    signal.SIGKILL: "was killed by the system, most likely for lack of memory (SIGKILL)",
}


@dataclass
class CpuSession:
    """See `device.base.Session`. Made by `open_session`."""

    signature: Signature
    ring: Ring
    _process: subprocess.Popen[bytes]
    _layout: Layout
    _base: int
    _poison: Poison
    _guards: Array

    @property
    def pid(self) -> int:
        return self._process.pid

    # ---- memory ----
    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        local, remote = [], []
        for spec, place in zip(self.signature.tensors, self._layout.inputs, strict=True):
            array = tensors[spec.name]
            if array.dtype != NUMPY_TYPES[spec.dtype] or array.nbytes != spec.size_bytes:
                raise ValueError(f"{spec} cannot be filled from {array.dtype}{list(array.shape)}")
            local.append(span_of(array))
            remote.append(self._span(place, slot))
        write_memory(self.pid, local, remote)

    def poison(self, slot: int) -> None:
        for place in self._layout.outputs:
            write_memory(self.pid, self._poison.spans(place.size), [self._span(place, slot)])

    def read(self, slot: int) -> dict[str, Array]:
        return self._read(self.signature.outputs, self._layout.outputs, slot)

    def read_inputs(self, slot: int) -> dict[str, Array]:
        return self._read(self.signature.tensors, self._layout.inputs, slot)

    def check_guards(self) -> str | None:
        found = np.empty_like(self._guards)
        read_memory(self.pid, [span_of(found)], self._guard_spans())
        if np.array_equal(found, self._guards):
            return None
        where = int(np.argmax(found != self._guards))
        for guard in self._layout.guards:
            if where < guard.size:
                break
            where -= guard.size
        if guard.after is not None and (guard.before is None or where < guard.size - where):
            return f"wrote outside `{guard.after}`: byte {where} past its end"
        return f"wrote outside `{guard.before}`: byte {guard.size - where} before its start"

    def _read(self, specs: Sequence[TensorSpec], places: Sequence[Place], slot: int) -> dict[str, Array]:
        arrays = {spec.name: np.empty(spec.shape, NUMPY_TYPES[spec.dtype]) for spec in specs}
        remote = [self._span(place, slot) for place in places]
        read_memory(self.pid, [span_of(array) for array in arrays.values()], remote)
        return arrays

    def _span(self, place: Place, slot: int) -> Span:
        if not 0 <= slot < place.slots:
            raise ValueError(f"slot {slot} of {place.slots}")
        return self._base + place.offset + slot * place.stride, place.size

    def _guard_spans(self) -> list[Span]:
        return [(self._base + guard.offset, guard.size) for guard in self._layout.guards]

    def _prepare(self) -> None:
        """Guards, outputs and scratch get their patterns; that also claims their pages before any timing."""
        write_memory(self.pid, [span_of(self._guards)], self._guard_spans())
        for slot in range(self.ring.outputs):
            self.poison(slot)
        self._scramble()

    def _scramble(self) -> None:
        for place in self._layout.scratch:
            write_memory(self.pid, self._poison.spans(place.size), [self._span(place, 0)])

    # ---- work ----
    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        if self._process.poll() is not None or self._answers(0.0):
            return self._died("answered without being asked")
        self._scramble()
        token = secrets.randbits(63)
        command = struct.pack("<QQQQ", token, first, count, order_seed)
        wall = time.perf_counter_ns()
        try:
            cpu = self.cpu_time_ns()
            os.write(self._fd_in, command)
        except (BrokenPipeError, ProcessLookupError):
            return self._died("ended before it was asked to run")
        if not self._answers(limit_s):
            return self._died(f"did not finish within {limit_s:g} s")
        answer = os.read(self._fd_out, 8)
        if len(answer) != 8 or int.from_bytes(answer, "little") != token:
            return self._died("spoke on the runner's pipe" if answer else "ended its process")
        try:
            cpu_end = self.cpu_time_ns()
        except ProcessLookupError:
            return self._died("ended its process")
        return Ran(cpu, cpu_end, time.perf_counter_ns() - wall)

    def cpu_time_ns(self) -> int:
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def pin(self, core: int) -> None:
        try:
            for task in os.listdir(f"/proc/{self.pid}/task"):
                os.sched_setaffinity(int(task), {core})
        except (FileNotFoundError, ProcessLookupError) as error:
            raise SessionOverError("the runner's process is gone") from error

    def _answers(self, limit_s: float) -> bool:
        return bool(select.select([self._fd_out], [], [], limit_s)[0])

    def _died(self, otherwise: str) -> Died:
        """The signal that ended the process, or `otherwise` where it ended by itself or has to be stopped."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if "finish" in otherwise else 0.2)
        status = self._process.poll()
        self.close()
        if status is not None and status < 0:
            return Died(_DEATHS.get(-status, f"was ended by signal {-status}"))
        return Died(otherwise)

    @property
    def _fd_in(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _fd_out(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def close(self) -> None:
        end_process(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and whatever is in its group, and collect it. Safe to repeat."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            pipe.close()


def open_session(
    compiled: Compiled, plan: Plan, signature: Signature, ring: Ring, threads: int
) -> CpuSession | Failed:
    """Start a runner, let it load the library, lay out its buffers. The plan must fit the parameters."""
    layout = lay_out(signature, plan, ring)
    block = pack_block(compiled, plan, layout, ring, threads)
    process = subprocess.Popen(
        [str(native.program("runner", *RUNNER_FLAGS))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        outcome = _introduce(process, block)
        if isinstance(outcome, Failed):
            end_process(process)
            return outcome
        poison = Poison()
        guards = poison.take(sum(guard.size for guard in layout.guards))
        session = CpuSession(signature, ring, process, layout, outcome, poison, guards)
        session._prepare()
    except BaseException:
        end_process(process)
        raise
    return session


def _read_rest(fd: int) -> bytes:
    """What the runner still has to say before it ends."""
    said = b""
    while select.select([fd], [], [], 1.0)[0] and (part := os.read(fd, 4096)) and len(said) < _MOST_WORDS:
        said += part
    return said


def _introduce(process: subprocess.Popen[bytes], block: bytes) -> int | Failed:
    """Hand over the parameters; the answer is where the arena begins."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(block)
    fd = process.stdout.fileno()
    answer = b""
    while len(answer) < 24 and select.select([fd], [], [], _START_LIMIT_S)[0]:
        part = os.read(fd, 24 - len(answer))
        if not part:
            break
        answer += part
    if len(answer) == 24:
        status, base, _ = struct.unpack("<QQQ", answer)
        if status == 0:
            return int(base)
        words = _read_rest(fd).decode(errors="replace")
        if words.startswith(("cannot load", "the kernel")):
            return Failed(Stage.LOAD, words)
        raise DeviceUnavailable(f"the runner cannot start: {words}", hint="run cupilot doctor")
    if not answer:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    status = process.poll()
    if status is None:
        return Failed(Stage.LOAD, f"the kernel did not load within {_START_LIMIT_S:g} s")
    death = _DEATHS.get(-status, f"ended with status {status}")
    return Failed(Stage.LOAD, f"the kernel, while it was loaded, {death}")
