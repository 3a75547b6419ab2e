"""Is the machine quiet enough to believe a time? One core of our own, the scheduler's pressure, a sentinel.

CPU time does not see a neighbour that uses up memory bandwidth, nor do the spread of the times and the
pressure. The sentinel does: a fixed copy through main memory, timed beside every race and compared with the
best it ever did on this machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cupilot.device import native
from cupilot.device.base import Ran, Ring, Session
from cupilot.device.cpu import Cpu
from cupilot.errors import DeviceUnavailable
from cupilot.evaluate.built import build
from cupilot.kernel.file import parse_kernel
from cupilot.types import DType, Failed, Role, Signature, TensorSpec

_PRESSURE = Path("/proc/pressure/cpu")
_LEARNING_RUNS = 12
_GLANCE_RUNS = 5
# One copy lasts long enough to be timed; four different ones walk through more than caches keep.
_COPIED_BYTES, _SLOTS = 32 << 20, 4
WASHED_BYTES = 2 * _COPIED_BYTES  # what a turn of the sentinel walks through
_KERNEL = """/* cupilot 1
Copies x in 64 pieces.
launch:
    copy[64](x, out, x.numel // 64)
*/
extern "C" void copy(long b, const float* x, float* out, long n) {
    for (long i = b * n; i < (b + 1) * n; ++i) out[i] = x[i];
}
"""


@dataclass(frozen=True)
class Gate:
    """How much disturbance a time may have met and still be believed."""

    slowdown: float = 1.15  # of the sentinel against its best: 1.04 to 1.12 is usual, 1.4 beside a hog
    pressure: float = 0.30  # of the wall time that some process waited for a CPU
    stall: float = 1.10  # wall over CPU time of a batch
    null: float = 0.02  # that a baseline may differ from itself

    def disturbance(self, slowdown: float, pressure: float, stall: float) -> str | None:
        """None, or what disturbed the measurement."""
        if slowdown > self.slowdown:
            return f"memory is {slowdown - 1:.0%} slower than this machine can: something else is using it"
        if pressure > self.pressure:
            return f"processes waited for a CPU {pressure:.0%} of the time"
        if stall > self.stall:
            return f"the timed core was shared: batches took {stall:.2f} times their CPU time"
        return None


STRICT = Gate()


class Sentinel:
    """A process that copies. Its turns also leave the caches without anything a contestant could find there.

    A context manager.
    """

    def __init__(self) -> None:
        values = _COPIED_BYTES // 4
        signature = Signature(
            (TensorSpec("x", (values,), DType.F32, Role.INPUT),),
            {},
            (TensorSpec("out", (values,), DType.F32, Role.OUTPUT),),
        )
        built = build(parse_kernel(_KERNEL), {}, signature, Cpu())
        session = built if isinstance(built, Failed) else built.open(signature, Ring(_SLOTS, _SLOTS))
        if isinstance(session, Failed):
            raise DeviceUnavailable(f"the sentinel does not run: {session.reason}", hint="run cupilot doctor")
        self._session: Session = session
        for slot in range(_SLOTS):
            session.write(slot, {"x": np.ones(values, np.float32)})
        self._turns = 0
        self._times_s: list[float] = []
        identity = f"{native.cpu_identity()}{os.cpu_count()}{_COPIED_BYTES}{_SLOTS}"
        name = hashlib.sha256(identity.encode()).hexdigest()[:16]
        self._record = native.cache_dir() / f"sentinel-{name}.json"

    def pin(self, core: int) -> None:
        self._session.pin(core)

    def turn(self) -> None:
        ran = self._session.run(self._turns, 1)
        self._turns += 1
        if isinstance(ran, Ran):
            self._times_s.append((ran.cpu_end_ns - ran.cpu_start_ns) / 1e9)

    def slowdown(self) -> float:
        """The median since the last question, over the best median there ever was on this machine."""
        best_s = self._best_s()
        now_s = statistics.median(self._times_s)
        self._times_s.clear()
        if now_s < best_s:
            self._record.write_text(json.dumps({"best_s": now_s}))
        return now_s / min(best_s, now_s)

    def glance(self) -> float:
        """The same for this moment, from a few turns of its own, which set no record."""
        kept, self._times_s = self._times_s, []
        for _ in range(_GLANCE_RUNS):
            self.turn()
        now_s, self._times_s = statistics.median(self._times_s), kept
        return now_s / self._best_s()

    def _best_s(self) -> float:
        try:
            return float(json.loads(self._record.read_text())["best_s"])
        except (OSError, ValueError, KeyError):
            before, self._times_s = self._times_s, []
            for _ in range(_LEARNING_RUNS):
                self.turn()
            best_s = statistics.median(sorted(self._times_s)[: _LEARNING_RUNS // 2])
            self._times_s = before
            self._record.write_text(json.dumps({"best_s": best_s}))
            return best_s

    def close(self) -> None:
        self._session.close()


@dataclass(frozen=True)
class Pressure:
    """How long processes waited for a CPU since this value was made."""

    waited_us: int = field(default_factory=lambda: _waited_us())
    began_s: float = field(default_factory=time.monotonic)

    def share(self) -> float:
        return (_waited_us() - self.waited_us) / 1e6 / max(time.monotonic() - self.began_s, 1e-6)


def _waited_us() -> int:
    """The total of the line "some"; 0 where Linux does not keep it."""
    try:
        return int(_PRESSURE.read_text().split("total=", 1)[1].split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def memory_available_bytes() -> int:
    """What processes can still claim without swapping."""
    text = Path("/proc/meminfo").read_text()
    return int(text.split("MemAvailable:", 1)[1].split()[0]) << 10


@contextlib.contextmanager
def one_core() -> Iterator[int]:
    """Keep this thread on a core that no other race of ours is using; waits while all are taken."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    folder = native.cache_dir() / "cores"
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as stack:
        core = _claim(allowed, folder, stack)
        os.sched_setaffinity(0, {core})
        try:
            yield core
        finally:
            os.sched_setaffinity(0, allowed)


def _claim(allowed: list[int], folder: Path, stack: contextlib.ExitStack) -> int:
    for core in allowed:
        lock = stack.enter_context((folder / str(core)).open("w"))
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return core
    lock = stack.enter_context((folder / str(allowed[0])).open("w"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    return allowed[0]
