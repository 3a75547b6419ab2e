"""From the times of several groups of processes to ratios with intervals. Pure arithmetic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from cupilot.evaluate.result import Interval

# What is known before a measurement: fresh processes with the same code differ by about this much, and that
# knowledge is worth `_PRIOR_GROUPS` groups. A few groups that agree by luck do not make an interval narrow.
_PRIOR_SD, _PRIOR_GROUPS = 0.01, 4
# What the groups of one evaluation share, and their spread cannot show: repeated evaluations of streaming
# kernels differ by about this much more than their groups do (`benchmarks/noise.py`).
_SHARED_SD = 0.008
# Two groups say next to nothing about their own spread; from three on it counts in full.
_FEWEST_GROUPS = 3
# Two-sided 95 % of Student's distribution, by degrees of freedom from 2 on.
_STUDENT = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_NORMAL = 1.960  # the same of the normal distribution


def ratio(groups: Sequence[Mapping[str, float]], slower: str, faster: str) -> Interval:
    """How many times longer `slower` takes than `faster`; the interval is that of the mean over groups.

    It is never narrower than the groups say by themselves: what is known before can only make it wider, and
    so does what they have in common.
    """
    logs = [math.log(times_s[slower] / times_s[faster]) for times_s in groups]
    middle, more = statistics.fmean(logs), len(logs) - 1
    squares = sum((each - middle) ** 2 for each in logs)
    half = _half(squares + _PRIOR_GROUPS * _PRIOR_SD**2, more + _PRIOR_GROUPS, len(logs))
    if len(logs) >= _FEWEST_GROUPS:
        half = max(half, _half(squares, more, len(logs)))
    half = math.hypot(half, _NORMAL * _SHARED_SD)
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def _half(squares: float, freedom: int, groups: int) -> float:
    """Half the width of the interval of a mean, from the sum of squares with so many degrees of freedom."""
    student = _STUDENT[min(freedom - 2, len(_STUDENT) - 1)]
    return student * math.sqrt(squares / freedom / groups)


def time_s(groups: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(times_s[name] for times_s in groups)
