"""Guidance favours what moves the resource that binds, and what has paid; nothing is ever ruled out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from cupilot.roofline import Placement, Source, Zone
from cupilot.strategy.guidance import relevance, relieved, weights
from cupilot.strategy.tactics import Cookbook, Resource, Tactic

PLACED = Placement(Zone.MEMORY, "DRAM", next(iter(Source)), 0.5, 10, 10, 4e10, 2e11, 2e11, 1e-3, 1e-4, 1e-3)


@dataclass(frozen=True)
class Earned:
    log_gain: float
    sd: float = 0.05
    failures: int = 0


def tactic(name: str, moves: Resource, *zones: Zone) -> Tactic:
    return Tactic(name, name, name, moves, frozenset(zones), frozenset(), frozenset(), (), {}, {}, "")


BYTES = tactic("bytes", Resource.BYTES, Zone.MEMORY)
OPERATIONS = tactic("operations", Resource.OPERATIONS, Zone.COMPUTE)
BOOK = Cookbook([BYTES, OPERATIONS])


def test_what_binds_decides_what_is_relevant() -> None:
    bound = replace(PLACED, zone=Zone.COMPUTE)
    assert relevance(BYTES, PLACED) > 1 > relevance(OPERATIONS, PLACED)
    assert relevance(OPERATIONS, bound) > 1 > relevance(BYTES, bound)


def test_on_one_thread_parallelism_relieves_nothing() -> None:
    sharing = tactic("sharing", Resource.PARALLELISM, Zone.LATENCY)
    assert relevance(sharing, PLACED) < 1
    assert relevance(replace(sharing, language="cu"), PLACED) == 1


@pytest.mark.parametrize("zone", Zone)
def test_every_zone_asks_for_something(zone: Zone) -> None:
    assert relieved(zone)


def test_without_a_roofline_all_start_alike() -> None:
    assert weights(BOOK, None, {}) == {"bytes": 1.0, "operations": 1.0}


def test_credit_outweighs_the_zone_in_time() -> None:
    found = weights(BOOK, PLACED, {"operations": Earned(1.0), "bytes": Earned(-0.5)})
    assert found["operations"] > found["bytes"]


def test_failures_and_losses_lower_but_never_exclude() -> None:
    once, often = (weights(BOOK, PLACED, {"bytes": Earned(-3.0, failures=n)}) for n in (0, 50))
    assert 0 < often["bytes"] <= once["bytes"] < weights(BOOK, PLACED, {})["bytes"]


def test_the_uncertain_is_favoured_over_the_known_of_the_same_worth() -> None:
    sure, unsure = (weights(BOOK, PLACED, {"bytes": Earned(0.1, sd)})["bytes"] for sd in (0.02, 0.3))
    assert unsure > sure
