"""Credit: what each tactic has been worth, learned from every measured child, accepted or not.

A child differs from its base by several tactics at once; a Bayesian ridge regression of the log speed
ratio on the changes (+1 added, -1 dropped) shares the gain out honestly and knows how sure it is. Nothing
is accumulated: credit is computed when it is read, per cell of (zone, operator family, device).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cupilot.roofline import Zone
from cupilot.strategy.algebra import diff
from cupilot.strategy.strategy import Strategy

PRIOR_SD = 0.35  # of a tactic's log gain before anything is measured: a factor of 1.4 either way
MODEL_SD = 0.05  # what additivity of log gains leaves unexplained


@dataclass(frozen=True)
class Cell:
    zone: Zone
    family: str
    device: str


@dataclass(frozen=True)
class Trial:
    """One child against its base. `log_ratio` is None where the child failed; `stage` then says where."""

    cell: Cell
    changes: Mapping[str, int]  # by tactic id or "tactic(parameter=value)": +1 or -1
    log_ratio: float | None
    sd: float = 0.0
    stage: str = ""


def trial_to_json(trial: Trial) -> dict[str, Any]:
    return asdict(trial)


def trial_from_json(data: Mapping[str, Any]) -> Trial:
    cell = data["cell"]
    return Trial(
        Cell(Zone(cell["zone"]), cell["family"], cell["device"]),
        dict(data["changes"]),
        data["log_ratio"],
        data["sd"],
        data["stage"],
    )


@dataclass(frozen=True)
class Credit:
    log_gain: float
    sd: float
    trials: int  # measured children in which the tactic changed
    failures: int  # children that failed when it was added

    def __str__(self) -> str:
        gain, spread = math.expm1(self.log_gain) * 100, math.exp(self.log_gain) * self.sd * 100
        return f"{gain:+.0f} % ± {spread:.0f} (n = {self.trials})"


def changes(base: Strategy, child: Strategy) -> dict[str, int]:
    """The regression's features: tactics added and dropped, and parameters changed."""
    change = diff(base, child)
    features = {use.tactic: 1 for use in change.added} | {use.tactic: -1 for use in change.dropped}
    for old, new in change.changed:
        for name, value in new.parameters:
            before = old.get(name, value)
            if before != value:
                features[f"{new.tactic}({name}={value})"] = 1
                features[f"{new.tactic}({name}={before})"] = -1
    return features


def credit(trials: Iterable[Trial], cell: Cell) -> dict[str, Credit]:
    """The posterior of every tactic that was ever changed in this cell."""
    inside = [trial for trial in trials if trial.cell == cell and trial.changes]
    names = sorted({name for trial in inside for name in trial.changes})
    measured = [trial for trial in inside if trial.log_ratio is not None]
    mean, sd = _posterior(measured, names)
    return {
        name: Credit(
            log_gain=float(mean[i]),
            sd=float(sd[i]),
            trials=sum(name in trial.changes for trial in measured),
            failures=sum(t.log_ratio is None and t.changes.get(name) == 1 for t in inside),
        )
        for i, name in enumerate(names)
    }


def _posterior(trials: Sequence[Trial], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    x = np.array([[trial.changes.get(name, 0) for name in names] for trial in trials], float)
    x = x.reshape(len(trials), len(names))
    y = np.array([trial.log_ratio for trial in trials], float)
    weight = np.array([1 / (trial.sd**2 + MODEL_SD**2) for trial in trials], float)
    precision = np.eye(len(names)) / PRIOR_SD**2 + (x.T * weight) @ x
    covariance = np.linalg.inv(precision)
    return covariance @ (x.T * weight) @ y, np.sqrt(np.diag(covariance))
