"""What a process gains that has taken over its runner's part: it answers first and works later, or never."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from cupilot.device.base import Array, Died, Ran, Ring
from cupilot.device.worker import Silence, Worker
from cupilot.evaluate.clock import KernelSeat

# Reads commands and answers them at once; burns CPU time afterwards.
_LATE = """
import os, sys, time
burn_s = float(sys.argv[1])
while len(command := os.read(0, 32)) == 32:
    os.write(1, command[:8])
    until = time.process_time() + burn_s
    while time.process_time() < until: pass
"""


class _Held:
    """As much of a session as the clock needs, around any process that speaks the protocol."""

    def __init__(self, burn_s: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LATE, str(burn_s)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._worker = Worker(self._process.pid, self._process.stdin.fileno(), self._process.stdout.fileno())
        self.pid = self._process.pid

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        outcome = self._worker.ask(first, count, order_seed, limit_s)
        return Died(outcome.value) if isinstance(outcome, Silence) else outcome

    def write(self, slot: int, tensors: Mapping[str, Array]) -> None: ...

    def poison(self, slot: int) -> None: ...

    def cpu_time_ns(self) -> int:
        return self._worker.cpu_time_ns()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def one_core() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("one_core")
def test_late_work_is_charged_to_the_batch_it_belongs_to() -> None:
    burn_s = 0.02
    held = _Held(burn_s)
    try:
        seat = KernelSeat(held, Ring(3, 2))  # type: ignore[arg-type]
        for _ in range(3):
            assert seat.turn([{}], lambda: None) is None
        held.run(0, 1)  # comes back only when the late work of the last batch is done
        seat.settle()
    finally:
        held.close()
    assert seat.time_s() > 0.9 * burn_s


def test_the_answer_alone_shows_none_of_the_late_work() -> None:
    """Why the charge goes on until the next turn begins: what a kernel seems to take is what it says."""
    held = _Held(0.05)
    try:
        held.run(0, 1)
        ran = held.run(1, 1)
    finally:
        held.close()
    assert isinstance(ran, Ran)
    assert ran.cpu_end_ns - ran.cpu_start_ns < 0.2e9
    assert np.isfinite(ran.wall_ns)
