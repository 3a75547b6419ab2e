"""Where the problem stands on the roofline, asked once for a run: peaks may be measured again later."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cupilot.device.peaks import cpu_peaks
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Source, Work, Zone, place
from cupilot.store import Store, UnansweredError

FOOTPRINT_BYTES = 512 << 20  # calls are timed on data that no cache still holds
_QUESTION: dict[str, Any] = {"what": "placement"}


def stand(store: Store, problem: Problem, device: str, *, offline: bool) -> Placement | None:
    """None where the device has no peaks."""
    row = store.get("place", _QUESTION)
    if row is None and offline:
        raise UnansweredError("place")
    found = store.ask("place", _QUESTION, lambda: _to_json(placed(problem, device)))
    if not found:
        return None
    return Placement(**{**found, "zone": Zone(found["zone"]), "source": Source(found["source"])})


def placed(problem: Problem, device: str) -> Placement | None:
    """By this machine's peaks, measured now or earlier; None where the device has none."""
    if device != "cpu":
        return None
    peaks = cpu_peaks().one_thread
    return place(Work.of(problem.counts), peaks, problem.precision.arithmetic, FOOTPRINT_BYTES)


def _to_json(placement: Placement | None) -> dict[str, Any]:
    return {} if placement is None else asdict(placement)
