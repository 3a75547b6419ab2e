"""Judges a time against the roofline: a kernel that is faster than the machine allows did not do the work.

The figures come from `cupilot.roofline`. Judges times only; not whether the result was right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cupilot.roofline import Placement, Source

SUSPICIOUS_SHARE = 0.95  # of a peak


class FloorVerdict(StrEnum):
    OK = "ok"
    REMEASURE = "remeasure"  # the peaks first, with force, then judge again
    QUARANTINED = "quarantined"  # run again from scratch, in fresh processes, then judge that time
    REJECTED = "rejected"


@dataclass(frozen=True)
class FloorCheck:
    verdict: FloorVerdict
    reason: str = ""


def check_floor(
    time_s: float, placement: Placement, *, remeasured: bool = False, rerun: bool = False
) -> FloorCheck:
    """`time_s` is the upper end of the time's interval: a kernel is not accused over noise.

    `remeasured` and `rerun` say what has been done since the first suspicion; each is asked for once.
    """
    can_remeasure = placement.source is Source.MEASURED and not remeasured
    if time_s < placement.byte_floor_s:
        return FloorCheck(
            FloorVerdict.REMEASURE if can_remeasure else FloorVerdict.REJECTED, _bytes(time_s, placement)
        )
    if time_s < placement.operation_floor_s:
        reason = _operations(time_s, placement)
        if not rerun:
            return FloorCheck(FloorVerdict.QUARANTINED, reason)
        return FloorCheck(FloorVerdict.REMEASURE if can_remeasure else FloorVerdict.REJECTED, reason)
    if time_s * SUSPICIOUS_SHARE < placement.floor_s and not rerun:
        share = placement.floor_s / time_s
        return FloorCheck(FloorVerdict.QUARANTINED, f"reaches {share:.0%} of a peak, which is rarely honest")
    return FloorCheck(FloorVerdict.OK)


def _bytes(time_s: float, placement: Placement) -> str:
    return (
        f"faster than the memory allows: {time_s * 1e6:.4g} us, but moving the bytes that matter through "
        f"{placement.level} takes at least {placement.byte_floor_s * 1e6:.4g} us; "
        "some of the data is not used"
    )


def _operations(time_s: float, placement: Placement) -> str:
    return (
        f"faster than the arithmetic allows: {time_s * 1e6:.4g} us, but the operations the result needs take "
        f"{placement.operation_floor_s * 1e6:.4g} us at least; some are skipped, or done in a lower precision"
    )
