"""One runner process with one candidate: starts it, moves data in and out, gives it work, sees how it ends.

The runner (native/runner.cpp) cannot open, map or start anything once the candidate is loaded. The parent
reads and writes its memory, reads its CPU clock, and kills it when it is late. The process also dies with the
thread that opened the session. Not covered: side channels through caches and the branch predictor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from cupilot.device import native
from cupilot.device.base import Array, Compiled, Died, Ran, Ring
from cupilot.device.block import CPU_LIMIT_S, pack_block
from cupilot.device.layout import Layout, lay_out
from cupilot.device.memory import Poison, SessionOverError, Span, read_memory, span_of, write_memory
from cupilot.device.worker import Silence, Slots, Worker
from cupilot.errors import DeviceUnavailable
from cupilot.kernel.plan import Plan
from cupilot.types import Failed, Signature, Stage

_START_LIMIT_S = 20.0
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
    worker: Worker
    _process: subprocess.Popen[bytes]
    _layout: Layout
    _inputs: Slots
    _outputs: Slots
    _scratch: Slots
    _poison: Poison
    _guards: Array

    @property
    def pid(self) -> int:
        return self._process.pid

    # ---- memory ----
    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        self._inputs.write(slot, tensors)

    def poison(self, slot: int) -> None:
        self._fill(self._outputs, slot)

    def read(self, slot: int) -> dict[str, Array]:
        return self._outputs.read(slot)

    def read_inputs(self, slot: int) -> dict[str, Array]:
        return self._inputs.read(slot)

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

    def _guard_spans(self) -> list[Span]:
        return [(self._inputs.base + guard.offset, guard.size) for guard in self._layout.guards]

    def _fill(self, slots: Slots, slot: int) -> None:
        for place in slots.places:
            write_memory(self.pid, self._poison.spans(place.size), [slots.span(place, slot)])

    def prepare(self) -> None:
        """Guards, outputs and scratch get their patterns; that also claims their pages before any timing."""
        write_memory(self.pid, [span_of(self._guards)], self._guard_spans())
        for slot in range(self.ring.outputs):
            self.poison(slot)
        self._fill(self._scratch, 0)

    # ---- work ----
    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        if self._process.poll() is not None:
            return self._died(Silence.GONE)
        try:
            self._fill(self._scratch, 0)
        except SessionOverError:
            return self._died(Silence.GONE)
        outcome = self.worker.ask(first, count, order_seed, limit_s)
        if outcome is Silence.LATE:
            self.close()
            return Died(f"did not finish within {limit_s:g} s")
        return outcome if isinstance(outcome, Ran) else self._died(outcome)

    def cpu_time_ns(self) -> int:
        return self.worker.cpu_time_ns()

    def pin(self, core: int) -> None:
        self.worker.pin(core)

    def _died(self, silence: Silence) -> Died:
        """The signal that ended the process, or its silence where it ended by itself or has to be stopped."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        status = self._process.poll()
        self.close()
        if status is not None and status < 0:
            return Died(_DEATHS.get(-status, f"was ended by signal {-status}"))
        return Died(silence.value)

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
        assert process.stdin is not None and process.stdout is not None
        worker = Worker(process.pid, process.stdin.fileno(), process.stdout.fileno())
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(block)
        base = _introduction(process, worker)
        if isinstance(base, Failed):
            end_process(process)
            return base
        inputs = Slots(process.pid, base, signature.tensors, layout.inputs)
        outputs = Slots(process.pid, base, signature.outputs, layout.outputs)
        scratch = Slots(process.pid, base, (), layout.scratch)
        poison = Poison()
        guards = poison.take(sum(guard.size for guard in layout.guards))
        session = CpuSession(
            signature, ring, worker, process, layout, inputs, outputs, scratch, poison, guards
        )
        session.prepare()
    except BaseException:
        end_process(process)
        raise
    return session


def _introduction(process: subprocess.Popen[bytes], worker: Worker) -> int | Failed:
    """Where the arena begins, once the library is loaded."""
    said = worker.introduction(_START_LIMIT_S)
    if said is not None:
        status, base, words = said
        if status == 0:
            return base
        if words.startswith(("cannot load", "the kernel")):
            return Failed(Stage.LOAD, words)
        raise DeviceUnavailable(f"the runner cannot start: {words}", hint="run cupilot doctor")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    ended = process.poll()
    if ended is None:
        return Failed(Stage.LOAD, f"the kernel did not load within {_START_LIMIT_S:g} s")
    death = _DEATHS.get(-ended, f"ended with status {ended}")
    return Failed(Stage.LOAD, f"the kernel, while it was loaded, {death}")
