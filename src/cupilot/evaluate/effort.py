"""How much an evaluation may cost. Correctness is always whole: effort buys precise times, more baselines."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.evaluate.baseline import BaselineKind
from cupilot.evaluate.race import Settings


@dataclass(frozen=True)
class Effort:
    race: Settings
    tries: int  # points of the tunables that are measured, at each target
    baselines: tuple[BaselineKind, ...] = (BaselineKind.EAGER,)
    null_pair: bool = True  # eager against eager
    checked: bool = True  # one timed call is held against the reference with its error bound
    all_threads: bool = False  # a second look on all threads, by wall time


# A candidate among many: against eager only; whoever wins is raced and proven later.
SEARCH = Effort(
    Settings(groups=2, rounds=5, batch_s=0.002, budget_s=1.0, retries=1),
    tries=6,
    null_pair=False,
    checked=False,
)
QUICK = Effort(Settings(groups=4, rounds=4, batch_s=0.002, budget_s=2.0, retries=1), tries=8)
FULL = Effort(Settings(), tries=24, baselines=tuple(BaselineKind), all_threads=True)
