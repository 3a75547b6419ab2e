"""A process that runs batches of calls on command, seen from outside: asked, timed, pinned.

The same few bytes go to a runner with a candidate and to a baseline with torch: a command is a token, the
first call, the number of calls and the seed of their block order; the answer is the token.
"""

from __future__ import annotations

import os
import secrets
import select
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cupilot.device.base import NUMPY_TYPES, Array, Ran
from cupilot.device.layout import Place
from cupilot.device.memory import SessionOverError, Span, read_memory, span_of, write_memory
from cupilot.types import TensorSpec

_HEADER = struct.Struct("<QQQ")
_MOST_WORDS = 4096


class Silence(StrEnum):
    """Why a batch brought no answer, completing the sentence "the kernel ..."."""

    UNASKED = "spoke on the runner's pipe without being asked"
    LATE = "did not finish in time"
    OTHER_WORDS = "spoke on the runner's pipe"
    GONE = "ended its process"


@dataclass(frozen=True)
class Worker:
    """The process and the two ends of its pipes that are ours."""

    pid: int
    commands: int
    answers: int

    def ask(self, first: int, count: int, order_seed: int, limit_s: float) -> Ran | Silence:
        if self._has_answer(0.0):
            return Silence.UNASKED
        token = secrets.randbits(63)
        command = struct.pack("<QQQQ", token, first, count, order_seed)
        try:
            wall = time.perf_counter_ns()
            cpu = self.cpu_time_ns()
            os.write(self.commands, command)
            if not self._has_answer(limit_s):
                return Silence.LATE
            answer = os.read(self.answers, 8)
            cpu_end = self.cpu_time_ns()
            wall_end = time.perf_counter_ns()
        except (BrokenPipeError, OSError):
            return Silence.GONE
        if answer != token.to_bytes(8, "little"):
            return Silence.OTHER_WORDS if answer else Silence.GONE
        return Ran(cpu, cpu_end, wall_end - wall)

    def introduction(self, limit_s: float) -> tuple[int, int, str] | None:
        """What a process says once it is ready: a status, an address, words. None: nothing, in time."""
        deadline_s = time.monotonic() + limit_s
        header = self._receive(_HEADER.size, deadline_s)
        if len(header) < _HEADER.size:
            return None
        status, base, size = _HEADER.unpack(header)
        words = self._receive(min(size, _MOST_WORDS), deadline_s).decode(errors="replace")
        return status, base, "".join(c if c.isprintable() or c == "\n" else "?" for c in words)

    def _receive(self, size: int, deadline_s: float) -> bytes:
        """So many bytes, or fewer if the process ends or is late."""
        answer = b""
        while len(answer) < size and self._has_answer(max(0.0, deadline_s - time.monotonic())):
            part = os.read(self.answers, size - len(answer))
            if not part:
                break
            answer += part
        return answer

    def cpu_time_ns(self) -> int:
        """CPU time of the process so far; exact while it is not running on another core."""
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def pin(self, core: int) -> None:
        """Keep all threads of the process on one core."""
        try:
            for task in os.listdir(f"/proc/{self.pid}/task"):
                os.sched_setaffinity(int(task), {core})
        except (FileNotFoundError, ProcessLookupError) as error:
            raise SessionOverError("the process is gone") from error

    def _has_answer(self, limit_s: float) -> bool:
        return bool(select.select([self.answers], [], [], limit_s)[0])


@dataclass(frozen=True)
class Slots:
    """A ring of tensors in a process's memory, written and read by us alone."""

    pid: int
    base: int
    specs: Sequence[TensorSpec]
    places: Sequence[Place]

    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        local, remote = [], []
        for spec, place in zip(self.specs, self.places, strict=True):
            array = tensors[spec.name]
            if array.dtype != NUMPY_TYPES[spec.dtype] or array.nbytes != spec.size_bytes:
                raise ValueError(f"{spec} cannot be filled from {array.dtype}{list(array.shape)}")
            local.append(span_of(array))
            remote.append(self.span(place, slot))
        write_memory(self.pid, local, remote)

    def read(self, slot: int) -> dict[str, Array]:
        arrays = {spec.name: np.empty(spec.shape, NUMPY_TYPES[spec.dtype]) for spec in self.specs}
        remote = [self.span(place, slot) for place in self.places]
        read_memory(self.pid, [span_of(array) for array in arrays.values()], remote)
        return arrays

    def span(self, place: Place, slot: int) -> Span:
        if not 0 <= slot < place.slots:
            raise ValueError(f"slot {slot} of {place.slots}")
        return self.base + place.offset + slot * place.stride, place.size
