"""Alignment: what the code refutes goes, what it shows comes, what nobody can see stays."""

from __future__ import annotations

import re

import pytest

from cupilot.roofline import Zone
from cupilot.strategy.align import align
from cupilot.strategy.evidence import Evidence, judge, parse_condition, without_comments
from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.strategy.tactics import Cookbook, Resource, Tactic


def tactic(name: str, *conditions: str, requires: str = "", conflicts: str = "") -> Tactic:
    return Tactic(
        name,
        name,
        name,
        Resource.BYTES,
        frozenset(Zone),
        frozenset(requires.split()),
        frozenset(conflicts.split()),
        (),
        {},
        {"cpp": tuple(map(parse_condition, conditions))},
        "",
    )


BOOK = Cookbook(
    [
        tactic("vectors", "vector_bits >= 256"),
        tactic("stream", 'code ~ "stream\\("', requires="vectors"),
        tactic("cached", 'code ~ "cached\\("', conflicts="stream"),
        tactic("order"),
    ]
)


def aligned(uses: list[str], **facts: float | str) -> set[str]:
    return set(align(Strategy(tuple(map(TacticUse.of, uses))), BOOK, facts, "cpp").tactics)


def test_claims_that_the_code_refutes_are_dropped() -> None:
    assert aligned(["vectors", "stream"], vector_bits=512, code="store(p)") == {"vectors"}


def test_what_is_there_without_a_claim_is_added() -> None:
    assert aligned([], vector_bits=512, code="stream(p)") == {"vectors", "stream"}


def test_what_nobody_can_see_stands() -> None:
    assert aligned(["order", "vectors"], code="x") == {"order", "vectors"}


def test_an_addition_never_breaks_the_rules() -> None:
    """A requirement that is absent, a claim that excludes it."""
    assert aligned([], vector_bits=128, code="stream(p)") == set()
    assert aligned(["cached"], vector_bits=512, code="stream(p) cached(p)") == {"cached", "vectors"}


def test_comments_prove_nothing() -> None:
    code = without_comments('f(p); // stream(q)\n/* stream(r) */ g("/* stream(s) */");')
    assert "stream(q)" not in code and "stream(r)" not in code and "stream(s)" in code


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ({"a": 2.0, "b": "x"}, Evidence.EVIDENT),
        ({"a": 2.0}, Evidence.UNVERIFIABLE),
        ({"b": "y"}, Evidence.ABSENT),
        ({}, Evidence.UNVERIFIABLE),
    ],
)
def test_one_failing_condition_refutes_all_must_hold(
    facts: dict[str, float | str], verdict: Evidence
) -> None:
    assert judge([parse_condition("a > 1"), parse_condition('b ~ "x"')], facts) is verdict


@pytest.mark.parametrize("text", ["a", "a ~ (", "a > many", ""])
def test_a_condition_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises((ValueError, re.error)):
        parse_condition(text)
