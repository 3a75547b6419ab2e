"""The emulator's process: programs and launches go in by a pipe; buffers are written and read directly.

The process may only read, write, allocate and exit (native/emulator.cpp); it dies with the thread that
started it.
"""

from __future__ import annotations

import json
import os
import selectors
import struct
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cupilot.device.base import Array
from cupilot.device.cuda_emulated.build import Vectors, emulator
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.memory import read_memory, span_of, write_memory
from cupilot.errors import CupilotError

_PROGRAM, _BUFFER, _LAUNCH, _COUNTERS, _LIST = range(1, 6)
_ADDRESS_BYTES = 24 << 30
_CPU_LIMIT_S = 3600
_START_LIMIT_S = 30.0


class EmulatorDiedError(CupilotError):
    """The emulator's process ended or did not answer in time; says nothing about the kernel."""


@dataclass(frozen=True)
class LaunchRequest:
    program: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    cooperative: bool
    parameters: bytes
    buffers: tuple[int, ...]  # those the launch was given: their race shadows are cleared
    seed: int  # of what the approximate functions leave open
    order_seed: int = 1  # of the order of blocks and warps; 0: natural
    checks: bool = True
    budget: int = 1 << 40  # warp instructions of each block at work


@dataclass(frozen=True)
class Outcome:
    executed: int  # warp instructions
    fault: Mapping[str, Any] | None
    printed: str
    races_followed: bool


class EmulatorProcess:
    """A context manager. One launch at a time."""

    def __init__(self, vectors: Vectors = Vectors.NATIVE) -> None:
        command = [str(emulator(vectors)), str(os.getpid()), str(_ADDRESS_BYTES), str(_CPU_LIMIT_S)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, cwd="/", start_new_session=True
        )
        self._buffers: list[tuple[int, int]] = []  # host address and size

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def buffer_count(self) -> int:
        return len(self._buffers)

    def operations(self) -> frozenset[str]:
        return frozenset(self._ask(_LIST, b"").decode().split())

    def load(self, program: Program) -> tuple[str, ...]:
        """The operations the emulator lacks; when there are none, the program has the next number."""
        return tuple(self._ask(_PROGRAM, program.pack()).decode().split("\n")[:-1])

    def add_buffer(self, size_bytes: int, *, writable: bool, races: bool) -> int:
        """Its number."""
        answer = self._ask(_BUFFER, struct.pack("<QII", size_bytes, writable, races))
        address = int.from_bytes(answer, "little")
        if address == 0:
            raise EmulatorDiedError(
                f"the emulator has no memory for {size_bytes} bytes", hint="use smaller shapes"
            )
        self._buffers.append((address, size_bytes))
        return len(self._buffers) - 1

    def write(self, buffer: int, data: Array) -> None:
        if data.nbytes != self._buffers[buffer][1]:
            raise ValueError(f"buffer {buffer} has {self._buffers[buffer][1]} bytes, not {data.nbytes}")
        if data.nbytes:
            write_memory(self.pid, [span_of(data)], [(self._buffers[buffer][0], data.nbytes)])

    def zero(self, buffer: int) -> None:
        self.write(buffer, np.zeros(self._buffers[buffer][1], np.uint8))

    def read(self, buffer: int, into: Array) -> None:
        if into.nbytes:
            read_memory(self.pid, [span_of(into)], [(self._buffers[buffer][0], into.nbytes)])

    def launch(self, request: LaunchRequest, limit_s: float = 600.0) -> Outcome:
        head = struct.pack("<4I", request.program, len(request.parameters), len(request.buffers), 0)
        shape = struct.pack(
            "<8IQQIIQ", *request.grid, *request.block, request.dynamic_shared, request.cooperative,
            request.seed, request.budget, request.checks, 0, request.order_seed,
        )  # fmt: skip
        used = np.array(request.buffers, "<u4").tobytes()
        answer = json.loads(self._ask(_LAUNCH, head + shape + request.parameters + used, limit_s))
        return Outcome(answer["executed"], answer["fault"], answer["printed"], answer["races_followed"])

    def counters(self, program: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """As native/emulator.cpp lays them out; counters.py reads them."""
        return np.frombuffer(self._ask(_COUNTERS, struct.pack("<I", program)), np.uint64)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: int, payload: bytes, limit_s: float = _START_LIMIT_S) -> bytes:
        assert self._process.stdin is not None
        deadline = time.monotonic() + limit_s
        try:
            self._process.stdin.write(struct.pack("<QQ", command, len(payload)) + payload)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EmulatorDiedError(self._ending()) from None
        size = int.from_bytes(self._receive(8, deadline, limit_s), "little")
        return self._receive(size, deadline, limit_s)

    def _receive(self, size: int, deadline: float, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while size:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise EmulatorDiedError(f"the emulator did not answer within {limit_s:g} s")
                part = os.read(self._process.stdout.fileno(), min(size, 1 << 20))
                if not part:
                    raise EmulatorDiedError(self._ending())
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def _ending(self) -> str:
        status: int = self._process.wait()
        return f"the emulator's process ended (status {status})"
