"""From the times of several groups of processes to ratios with intervals. Pure arithmetic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from cupilot.evaluate.result import Interval

# What is known before a measurement: fresh processes with the same code differ by about this much, and that
# knowledge is worth `_PRIOR_GROUPS` groups. A few groups that agree by luck do not make an interval narrow.
_PRIOR_SD, _PRIOR_GROUPS = 0.01, 4
# Two-sided 95 % of Student's distribution, by degrees of freedom from `_PRIOR_GROUPS` on.
_STUDENT = (2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def ratio(groups: Sequence[Mapping[str, float]], slower: str, faster: str) -> Interval:
    """How many times longer `slower` takes than `faster`; the interval is that of the mean over groups."""
    logs = [math.log(times_s[slower] / times_s[faster]) for times_s in groups]
    middle, more = statistics.fmean(logs), len(logs) - 1
    squares = sum((each - middle) ** 2 for each in logs) + _PRIOR_GROUPS * _PRIOR_SD**2
    student = _STUDENT[min(more, len(_STUDENT) - 1)]
    half = student * math.sqrt(squares / (_PRIOR_GROUPS + more) / len(logs))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def time_s(groups: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(times_s[name] for times_s in groups)
