"""Retention: how many of both parents' tactics are evident in the child. Evidence counts, not claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cupilot.evolve.candidate import Candidate
from cupilot.strategy.align import evidence
from cupilot.strategy.evidence import Evidence, without_comments
from cupilot.strategy.tactics import Cookbook


@dataclass(frozen=True)
class Retention:
    kept: int
    of: int  # tactics evident in either parent

    @property
    def whole(self) -> bool:
        return self.kept == self.of

    def __add__(self, other: Retention) -> Retention:
        return Retention(self.kept + other.kept, self.of + other.of)


def evident(candidate: Candidate, cookbook: Cookbook, language: str) -> frozenset[str]:
    """The tactics that the compiled code or the source shows."""
    facts = {**candidate.evaluation.facts, "code": without_comments(candidate.kernel.source)}
    found = evidence(cookbook, facts, language)
    return frozenset(tactic for tactic, verdict in found.items() if verdict is Evidence.EVIDENT)


def retention(child: Candidate, parents: Iterable[Candidate], cookbook: Cookbook, language: str) -> Retention:
    ideas = frozenset().union(*(evident(parent, cookbook, language) for parent in parents))
    return Retention(len(ideas & evident(child, cookbook, language)), len(ideas))


def retentions(
    records: Sequence[Candidate], cookbook: Cookbook, language: str
) -> list[tuple[Candidate, Retention]]:
    """Of every child that passed and had two parents."""
    by_slot = {candidate.slot: candidate for candidate in records}
    return [
        (child, retention(child, [by_slot[slot] for slot in child.parents], cookbook, language))
        for child in records
        if child.passed and len(child.parents) == 2
    ]
