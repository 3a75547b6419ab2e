from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from scripted import CASE, MS, SIGNATURE, Clock, ScriptedFresh, ScriptedKernel, baseline

from cupilot.device.base import Died, Ran, Ring
from cupilot.evaluate import scaling
from cupilot.evaluate.baseline import Unavailable
from cupilot.evaluate.scaling import AllThreads, on_all_threads
from cupilot.types import Failed, Stage


class Threaded(ScriptedKernel):
    """A process whose batches take wall time only."""

    def __init__(self, call_ns: float, ring: Ring, dies: bool) -> None:
        super().__init__(Clock(call_ns), ring)
        self._dies = dies

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        return Died("touched memory") if self._dies else super().run(first, count)


@dataclass
class Built:
    """By threads: nanoseconds of a call."""

    call_ns: dict[int, float]
    dies: bool = False
    opened: list[int] = field(default_factory=list)

    def open(self, signature: object, ring: Ring, threads: int = 1) -> Threaded | Failed:
        self.opened.append(threads)
        if threads not in self.call_ns:
            return Failed(Stage.LOAD, "does not load")
        return Threaded(self.call_ns[threads], ring, self.dies)


@pytest.fixture(autouse=True)
def four_quiet_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(scaling.Watch, "contention", lambda *_: "")


def found(built: Built, **eager: str) -> AllThreads | Unavailable:
    assert SIGNATURE is CASE.signature
    return on_all_threads(built, CASE, ScriptedFresh(), baseline(lambda: 5 * MS, **eager))  # type: ignore[arg-type]


def why_not(built: Built, **eager: str) -> str:
    outcome = found(built, **eager)
    assert isinstance(outcome, Unavailable)
    return outcome.reason


def test_all_threads_against_one_and_against_eager() -> None:
    built = Built({1: 6 * MS, 4: 2 * MS})
    assert found(built) == AllThreads(4, pytest.approx(3), pytest.approx(2.5))  # type: ignore[arg-type]
    assert built.opened == [1, 4]


def test_a_disturbed_reading_says_what_disturbed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling.Watch, "contention", lambda *_: "other processes kept 1.0 CPUs busy")
    assert why_not(Built({1: 6 * MS, 4: 2 * MS})) == "other processes kept 1.0 CPUs busy"


def test_a_kernel_that_does_not_run_on_more_threads_is_not_confirmed() -> None:
    assert why_not(Built({1: 6 * MS})) == "does not load"
    assert why_not(Built({1: 6 * MS, 4: 2 * MS}, dies=True)) == "touched memory"


def test_without_eager_there_is_nothing_to_confirm() -> None:
    assert why_not(Built({1: 6 * MS, 4: 2 * MS}), missing="it does not start") == "it does not start"


def test_one_thread_has_nothing_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling.os, "sched_getaffinity", lambda _: {0})
    built = Built({1: 6 * MS})
    assert "one CPU" in why_not(built) and not built.opened


def test_too_much_memory_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "memory_available_bytes", lambda: 64)
    assert "memory" in why_not(Built({1: 6 * MS, 4: 2 * MS}))
