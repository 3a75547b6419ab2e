"""The outcome of an evaluation as one value, and its JSON. What the pages and the store show is all here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from cupilot.types import ErrorFigure, Failed, Stage


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Kind(StrEnum):
    """Where a time comes from. Nothing is promoted on a prediction."""

    MEASURED = "measured"
    PREDICTED = "predicted"
    NONE = "none"


@dataclass(frozen=True)
class Interval:
    """A ratio with the interval that covers its long-run value."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class InputsUsed:
    live: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)  # distribution -> why it proves nothing here
    domains: Mapping[str, str] = field(default_factory=dict)  # tensor -> the values it may take


@dataclass(frozen=True)
class AtTarget:
    """What was measured at one target of a problem with several (`SHAPES`)."""

    tuned: Mapping[str, int]
    speedup: Mapping[str, Interval]
    time_s: float
    floor_s: float
    attainable_s: float


@dataclass(frozen=True)
class Evaluation:
    """One kernel on one problem on one device. Fields stay empty from the stage on that was not reached."""

    verdict: Verdict
    stage: Stage
    reason: str
    log: str = ""
    error: ErrorFigure | None = None
    inputs: InputsUsed = field(default_factory=InputsUsed)
    shapes: tuple[str, ...] = ()
    scaled: bool = False  # the target itself did not fit into memory
    notes: tuple[str, ...] = ()
    tuned: Mapping[str, int] = field(default_factory=dict)
    speedup: Mapping[str, Interval] = field(default_factory=dict)  # by baseline
    time_s: float | None = None
    floor_s: float | None = None  # no correct kernel is faster
    attainable_s: float | None = None  # what a very good kernel reaches
    zone: str | None = None
    advice: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, float | str] = field(default_factory=dict)  # what the compiled code looks like
    kind: Kind = Kind.NONE
    targets: Mapping[str, AtTarget] = field(default_factory=dict)  # where there are several: by name
    spent_s: Mapping[str, float] = field(default_factory=dict)  # where the evaluation's own time went

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASSED

    @property
    def headroom(self) -> float | None:
        """The share of the time that a very good kernel would not need."""
        if self.time_s is None or self.attainable_s is None:
            return None
        return max(0.0, 1 - self.attainable_s / self.time_s)

    def failed_at(self, failed: Failed) -> Evaluation:
        return replace(
            self,
            verdict=Verdict.FAILED,
            stage=failed.stage,
            reason=failed.reason,
            log=failed.log,
            error=failed.error or self.error,
        )


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Plain data, finite numbers only (JSON has no NaN: a null ratio means 'not a number')."""
    error = evaluation.error
    return {
        "verdict": evaluation.verdict.value,
        "stage": evaluation.stage.value,
        "reason": evaluation.reason,
        "log": evaluation.log,
        "error": None
        if error is None
        else {
            "ratio": _finite(error.ratio),
            "output": error.output,
            "index": list(error.index),
            "got": _finite(error.got),
            "expected": _finite(error.expected),
            "input": error.input,
            "shape": error.shape,
        },
        "inputs": {
            "live": list(evaluation.inputs.live),
            "dropped": dict(evaluation.inputs.dropped),
            "domains": dict(evaluation.inputs.domains),
        },
        "shapes": list(evaluation.shapes),
        "scaled": evaluation.scaled,
        "notes": list(evaluation.notes),
        "tuned": dict(evaluation.tuned) or None,
        "speedup": _intervals(evaluation.speedup) or None,
        "time_s": evaluation.time_s,
        "floor_s": evaluation.floor_s,
        "attainable_s": evaluation.attainable_s,
        "headroom": evaluation.headroom,
        "zone": evaluation.zone,
        "advice": [dict(a) for a in evaluation.advice] or None,
        "facts": dict(evaluation.facts),
        "kind": evaluation.kind.value,
        "targets": {
            name: {
                "tuned": dict(at.tuned),
                "speedup": _intervals(at.speedup),
                "time_s": at.time_s,
                "floor_s": at.floor_s,
                "attainable_s": at.attainable_s,
            }
            for name, at in evaluation.targets.items()
        }
        or None,
        "spent_s": {k: round(v, 4) for k, v in evaluation.spent_s.items()},
    }


def from_json(data: Mapping[str, Any]) -> Evaluation:
    """The inverse of `to_json`, for answers read back from a store."""
    error = data["error"]
    return Evaluation(
        verdict=Verdict(data["verdict"]),
        stage=Stage(data["stage"]),
        reason=data["reason"],
        log=data["log"],
        error=None
        if error is None
        else ErrorFigure(
            ratio=_number(error["ratio"]),
            output=error["output"],
            index=tuple(error["index"]),
            got=_number(error["got"]),
            expected=_number(error["expected"]),
            input=error["input"],
            shape=error["shape"],
        ),
        inputs=InputsUsed(
            tuple(data["inputs"]["live"]), data["inputs"]["dropped"], data["inputs"].get("domains", {})
        ),
        shapes=tuple(data["shapes"]),
        scaled=data["scaled"],
        notes=tuple(data["notes"]),
        tuned=data["tuned"] or {},
        speedup=_from_intervals(data["speedup"] or {}),
        time_s=data["time_s"],
        floor_s=data["floor_s"],
        attainable_s=data["attainable_s"],
        zone=data["zone"],
        advice=tuple(data["advice"] or ()),
        facts=data["facts"],
        kind=Kind(data["kind"]),
        targets={
            name: AtTarget(**{**at, "speedup": _from_intervals(at["speedup"])})
            for name, at in (data["targets"] or {}).items()
        },
        spent_s=data["spent_s"],
    )


def _intervals(speedup: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    return {name: {"ratio": s.ratio, "low": s.low, "high": s.high} for name, s in speedup.items()}


def _from_intervals(data: Mapping[str, Any]) -> dict[str, Interval]:
    return {name: Interval(**interval) for name, interval in data.items()}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _number(x: float | None) -> float:
    return math.nan if x is None else x
