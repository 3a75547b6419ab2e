"""Advice as a value: what costs time, and which tactics move it. Raw counters never leave the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Tactic(StrEnum):
    """The tactics that advice can name: ids of the cookbook, which says how each is done."""

    AVOID_DIVISION = "avoid-division"
    CACHE_BLOCK = "cache-block"
    COALESCED_ACCESS = "coalesced-access"
    CONTIGUOUS_ACCESS = "contiguous-access"
    EXPLOIT_STRUCTURE = "exploit-structure"
    FUSE_PASSES = "fuse-passes"
    INLINE_TRANSCENDENTALS = "inline-transcendentals"
    MATRIX_UNITS = "matrix-units"
    MULTIPLE_ACCUMULATORS = "multiple-accumulators"
    NON_TEMPORAL_STORES = "non-temporal-stores"
    OCCUPANCY = "occupancy"
    ONLINE_REDUCTION = "online-reduction"
    PARALLEL_GRID = "parallel-grid"
    REDUCE_LAUNCHES = "reduce-launches"
    REGISTER_BLOCK = "register-block"
    SHARED_PADDING = "shared-padding"
    SHARED_SWIZZLE = "shared-swizzle"
    SHARED_TILES = "shared-tiles"
    UNROLL = "unroll"
    VECTORIZE = "vectorize"
    WARP_SHUFFLE = "warp-shuffle"
    WIDE_LOADS = "wide-loads"


class Severity(StrEnum):
    HIGH = "high"  # at least half as fast again
    MEDIUM = "medium"
    LOW = "low"
    DONE = "done"  # nothing left to win


@dataclass(frozen=True)
class Action:
    """`expected_gain` is a ratio of times, an upper estimate: 2.0 means twice as fast."""

    tactic: Tactic
    why: str
    expected_gain: float


@dataclass(frozen=True)
class Advice:
    """One cause with what to do about it, the most promising action first."""

    cause: str
    actions: tuple[Action, ...] = ()

    @property
    def expected_gain(self) -> float:
        return max((action.expected_gain for action in self.actions), default=1.0)

    @property
    def severity(self) -> Severity:
        if not self.actions:
            return Severity.DONE
        if self.expected_gain >= 1.5:
            return Severity.HIGH
        return Severity.MEDIUM if self.expected_gain >= 1.1 else Severity.LOW


def to_json(advice: Advice) -> Mapping[str, Any]:
    return {
        "severity": advice.severity.value,
        "cause": advice.cause,
        "actions": [
            {"tactic": a.tactic.value, "why": a.why, "expected_gain": round(a.expected_gain, 2)}
            for a in advice.actions
        ],
    }
