import numpy as np
import pytest
from fake_session import FakeSession
from scripted import CASE, MS, Clock, ScriptedBaseline, ScriptedFresh, ScriptedKernel, double

from cupilot.device.base import Ring
from cupilot.evaluate.clock import BaselineSeat, Fault, KernelSeat, bits_of, repeat

RING = Ring(8, 7)
SETS = [{"x": np.full(8, k, np.float32)} for k in range(8)]


def no_wash() -> None: ...


def kernel_seat(clock: Clock, calls: int = 4) -> KernelSeat:
    seat = KernelSeat(ScriptedKernel(clock, RING), RING)  # type: ignore[arg-type]
    seat.calls = calls
    return seat


def baseline_seat(clock: Clock, calls: int = 4) -> BaselineSeat:
    seat = BaselineSeat(ScriptedBaseline(clock), RING)
    seat.calls = calls
    return seat


def times(seat: KernelSeat | BaselineSeat, turns: int) -> float:
    for _ in range(turns):
        assert seat.turn(SETS[: seat.calls], no_wash) is None
    seat.settle()
    return seat.time_s()


@pytest.mark.parametrize("seat", [kernel_seat, baseline_seat])
def test_a_call_costs_what_its_batch_used(seat: type[KernelSeat]) -> None:
    assert times(seat(Clock(call_ns=2 * MS)), 5) == pytest.approx(2e-3)  # type: ignore[arg-type]


def test_work_left_for_after_the_answer_is_charged() -> None:
    honest, late = Clock(call_ns=2 * MS), Clock(call_ns=0.5 * MS, late_ns=6 * MS)
    assert times(kernel_seat(late), 5) == pytest.approx(times(kernel_seat(honest), 5)), "4 * 0.5 + 6 = 4 * 2"


def test_the_last_batch_pays_for_late_work_too() -> None:
    clock = Clock(call_ns=1 * MS, late_ns=4 * MS)
    assert times(kernel_seat(clock), 1) == pytest.approx(2e-3)


def test_a_kernel_pays_for_what_it_does_while_the_contents_come() -> None:
    """Between the untimed call and the batch nothing is free, so nothing can be prepared there."""
    assert times(kernel_seat(Clock(call_ns=1 * MS, filled_ns=3 * MS)), 4) == pytest.approx(4e-3)


def test_a_baseline_gets_its_contents_before_the_untimed_call() -> None:
    assert times(baseline_seat(Clock(call_ns=1 * MS, filled_ns=3 * MS)), 4) == pytest.approx(1e-3)


@pytest.mark.parametrize("seat", [kernel_seat, baseline_seat])
def test_the_first_call_of_a_turn_is_not_timed(seat: type[KernelSeat]) -> None:
    clock = Clock(call_ns=1 * MS, opening_ns=50 * MS)
    assert times(seat(clock), 3) == pytest.approx(1e-3)  # type: ignore[arg-type]
    assert clock.batches == [1, 4] * 3


def test_one_slow_batch_does_not_move_the_median() -> None:
    clock = Clock(call_ns=1 * MS)
    seat = kernel_seat(clock)
    for turn in range(5):
        clock.call_ns = 30 * MS if turn == 2 else 1 * MS
        seat.turn(SETS[:4], no_wash)
    seat.settle()
    assert seat.time_s() == seat.fastest_s() == pytest.approx(1e-3)


def test_a_shared_core_shows_as_stall() -> None:
    seat = kernel_seat(Clock(stall=1.4))
    times(seat, 3)
    assert seat.stall() == pytest.approx(1.4)


@pytest.mark.parametrize(("call_ns", "calls"), [(10 * MS, 1), (0.75 * MS, 5), (0.001 * MS, RING.outputs)])
def test_a_batch_lasts_as_long_as_asked_and_never_meets_an_output_twice(call_ns: float, calls: int) -> None:
    clock = Clock(call_ns=call_ns)
    seat = kernel_seat(clock, calls=1)
    assert seat.warm_up(SETS[0], batch_s=0.003) is None
    assert seat.calls == calls
    assert clock.batches[0] == RING.outputs, "the whole ring is touched, by count"


def test_a_baseline_has_touched_its_ring_before_it_is_ready() -> None:
    clock = Clock(call_ns=10 * MS)
    assert baseline_seat(clock, calls=1).warm_up(SETS[0], batch_s=0.003) is None
    assert clock.batches == [1, 1]


def test_every_turn_begins_somewhere_else_in_the_rings() -> None:
    firsts = []

    class Watched(ScriptedKernel):
        def run(self, first: int, *arguments: object, **more: object):  # type: ignore[no-untyped-def]
            firsts.append(first % RING.inputs)
            return super().run(first, *arguments, **more)  # type: ignore[arg-type]

    seat = KernelSeat(Watched(Clock(), RING), RING)  # type: ignore[arg-type]
    times(seat, 40)
    assert len(set(firsts)) == RING.inputs


def test_a_timed_call_is_checked_on_what_it_was_given() -> None:
    fresh = ScriptedFresh()
    seat = kernel_seat(Clock())
    sets = [fresh.blank() for _ in range(4)]
    for each in sets:
        fresh.refill(each)
    seat.turn(sets, no_wash)
    kept = seat.sample(sets, 2)
    assert not isinstance(kept, Fault)
    for call in kept:
        assert np.array_equal(call.outputs["out"], 2 * call.inputs["x"])
        assert any(np.array_equal(call.inputs["x"], each["x"]) for each in sets)


def test_a_kernel_that_changes_its_inputs_is_found_out() -> None:
    def spoils(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = 2 * x
        x[3] += 1

    seat = KernelSeat(ScriptedKernel(Clock(), RING, spoils), RING)  # type: ignore[arg-type]
    seat.turn(SETS[:1], no_wash)
    assert seat.sample(SETS[:1], 1) == Fault("changes its input `x`")


def test_a_repeated_call_must_give_the_same_bits() -> None:
    seat = kernel_seat(Clock())
    seat.turn(SETS[:4], no_wash)
    kept = seat.sample(SETS[:4], 4)
    assert not isinstance(kept, Fault)

    def another(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = np.nextafter(2 * x, np.float32(9))

    def session(kernel):  # type: ignore[no-untyped-def]
        return FakeSession(kernel, CASE, RING)

    assert not isinstance(repeat(session(double), RING, kept), Fault)
    found = repeat(session(another), RING, kept)
    assert isinstance(found, Fault) and "another `out`" in found.what


@pytest.mark.parametrize("size", [0, 1, 7, 8, 24])
def test_bits_tell_nan_and_signed_zero_apart(size: int) -> None:
    nan = np.full(size, np.nan, np.float32)
    assert np.array_equal(bits_of(nan), bits_of(nan.copy()))
    zero = np.zeros(size, np.float32)
    assert np.array_equal(bits_of(zero), bits_of(-zero)) == (size == 0)
