"""A strategy: an ordered, validated set of tactic uses, with the reasons for them. Frozen and printable.

This is what evolution works on. Code is written afterwards, from one strategy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cupilot.errors import CupilotError
from cupilot.strategy.tactics import Cookbook, Resource


class StrategyError(CupilotError):
    """A strategy breaks a rule of the algebra; the message says which, for a person or a model to mend."""


@dataclass(frozen=True, order=True)
class TacticUse:
    """One tactic with its parameters, sorted by name."""

    tactic: str
    parameters: tuple[tuple[str, int | str], ...] = ()

    @staticmethod
    def of(tactic: str, **parameters: int | str) -> TacticUse:
        return TacticUse(tactic, tuple(sorted(parameters.items())))

    def get(self, name: str, default: int | str) -> int | str:
        return dict(self.parameters).get(name, default)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.tactic}({inside})" if inside else self.tactic


@dataclass(frozen=True)
class Effect:
    """What the strategy is expected to bring: a resource and the factor by which it shrinks."""

    resource: Resource
    factor: float


@dataclass(frozen=True)
class Strategy:
    uses: tuple[TacticUse, ...] = ()
    free_steps: tuple[str, ...] = ()  # ideas in words that no tactic covers yet
    rationale: str = field(default="", compare=False)
    expected: Effect | None = field(default=None, compare=False)
    parents: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def hash(self) -> str:
        """The identity of what is done; why, whence and in which order do not count."""
        key = json.dumps([sorted(map(str, self.uses)), sorted(self.free_steps)])
        return hashlib.sha256(key.encode()).hexdigest()[:12]

    @property
    def tactics(self) -> frozenset[str]:
        return frozenset(use.tactic for use in self.uses)

    def use(self, tactic: str) -> TacticUse | None:
        return next((use for use in self.uses if use.tactic == tactic), None)

    def __contains__(self, tactic: str) -> bool:
        return tactic in self.tactics

    def __str__(self) -> str:
        """Canonical text of at most ten lines."""
        lines = [f"strategy {self.hash}"]
        if self.uses:
            lines.append("  tactics: " + "; ".join(map(str, self.uses)))
        lines += [f"  step: {step}" for step in self.free_steps[:4]]
        if len(self.free_steps) > 4:
            lines.append(f"  ... and {len(self.free_steps) - 4} more steps")
        if self.rationale:
            lines.append(f"  because: {self.rationale}")
        if self.expected:
            lines.append(f"  expected: {self.expected.resource} / {self.expected.factor:g}")
        if self.parents:
            lines.append(f"  parents: {', '.join(self.parents)}")
        return "\n".join(lines)


def check(strategy: Strategy, cookbook: Cookbook) -> None:
    """Raise StrategyError unless every use is known, allowed together, and complete."""
    seen: set[str] = set()
    for use in strategy.uses:
        if use.tactic not in cookbook:
            raise StrategyError(
                f"unknown tactic {use.tactic!r}", hint="known: " + ", ".join(t.id for t in cookbook)
            )
        if use.tactic in seen:
            raise StrategyError(f"tactic {use.tactic!r} is used twice")
        seen.add(use.tactic)
        _check_parameters(use, cookbook)
    for tactic in seen:
        if missing := cookbook[tactic].requires - seen:
            raise StrategyError(f"{tactic!r} requires {', '.join(sorted(missing))}")
        for other in seen:
            if other != tactic and cookbook.conflict(tactic, other):
                raise StrategyError(f"{tactic!r} and {other!r} exclude each other", hint="keep one of them")


def _check_parameters(use: TacticUse, cookbook: Cookbook) -> None:
    tactic = cookbook[use.tactic]
    names = [name for name, _ in use.parameters]
    if names != sorted(set(names)):
        raise StrategyError(f"{use}: parameters must be sorted and named once")
    for name, value in use.parameters:
        parameter = tactic.parameter(name)
        if parameter is None:
            raise StrategyError(
                f"{use}: no parameter {name!r}", hint=f"it has {[p.name for p in tactic.parameters]}"
            )
        if value not in parameter.values:
            raise StrategyError(f"{use}: {name} must be one of {list(parameter.values)}")
    if lacking := {p.name for p in tactic.parameters} - set(names):
        raise StrategyError(f"{use}: gives no value for {', '.join(sorted(lacking))}")


def is_usable(use: TacticUse, cookbook: Cookbook) -> bool:
    """Known here, and complete; whether it goes with others is another question."""
    try:
        if use.tactic in cookbook:
            _check_parameters(use, cookbook)
            return True
    except StrategyError:
        pass
    return False


def is_valid(strategy: Strategy, cookbook: Cookbook) -> bool:
    try:
        check(strategy, cookbook)
    except StrategyError:
        return False
    return True


def to_json(strategy: Strategy) -> dict[str, Any]:
    return {
        "uses": [{"tactic": use.tactic, "parameters": dict(use.parameters)} for use in strategy.uses],
        "free_steps": list(strategy.free_steps),
        "rationale": strategy.rationale,
        "expected": [strategy.expected.resource, strategy.expected.factor] if strategy.expected else None,
        "parents": list(strategy.parents),
    }


def from_json(data: Mapping[str, Any]) -> Strategy:
    """The inverse of `to_json`; the shape is trusted (our own store), the rules are `check`'s business."""
    expected = data.get("expected")
    return Strategy(
        uses=tuple(TacticUse.of(use["tactic"], **use.get("parameters", {})) for use in data["uses"]),
        free_steps=tuple(data.get("free_steps", ())),
        rationale=data.get("rationale", ""),
        expected=Effect(Resource(expected[0]), float(expected[1])) if expected else None,
        parents=tuple(data.get("parents", ())),
    )
