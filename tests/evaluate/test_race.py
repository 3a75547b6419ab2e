from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from scripted import MS, SIGNATURE, ScriptedFresh, ScriptedSentinel, baseline, double, kernel, some_core

from cupilot.device.base import Ring
from cupilot.evaluate import race as race_module
from cupilot.evaluate.baseline import BaselineKind
from cupilot.evaluate.built import VERIFY_RING
from cupilot.evaluate.quiet import STRICT
from cupilot.evaluate.race import RaceResult, Settings, race
from cupilot.types import Failed, Stage, Undecided

SETTINGS = Settings(groups=4, rounds=4, batch_s=0.004, retries=2)


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "one_core", some_core)
    monkeypatch.setattr(race_module, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(race_module, "_PAUSE_S", 0.0)
    monkeypatch.setattr(race_module.Pressure, "share", lambda _: 0.0)


def run(
    *contestants: Any,
    sentinel: ScriptedSentinel | None = None,
    look: Callable[..., str | None] = lambda *_: None,
    settings: Settings = SETTINGS,
) -> RaceResult | Failed | Undecided:
    fresh, watched = ScriptedFresh(), sentinel or ScriptedSentinel()
    return race(contestants, SIGNATURE, fresh, look, watched, settings)  # type: ignore[arg-type]


def in_turn(*times_ns: float) -> Callable[[], float]:
    """A process's speed after the other's; the first is the one that only finds the size of the ring."""
    speeds: Iterator[float] = cycle(times_ns)
    return lambda: next(speeds)


# ---- figures ----
def test_a_kernel_against_eager_and_more() -> None:
    found = run(
        kernel(lambda: 1 * MS),
        baseline(lambda: 3 * MS),
        baseline(lambda: 2 * MS, name="compile", kind=BaselineKind.COMPILE),
        baseline(name="library", kind=BaselineKind.LIBRARY, missing="no better route"),
    )
    assert isinstance(found, RaceResult)
    assert {name: round(each.ratio, 3) for name, each in found.ratios.items()} == {"eager": 3, "compile": 2}
    assert found.times_s["kernel"] == pytest.approx(1e-3)
    assert found.unavailable == {"library": "no better route"}
    assert found.null is None
    assert found.checked > 0


def test_processes_that_differ_make_the_interval_wide() -> None:
    alike = run(kernel(), baseline())
    differing = run(kernel(), baseline(in_turn(1.8 * MS, 2.2 * MS)))
    assert isinstance(alike, RaceResult) and isinstance(differing, RaceResult)
    narrow, wide = alike.ratios["eager"], differing.ratios["eager"]
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)
    assert wide.low < 2 < wide.high


def test_two_kernels_are_raced_directly() -> None:
    found = run(kernel(lambda: 1 * MS, name="challenger"), kernel(lambda: 1.05 * MS, name="champion"))
    assert isinstance(found, RaceResult)
    assert found.ratios["champion"].low > 1


def test_late_work_is_paid_for() -> None:
    found = run(kernel(lambda: 0.25 * MS, late_ns=12 * MS), baseline(lambda: 1 * MS))
    assert isinstance(found, RaceResult)
    assert found.ratios["eager"].high < 1.2, "it would be 4 if the 12 ms after every batch were free"


def test_both_orders_of_starting_count_alike() -> None:
    order: list[str] = []

    def starts(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or 1 * MS  # type: ignore[func-returns-value]

    run(kernel(starts("kernel")), baseline(starts("eager")), settings=Settings(groups=2, rounds=3))
    assert [name for name in order if name == "eager"] == ["eager"] * 2
    assert order[1:3] == ["kernel", "eager"], "after the process that finds the size of the ring"
    assert order.index("eager", 3) < order.index("kernel", 4)


# ---- a machine that is not quiet ----
def test_slow_memory_from_the_start_is_undecided_and_nobody_is_timed() -> None:
    sentinel = ScriptedSentinel(glances=(1.7,))
    found = run(kernel(), baseline(), sentinel=sentinel)
    assert isinstance(found, Undecided)
    assert "memory is 70% slower" in found.reason and "try again" in found.reason
    assert sentinel.turns == 0


def test_a_group_waits_for_a_quiet_moment() -> None:
    assert isinstance(run(kernel(), baseline(), sentinel=ScriptedSentinel((1.7, 1.6, 1.0))), RaceResult)


def test_a_disturbed_group_is_repeated() -> None:
    sentinel = ScriptedSentinel(groups=(1.0, 1.4, 1.0))
    found = run(kernel(), baseline(in_turn(2 * MS, 4 * MS, 2 * MS, 2 * MS, 2 * MS)), sentinel=sentinel)
    assert isinstance(found, RaceResult)
    assert found.ratios["eager"].ratio == pytest.approx(2), "what was timed in the disturbed group is dropped"
    assert sentinel.asked == SETTINGS.groups + 1


def test_after_too_many_disturbed_groups_it_is_undecided() -> None:
    sentinel = ScriptedSentinel(groups=(1.4,))
    found = run(kernel(), baseline(), sentinel=sentinel)
    assert isinstance(found, Undecided)
    assert sentinel.asked == SETTINGS.retries + 1


def test_a_shared_core_is_undecided() -> None:
    found = run(kernel(stall=1.3), baseline())
    assert isinstance(found, Undecided)
    assert "shared" in found.reason


def test_pressure_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module.Pressure, "share", lambda _: STRICT.pressure + 0.1)
    found = run(kernel(), baseline())
    assert isinstance(found, Undecided)
    assert "waited for a CPU" in found.reason


@pytest.mark.parametrize(("twin", "decided"), [(2.01, True), (2.07, False), (1.93, False)])
def test_a_baseline_must_equal_itself(twin: float, decided: bool) -> None:
    found = run(kernel(), baseline(), baseline(lambda: twin * MS, name="eager again"))
    assert isinstance(found, RaceResult if decided else Undecided)
    if isinstance(found, RaceResult):
        assert found.null is not None and found.null.ratio == pytest.approx(2 / twin)
        assert set(found.ratios) == {"eager"}, "the twin is no opponent"


def test_too_little_memory_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "memory_available_bytes", lambda: 64)
    found = run(kernel(), baseline())
    assert isinstance(found, Undecided)
    assert "memory" in found.reason


def test_a_baseline_that_dies_is_not_the_kernels_fault() -> None:
    found = run(kernel(), baseline(dies="ended its process"))
    assert found == Undecided("the baseline eager ended its process")


# ---- a kernel that misbehaves while it is timed ----
def timed_only(what: Callable[..., Any]) -> Callable[[Ring], Callable[..., Any]]:
    return lambda ring: double if ring == VERIFY_RING else what


def wrong(x: np.ndarray, out: np.ndarray) -> None:
    out[...] = 0


def test_another_result_than_in_verification_is_a_failure() -> None:
    found = run(kernel(computes=timed_only(wrong)), baseline())
    assert isinstance(found, Failed) and found.stage is Stage.TIME
    assert "while it was timed" in found.reason and "another `out`" in found.reason


def test_a_result_that_the_look_finds_wrong_is_a_failure() -> None:
    looked: list[bool] = []

    def look(inputs: Any, outputs: Any, first: bool) -> str | None:
        looked.append(first)
        return None if np.array_equal(outputs["out"], 2 * inputs["x"]) else "out[0] is 0"

    found = run(kernel(computes=lambda _: wrong), baseline(), look=look)
    assert isinstance(found, Failed) and "out[0] is 0" in found.reason
    assert looked == [True]
    assert isinstance(run(kernel(), baseline(), look=look), RaceResult)
    assert looked.count(True) == 2, "one of every race is looked at closely"


def test_a_kernel_that_dies_while_timed_is_a_failure() -> None:
    def dies(x: np.ndarray, out: np.ndarray) -> str:
        return "touched memory outside its buffers"

    found = run(kernel(computes=timed_only(dies)), baseline())
    assert isinstance(found, Failed) and "touched memory" in found.reason


def test_a_kernel_that_changes_its_input_while_timed_is_a_failure() -> None:
    def spoils(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = 2 * x
        x[0] = -1

    found = run(kernel(computes=timed_only(spoils)), baseline())
    assert isinstance(found, Failed) and "changes its input `x`" in found.reason
