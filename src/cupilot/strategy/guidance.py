"""Roofline guidance: which tactics are worth asking for, given where the problem stands and what has paid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from cupilot.roofline import Placement, Zone
from cupilot.strategy.tactics import Cookbook, Resource, Tactic

_UNTRIED_SD = 0.35  # of a log gain: what the ledger assumes before any trial


class Earned(Protocol):
    """What a tactic has been worth so far (see `ledger.Credit`)."""

    @property
    def log_gain(self) -> float: ...

    @property
    def sd(self) -> float: ...

    @property
    def failures(self) -> int: ...


_RELIEVES = {
    Zone.MEMORY: {Resource.BYTES, Resource.PARALLELISM},
    Zone.MIDDLE: {Resource.BYTES, Resource.OPERATIONS, Resource.PARALLELISM},
    Zone.COMPUTE: {Resource.OPERATIONS, Resource.PARALLELISM, Resource.PRECISION},
    Zone.LATENCY: {Resource.LATENCY, Resource.LAUNCHES},
}


def relieved(zone: Zone) -> frozenset[Resource]:
    """What a change must relieve to pay in this zone."""
    return frozenset(_RELIEVES[zone])


def relevance(tactic: Tactic, placement: Placement) -> float:
    """3 where the tactic pays in this zone and moves what binds, 1 for one of the two, 1/3 for neither."""
    in_zone = placement.zone in tactic.zones
    moves = tactic.moves in _RELIEVES[placement.zone]
    if tactic.language == "cpp" and tactic.moves is Resource.PARALLELISM:
        moves = False  # CPU kernels are timed on one thread: there is nothing to share out
    return 3.0 if in_zone and moves else 1.0 if in_zone or moves else 1 / 3


def weights(
    cookbook: Cookbook, placement: Placement | None, credit: Mapping[str, Earned]
) -> dict[str, float]:
    """Per tactic, how much a change should favour adding it; 1 is neutral.

    Credit enters optimistically (mean plus one standard deviation), so what is untried stays attractive.
    """
    found = {}
    for tactic in cookbook:
        weight = relevance(tactic, placement) if placement is not None else 1.0
        earned = credit.get(tactic.id)
        if earned is not None:
            weight *= math.exp(2 * (earned.log_gain + earned.sd - _UNTRIED_SD)) * 0.7**earned.failures
        found[tactic.id] = max(weight, 0.02)
    return found
