"""Credit: what each tactic has been worth, learned from every measured child, accepted or not.

A child differs from its base by several tactics at once; a Bayesian ridge regression of the log speed
ratio on the changes (+1 added, -1 dropped) shares the gain out honestly and knows how sure it is. Nothing
is accumulated: credit is computed when it is read, per cell of (zone, operator family, device).

What earlier runs measured of other problems is the prior: a tactic's gains on two problems are believed to
correlate as much as the problems are alike. So a relative teaches much, and a stranger next to nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    elsewhere: int = 0  # measured children on other problems, of which the prior is made

    def __str__(self) -> str:
        gain, spread = math.expm1(self.log_gain) * 100, math.exp(self.log_gain) * self.sd * 100
        number = f"n = {self.trials}"
        if self.elsewhere:
            number += f" here, {self.elsewhere} on similar problems"
        return f"{gain:+.0f} % ± {spread:.0f} ({number})"


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed of tactics before anything is measured here; of those it does not name, nothing."""

    names: tuple[str, ...] = ()
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    trials: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)

    def over(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of these, which hold all that it names."""
        mean, covariance = np.zeros(len(names)), np.eye(len(names)) * PRIOR_SD**2
        places = [names.index(name) for name in self.names]
        mean[places] = self.mean
        covariance[np.ix_(places, places)] = self.covariance
        return mean, covariance


NOTHING = Prior()


def taught(lessons: Sequence[Sequence[Trial]], kinship: np.ndarray) -> Prior:
    """The prior made of the trials of other problems.

    `kinship` says how alike any two of the problems are, 0 to 1; its last row and column are for the problem
    at hand. It has to be a covariance (positive semidefinite).
    """
    measured = [(k, t) for k, trials in enumerate(lessons) for t in trials if t.log_ratio is not None]
    everything = [trial for trials in lessons for trial in trials]
    names = tuple(sorted({name for trial in everything for name in trial.changes}))
    x = _features([trial for _, trial in measured], names)
    where = [k for k, _ in measured]
    y = np.array([trial.log_ratio for _, trial in measured], float)
    noise = np.diag([trial.sd**2 + MODEL_SD**2 for _, trial in measured])
    covariance = PRIOR_SD**2 * kinship[np.ix_(where, where)] * (x @ x.T) + noise
    to_here = PRIOR_SD**2 * kinship[-1, where] * x.T
    pull = np.linalg.solve(covariance, to_here.T).T if measured else to_here
    return Prior(
        names,
        mean=pull @ y,
        covariance=np.eye(len(names)) * PRIOR_SD**2 - pull @ to_here.T,
        trials=Counter(name for _, trial in measured for name in trial.changes),
        failures=Counter(
            name for t in everything if t.log_ratio is None for name, n in t.changes.items() if n == 1
        ),
    )


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


def credit(trials: Iterable[Trial], cell: Cell, prior: Prior = NOTHING) -> dict[str, Credit]:
    """The posterior of every tactic that was ever changed in this cell, or of which the prior knows."""
    inside = [trial for trial in trials if trial.cell == cell and trial.changes]
    names = sorted({name for trial in inside for name in trial.changes} | set(prior.names))
    measured = [trial for trial in inside if trial.log_ratio is not None]
    mean, sd = _posterior(measured, names, prior)
    return {
        name: Credit(
            log_gain=float(mean[i]),
            sd=float(sd[i]),
            trials=sum(name in trial.changes for trial in measured),
            failures=sum(t.log_ratio is None and t.changes.get(name) == 1 for t in inside)
            + prior.failures.get(name, 0),
            elsewhere=prior.trials.get(name, 0),
        )
        for i, name in enumerate(names)
    }


def _posterior(trials: Sequence[Trial], names: Sequence[str], prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    x = _features(trials, names)
    y = np.array([trial.log_ratio for trial in trials], float)
    weight = np.array([1 / (trial.sd**2 + MODEL_SD**2) for trial in trials], float)
    believed, spread = prior.over(names)
    certainty = np.linalg.inv(spread)
    covariance = np.linalg.inv(certainty + (x.T * weight) @ x)
    return covariance @ (certainty @ believed + (x.T * weight) @ y), np.sqrt(np.diag(covariance))


def _features(trials: Sequence[Trial], names: Sequence[str]) -> np.ndarray:
    x = np.array([[trial.changes.get(name, 0) for name in names] for trial in trials], float)
    return x.reshape(len(trials), len(names))
