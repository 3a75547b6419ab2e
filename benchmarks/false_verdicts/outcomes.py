"""What became of each kernel of the benchmark, and the page that is printed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    PASSED = "passed"  # honest kernels only
    REFUSED = "refused"  # honest kernels only: a false refusal
    KILLED = "killed"
    EQUIVALENT = "equivalent"  # no mutant at all: `detail` says how we know
    SURVIVED = "survived"  # a false acceptance
    STILLBORN = "stillborn"  # does not compile or load; counts for nothing


@dataclass(frozen=True)
class Outcome:
    operator: str
    kernel: str
    rule: str  # empty for an honest kernel
    change: str
    fate: Fate
    detail: str
    verdict_s: float  # without compilation


def page(outcomes: Sequence[Outcome]) -> str:
    honest = [o for o in outcomes if not o.rule]
    wrong = [o for o in outcomes if o.rule and o.fate is not Fate.STILLBORN]
    return "\n".join([*_honest(honest), "", *_mutants(wrong), "", *_speed(outcomes)])


def _honest(honest: Sequence[Outcome]) -> Iterable[str]:
    passed = sum(o.fate is Fate.PASSED for o in honest)
    operators = len({o.operator for o in honest})
    refused = len(honest) - passed
    yield f"honest kernels: {len(honest)} on {operators} operators, {passed} passed, {refused} refused"
    for o in honest:
        if o.fate is not Fate.PASSED:
            yield f"  REFUSED {o.operator} / {o.kernel}: {o.detail}"


def _mutants(mutants: Sequence[Outcome]) -> Iterable[str]:
    real = [o for o in mutants if o.fate is not Fate.EQUIVALENT]
    survived = [o for o in mutants if o.fate is Fate.SURVIVED]
    share = len(survived) / max(1, len(real))
    yield f"mutants: {len(real)}, {len(real) - len(survived)} killed, {len(survived)} survived ({share:.1%})"
    yield f"         and {len(mutants) - len(real)} that turned out equivalent"
    yield f"  {'class':16} {'killed':>7} {'survived':>9} {'equivalent':>11}"
    for rule in dict.fromkeys(o.rule for o in mutants):
        fates = [o.fate for o in mutants if o.rule == rule]
        counts = [fates.count(fate) for fate in (Fate.KILLED, Fate.SURVIVED, Fate.EQUIVALENT)]
        yield f"  {rule:16} {counts[0]:7} {counts[1]:9} {counts[2]:11}"
    for fate, title in ((Fate.SURVIVED, "survivors"), (Fate.EQUIVALENT, "equivalent")):
        chosen = [o for o in mutants if o.fate is fate]
        if chosen:
            yield f"{title}:"
        for o in chosen:
            yield f"  {o.operator} / {o.kernel}, {o.rule}: {o.change}"
            yield f"      {o.detail}"


def _speed(outcomes: Sequence[Outcome]) -> Iterable[str]:
    for fate, what in ((Fate.KILLED, "on a wrong kernel"), (Fate.PASSED, "on a right kernel")):
        times = [o.verdict_s for o in outcomes if o.fate is fate]
        if times:
            median = statistics.median(times)
            yield f"verdict {what}, after compilation: median {median:.2f} s, most {max(times):.2f} s"
