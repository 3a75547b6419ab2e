"""How a run ended, as far as the user is concerned: one of four. Who shows runs asks here."""

from __future__ import annotations

from enum import Enum

from cupilot.evaluate.result import Verdict
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.loop import Outcome, worth_proving

NOT_FINISHED = "not finished"  # the reason of an outcome whose run was cut short


class Ending(Enum):
    FASTER = "faster"
    REFERENCE_WINS = "the reference wins"
    UNPROVEN = "unproven"  # cut short before the final proof, or the machine was too busy to tell
    NOTHING_PASSED = "nothing passed"


def ending_of(outcome: Outcome, contender: Candidate | None) -> Ending:
    """`contender`: the champion, or what would have been it had it beaten the reference."""
    if outcome.champion is not None:
        return Ending.FASTER
    if outcome.proof is not None:
        undecided = outcome.proof.verdict is Verdict.UNDECIDED
        return Ending.UNPROVEN if undecided else Ending.REFERENCE_WINS
    if outcome.reason == NOT_FINISHED:
        return Ending.UNPROVEN
    if contender is None or not contender.passed:
        busy = any(c.evaluation.verdict is Verdict.UNDECIDED for c in outcome.records)
        return Ending.UNPROVEN if busy else Ending.NOTHING_PASSED
    return Ending.UNPROVEN if worth_proving(contender) else Ending.REFERENCE_WINS
