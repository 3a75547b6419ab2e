import math
import random

import pytest

from cupilot.ledger import PRIOR_SD, Cell, Trial, changes, credit
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
