import math
import random

import numpy as np
import pytest

from cupilot.ledger import PRIOR_SD, Cell, Trial, changes, credit, taught
from cupilot.roofline import Zone
from cupilot.strategy.strategy import Strategy, TacticUse

CELL = Cell(Zone.MEMORY, "softmax", "cpu")
GAINS = {"vectorize": 0.8, "unroll": 0.1, "stream": -0.2, "fuse": 0.4}


def _trials(count: int, noise: float) -> list[Trial]:
    rng = random.Random(1)
    trials = []
    for _ in range(count):
        change = {name: rng.choice((-1, 1)) for name in rng.sample(sorted(GAINS), 2)}
        ratio = sum(sign * GAINS[name] for name, sign in change.items()) + rng.gauss(0, noise)
        trials.append(Trial(CELL, change, ratio, sd=noise))
    return trials


def test_gains_of_several_changes_at_once_are_shared_out() -> None:
    found = credit(_trials(40, 0.03), CELL)
    for name, gain in GAINS.items():
        assert found[name].log_gain == pytest.approx(gain, abs=4 * found[name].sd)
        assert found[name].sd < 0.05


def test_uncertainty_shrinks_with_trials_and_never_exceeds_the_prior() -> None:
    few, many = credit(_trials(4, 0.1), CELL), credit(_trials(80, 0.1), CELL)
    assert all(c.sd <= PRIOR_SD for c in few.values())
    assert many["vectorize"].sd < few["vectorize"].sd


def test_two_tactics_always_changed_together_stay_uncertain() -> None:
    together = [Trial(CELL, {"a": 1, "b": 1}, 1.0) for _ in range(50)]
    found = credit(together, CELL)
    assert found["a"].log_gain == pytest.approx(0.5, abs=0.05)
    assert found["a"].sd > 0.2


def test_failures_count_but_carry_no_gain() -> None:
    found = credit([Trial(CELL, {"a": 1}, None, stage="verify"), Trial(CELL, {"b": 1}, 0.3)], CELL)
    assert (found["a"].failures, found["a"].trials) == (1, 0)
    assert found["a"].log_gain == 0


def test_cells_do_not_mix() -> None:
    other = Cell(Zone.COMPUTE, "softmax", "cpu")
    assert credit([Trial(other, {"a": 1}, 1.0)], CELL) == {}


def test_changes_name_tactics_and_parameters() -> None:
    base = Strategy((TacticUse.of("tile", size=4), TacticUse.of("unroll")))
    child = Strategy((TacticUse.of("tile", size=8), TacticUse.of("fuse")))
    assert changes(base, child) == {"fuse": 1, "unroll": -1, "tile(size=8)": 1, "tile(size=4)": -1}


def test_credit_reads_like_a_sentence() -> None:
    text = str(credit([Trial(CELL, {"a": 1}, math.log(1.18), sd=0.01)] * 12, CELL)["a"])
    assert text.endswith("(n = 12)") and text.startswith("+18 %")


def _alike(likeness: float) -> np.ndarray:
    return np.array([[1, likeness], [likeness, 1]])


def test_what_the_same_problem_taught_is_as_good_as_what_was_measured_here() -> None:
    trials = _trials(30, 0.05)
    here = credit(trials, CELL)
    there = credit([], CELL, taught([trials], _alike(1.0)))
    halves = credit(trials[:15], CELL, taught([trials[15:]], _alike(1.0)))
    for name, found in here.items():
        for other in (there[name], halves[name]):
            assert (other.log_gain, other.sd) == pytest.approx((found.log_gain, found.sd))


def test_the_less_alike_the_less_is_learned() -> None:
    near, far, stranger = (credit([], CELL, taught([_trials(30, 0.05)], _alike(k))) for k in (0.9, 0.5, 0.0))
    assert near["vectorize"].log_gain > far["vectorize"].log_gain > stranger["vectorize"].log_gain == 0
    assert near["vectorize"].sd < far["vectorize"].sd < stranger["vectorize"].sd == pytest.approx(PRIOR_SD)


def test_many_trials_of_one_relative_do_not_pass_for_trials_here() -> None:
    few, many = (credit([], CELL, taught([_trials(n, 0.05)], _alike(0.6))) for n in (40, 400))
    assert many["vectorize"].sd == pytest.approx(few["vectorize"].sd, rel=0.02)
    assert many["vectorize"].sd > 0.7 * PRIOR_SD


def test_what_is_measured_here_overrules_the_relatives() -> None:
    prior = taught([[Trial(CELL, {"a": 1}, 1.0, sd=0.01)] * 20], _alike(0.6))
    found = credit([Trial(CELL, {"a": 1}, -0.3, sd=0.01)] * 20, CELL, prior)["a"]
    assert found.log_gain == pytest.approx(-0.3, abs=0.05)
    assert (found.trials, found.elsewhere) == (20, 20) and "20 on similar problems" in str(found)


def test_failures_of_relatives_count() -> None:
    prior = taught([[Trial(CELL, {"a": 1}, None, stage="verify")]], _alike(0.6))
    assert credit([], CELL, prior)["a"].failures == 1
