"""Advice as a value: what costs time, and which tactics move it. Raw counters never leave the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Tactic(StrEnum):
    """What advice can name: ids of the cookbook, which says how each is done, and the ideas in `IDEAS`."""

    AVOID_DIVISION = "avoid-division"
    CACHE_TILES = "cache-tiles"
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
    REGISTER_TILE = "register-tile"
    SHARED_PADDING = "shared-padding"
    SHARED_SWIZZLE = "shared-swizzle"
    SHARED_TILES = "shared-tiles"
    UNROLL = "unroll"
    VECTORIZE = "vectorize"
    WARP_SHUFFLE = "warp-shuffle"
    WHOLE_LINES = "whole-lines"
    WIDE_LOADS = "wide-loads"


# The cookbook has no tactic for these: what is to be done stands in the words of the action.
IDEAS = frozenset(
    {
        Tactic.CONTIGUOUS_ACCESS,
        Tactic.EXPLOIT_STRUCTURE,
        Tactic.MATRIX_UNITS,
        Tactic.PARALLEL_GRID,
        Tactic.WHOLE_LINES,
    }
)


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
    """The tactic of an action is null where the cookbook has none."""
    return {
        "severity": advice.severity.value,
        "cause": advice.cause,
        "actions": [
            {
                "tactic": None if a.tactic in IDEAS else a.tactic.value,
                "why": a.why,
                "expected_gain": round(a.expected_gain, 2),
            }
            for a in advice.actions
        ],
    }


def action_words(action: Mapping[str, Any]) -> str:
    """An action of `to_json` for people: its tactic where it has one, and what to do."""
    return f"{action['tactic']}: {action['why']}" if action["tactic"] else str(action["why"])
