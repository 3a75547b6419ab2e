"""Contestants whose clocks are scripted: racing them takes no time and ends the same on any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fake_session import FakeSession

from cupilot.device.base import Died, Ran, Ring
from cupilot.evaluate.baseline import BaselineKind, BaselineSession, Unavailable
from cupilot.evaluate.contestant import BaselineContestant, KernelContestant
from cupilot.problem.cases import ShapeCase
from cupilot.types import DType, Role, Signature, TensorSpec

MS = 1_000_000
SIGNATURE = Signature(
    (TensorSpec("x", (8,), DType.F32, Role.INPUT),), {}, (TensorSpec("out", (8,), DType.F32, Role.OUTPUT),)
)
CASE = ShapeCase("target", {"x": (8,)}, SIGNATURE)


def double(x: np.ndarray, out: np.ndarray) -> str | None:
    out[...] = 2 * x
    return None


@dataclass
class Clock:
    """What a process uses: `call_ns` a call, `late_ns` after each answer, `filled_ns` while inputs come."""

    call_ns: float = 1 * MS
    late_ns: float = 0
    filled_ns: float = 0
    opening_ns: float = 0  # more for a batch of a single call
    stall: float = 1.0  # wall over CPU time
    now_ns: float = 0
    batches: list[int] = field(default_factory=list)

    def ran(self, count: int) -> Ran:
        self.batches.append(count)
        start_ns = self.now_ns
        self.now_ns += self.call_ns * count + (self.opening_ns if count == 1 else 0)
        end_ns = self.now_ns
        self.now_ns += self.late_ns
        return Ran(int(start_ns), int(end_ns), int((end_ns - start_ns) * self.stall))


class ScriptedKernel(FakeSession):
    """A kernel's process."""

    def __init__(self, clock: Clock, ring: Ring, kernel: Callable[..., Any] = double) -> None:
        super().__init__(kernel, CASE, ring)
        self.clock = clock

    def write(self, slot: int, tensors: Mapping[str, np.ndarray]) -> None:
        self.clock.now_ns += self.clock.filled_ns
        super().write(slot, tensors)

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        outcome = super().run(first, count, order_seed, limit_s)
        return outcome if isinstance(outcome, Died) else self.clock.ran(count)

    def cpu_time_ns(self) -> int:
        return int(self.clock.now_ns)


class ScriptedBaseline(BaselineSession):
    """A baseline's process; it only passes time."""

    def __init__(self, clock: Clock, dies: str = "") -> None:
        self.clock, self._dies = clock, dies

    def write(self, slot: int, tensors: Mapping[str, np.ndarray]) -> None:
        self.clock.now_ns += self.clock.filled_ns

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        return Died(self._dies) if self._dies else self.clock.ran(count)

    def cpu_time_ns(self) -> int:
        return int(self.clock.now_ns)

    def pin(self, core: int) -> None: ...

    def close(self) -> None: ...


@dataclass
class _Built:
    start: Callable[[Ring], ScriptedKernel]

    def open(self, signature: Signature, ring: Ring, threads: int = 1) -> ScriptedKernel:
        return self.start(ring)


@dataclass
class _Host:
    start: Callable[[], ScriptedBaseline | Unavailable]

    def fork(
        self, kind: BaselineKind, signature: Signature, ring: Ring, threads: int = 1
    ) -> ScriptedBaseline | Unavailable:
        return self.start()


def kernel(
    speeds_ns: Callable[[], float] = lambda: 1 * MS,
    *,
    name: str = "kernel",
    computes: Callable[[Ring], Callable[..., Any]] = lambda _: double,
    **clock: float,
) -> KernelContestant:
    """`speeds_ns` is asked once for every process; `computes` says what one with this ring computes."""

    def start(ring: Ring) -> ScriptedKernel:
        return ScriptedKernel(Clock(call_ns=speeds_ns(), **clock), ring, computes(ring))

    return KernelContestant(name, _Built(start))  # type: ignore[arg-type]


def baseline(
    speeds_ns: Callable[[], float] = lambda: 2 * MS,
    *,
    name: str = "eager",
    kind: BaselineKind = BaselineKind.EAGER,
    missing: str = "",
    dies: str = "",
    **clock: float,
) -> BaselineContestant:
    def start() -> ScriptedBaseline | Unavailable:
        return (
            Unavailable(missing) if missing else ScriptedBaseline(Clock(call_ns=speeds_ns(), **clock), dies)
        )

    return BaselineContestant(name, kind, _Host(start))  # type: ignore[arg-type]


class ScriptedFresh:
    """Contents that count up."""

    def __init__(self) -> None:
        self._next = 0

    def blank(self) -> dict[str, np.ndarray]:
        return {"x": np.zeros(8, np.float32)}

    def refill(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._next += 1
        tensors["x"][...] = self._next + np.arange(8, dtype=np.float32)


class ScriptedSentinel:
    """How slow memory is at every glance and in every group, in turn; the last figure stays."""

    def __init__(self, glances: tuple[float, ...] = (1.0,), groups: tuple[float, ...] = (1.0,)) -> None:
        self._glances, self._groups = list(glances), list(groups)
        self.turns = self.asked = 0

    def pin(self, core: int) -> None: ...

    def turn(self) -> None:
        self.turns += 1

    def glance(self) -> float:
        return self._glances.pop(0) if len(self._glances) > 1 else self._glances[0]

    def slowdown(self) -> float:
        self.asked += 1
        return self._groups.pop(0) if len(self._groups) > 1 else self._groups[0]


@contextmanager
def some_core() -> Iterator[int]:
    """Claims and pins nothing."""
    yield 0
