"""Alignment: after revision the strategy is rewritten to what the code does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cupilot.strategy.algebra import default_use, settle
from cupilot.strategy.evidence import Evidence, Fact, judge
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook


def evidence(cookbook: Cookbook, facts: Mapping[str, Fact], language: str) -> dict[str, Evidence]:
    """Per tactic: evident, absent or unverifiable in a kernel of which these facts are known."""
    return {tactic.id: judge(tactic.evidence.get(language, ()), facts) for tactic in cookbook}


def align(strategy: Strategy, cookbook: Cookbook, facts: Mapping[str, Fact], language: str) -> Strategy:
    """Drop claims that the code refutes, add what it shows and nobody claimed; the rest stands.

    Structure wins: an addition that conflicts with a claim, or lacks what it requires, is left out.
    """
    found = evidence(cookbook, facts, language)
    kept = [use for use in strategy.uses if found.get(use.tactic) is not Evidence.ABSENT]
    shown = [
        default_use(cookbook[tactic])
        for tactic, verdict in found.items()
        if verdict is Evidence.EVIDENT and tactic not in strategy and not cookbook[tactic].parameters
    ]
    return replace(strategy, uses=tuple(settle((*kept, *shown), cookbook)))
