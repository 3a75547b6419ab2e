"""What happens to a time that the roofline does not allow."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from scripted import CASE

from cupilot.evaluate import timing
from cupilot.evaluate.effort import QUICK
from cupilot.evaluate.quiet import STRICT
from cupilot.evaluate.race import RaceResult
from cupilot.evaluate.result import Interval
from cupilot.evaluate.timing import Timed, time_at
from cupilot.roofline import Placement, Source, Zone
from cupilot.types import Failed, Stage, Undecided

FLOOR_S = 1e-3


def placed(byte_floor_s: float, operation_floor_s: float) -> Placement:
    floor_s = max(byte_floor_s, operation_floor_s)
    return Placement(
        Zone.MEMORY, "DRAM", Source.MEASURED, 1.0, 2.0, 2.0, 1e9, 1e9, 1e9,
        byte_floor_s, operation_floor_s, 1.1 * floor_s,
    )  # fmt: skip


class Desk:
    """A bench whose peaks are scripted: what they are at first, and after measuring again."""

    problem = device = host = sentinel = None
    gate = STRICT

    def __init__(self, first: Placement, again: Placement, contention: str = "") -> None:
        self._placements, self.remeasured = [first, again], 0
        self.peaks = SimpleNamespace(contention=contention)

    def fresh(self, case: object) -> None: ...

    def look(self, case: object, *, closely: bool) -> None: ...

    def measure_peaks_again(self) -> None:
        self.remeasured += 1

    def placement(self, case: object, footprint_bytes: float) -> Placement:
        return self._placements[min(self.remeasured, 1)]


BYTES, OPERATIONS = placed(FLOOR_S, 0.1e-3), placed(0.1e-3, FLOOR_S)


def timed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *times_s: float | Undecided
) -> tuple[Timed | Failed | Undecided, int]:
    """The verdict on races that give these times one after the other, and how many were run."""
    waiting = list(times_s)

    def race(*_: Any) -> RaceResult | Undecided:
        time_s = waiting.pop(0)
        if isinstance(time_s, Undecided):
            return time_s
        return RaceResult(
            {"kernel": time_s, "eager": 3 * time_s}, {"eager": Interval(3, 2.9, 3.1)}, None, {}, time_s, 0, 1
        )

    monkeypatch.setattr(timing, "race", race)
    found = time_at(desk, None, CASE, QUICK)  # type: ignore[arg-type]
    return found, len(times_s) - len(waiting)


@pytest.mark.parametrize("placement", [BYTES, OPERATIONS])
def test_a_slow_time_stands(placement: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(placement, placement)
    found, races = timed(desk, monkeypatch, 2 * FLOOR_S)
    assert isinstance(found, Timed)
    assert (races, desk.remeasured) == (1, 0)


def test_faster_than_memory_has_the_peaks_measured_again_and_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(BYTES, BYTES)
    found, _ = timed(desk, monkeypatch, 0.8 * FLOOR_S)
    assert isinstance(found, Failed) and found.stage is Stage.FLOOR
    assert desk.remeasured == 1


def test_higher_peaks_acquit(monkeypatch: pytest.MonkeyPatch) -> None:
    found, races = timed(Desk(BYTES, placed(0.6 * FLOOR_S, 0)), monkeypatch, 0.8 * FLOOR_S)
    assert isinstance(found, Timed)
    assert races == 1


@pytest.mark.parametrize("share", [0.97, 1.02])
def test_next_to_the_operation_floor_another_race_decides(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, races = timed(Desk(OPERATIONS, OPERATIONS), monkeypatch, share * FLOOR_S, 1.2 * FLOOR_S)
    assert isinstance(found, Timed)
    assert found.time_s == 1.2 * FLOOR_S, "the time of the second race"
    assert races == 2


def test_faster_than_arithmetic_twice_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(OPERATIONS, OPERATIONS)
    found, races = timed(desk, monkeypatch, 0.7 * FLOOR_S, 0.7 * FLOOR_S)
    assert isinstance(found, Failed) and "arithmetic" in found.reason
    assert (races, desk.remeasured) == (2, 1)


def test_doubtful_peaks_reject_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(BYTES, BYTES, contention="other processes kept 1.0 CPUs busy")
    found, _ = timed(desk, monkeypatch, 0.8 * FLOOR_S)
    assert isinstance(found, Undecided)
    assert "1.0 CPUs busy" in found.reason


def test_an_undecided_race_stays_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = Undecided("not quiet")
    assert timed(Desk(BYTES, BYTES), monkeypatch, noisy) == (noisy, 1)
    assert timed(Desk(OPERATIONS, OPERATIONS), monkeypatch, 0.97 * FLOOR_S, noisy) == (noisy, 2)


def notes(times_s: dict[str, float], unavailable: dict[str, str]) -> Sequence[str]:
    result = RaceResult(times_s, {}, None, unavailable, 1.0, 0, 1)
    return Timed(None, CASE, result, BYTES).notes  # type: ignore[arg-type]


def test_a_weak_baseline_and_a_missing_one_are_named() -> None:
    weak, missing = "eager is a weak baseline", "no compile baseline: no compiler"
    named = notes({"kernel": 1e-3, "eager": 2e-3, "library": 1e-3}, {"compile": "no compiler"})
    assert missing in named
    assert any(weak in note for note in named)
    assert not any(weak in note for note in notes({"kernel": 1e-3, "eager": 2e-3, "library": 2e-3}, {}))


def test_a_call_that_is_mostly_dispatch_is_named() -> None:
    assert any("overhead" in note for note in notes({"kernel": 20e-6, "eager": 90e-6}, {}))
