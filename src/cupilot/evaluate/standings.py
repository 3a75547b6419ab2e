"""From the times of several groups of processes to ratios with intervals. Pure arithmetic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from cupilot.evaluate.result import Interval

# What two processes with the same code differ by on a quiet machine, at the least.
_FLOOR_HALF_WIDTH = 0.005
# Two-sided 95 % of Student's distribution, by the number of groups; further ones are close to the last.
_STUDENT = (math.inf, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def ratio(groups: Sequence[Mapping[str, float]], slower: str, faster: str) -> Interval:
    """How many times longer `slower` takes than `faster`; the interval is that of the mean over groups."""
    logs = [math.log(times_s[slower] / times_s[faster]) for times_s in groups]
    middle = statistics.fmean(logs)
    half = _FLOOR_HALF_WIDTH
    if len(logs) > 1:
        student = _STUDENT[min(len(logs), len(_STUDENT)) - 1]
        half = math.hypot(half, student * statistics.stdev(logs) / math.sqrt(len(logs)))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def time_s(groups: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(times_s[name] for times_s in groups)
