"""What each policy may look at, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from fakes import COOKBOOK, ScriptedAuthor, make_search

from cupilot.brief import Brief, Declined
from cupilot.evolve.candidate import Candidate, elites, fitter, tied, trial
from cupilot.evolve.loop import Settings
from cupilot.evolve.policies import POLICIES, Policy, Proposal, View
from cupilot.ledger import Cell
from cupilot.problem.problem import Problem
from cupilot.roofline import Zone
from cupilot.strategy.strategy import Strategy, TacticUse, is_valid

SEEDED = Strategy((TacticUse.of("fuse"), TacticUse.of("vectorize")))
Told = Callable[..., View]


@pytest.fixture(scope="module")
def records(relu: Problem) -> tuple[Candidate, ...]:
    return make_search(relu, "random", settings=Settings(population=20)).run().records


@pytest.fixture
def told(relu: Problem, records: tuple[Candidate, ...]) -> Told:
    def view(generation: int, index: int = 0, *, opens_epoch: bool = False, seeds: int = 0) -> View:
        brief = Brief(relu, "cpu", "cpp", COOKBOOK, None, similar=(SEEDED,) * seeds)
        seen = records if generation else records[:1]
        return View(brief, ScriptedAuthor(), seen, records[0], generation, index, opens_epoch)

    return view


def proposals(policy: Policy, view: View, count: int = 60) -> list[Proposal]:
    found = [policy(view, Random(seed)) for seed in range(count)]
    assert not any(isinstance(proposal, Declined) for proposal in found)
    return [proposal for proposal in found if isinstance(proposal, Proposal)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("generation", [0, 3])
def test_every_proposal_is_a_valid_strategy_drawn_from_the_seed(
    told: Told, policy: str, generation: int
) -> None:
    view = told(generation)
    first, again = (proposals(POLICIES[policy], view) for _ in range(2))
    assert first == again
    assert all(is_valid(proposal.strategy, COOKBOOK) for proposal in first)
    assert len({proposal.strategy.hash for proposal in first}) >= 5


def test_the_first_generation_takes_the_pool_s_strategies_then_plans(told: Told) -> None:
    origins = [POLICIES["sce"](told(0, index, seeds=2), Random(1)) for index in range(4)]
    assert [p.origin for p in origins if isinstance(p, Proposal)] == ["pool", "pool", "plan", "plan"]


def test_later_generations_cross_and_mutate_the_elite(told: Told, records: tuple[Candidate, ...]) -> None:
    elite = {candidate.slot for candidate in elites(records, 8)}
    made = proposals(POLICIES["sce"], told(2))
    assert {proposal.origin for proposal in made} == {"cross", "mutation"}
    for proposal in made:
        assert proposal.base.slot in elite
        assert {parent.slot for parent in proposal.parents} <= elite
        assert (len(proposal.parents) == 2) == (proposal.origin == "cross")


def test_an_epoch_opens_with_fresh_plans_on_the_best(told: Told) -> None:
    opening = [proposals(POLICIES["sce"], told(4, index, opens_epoch=True), 9) for index in range(4)]
    assert [all(p.origin == "plan" for p in made) for made in opening] == [True, True, False, False]


def test_best_of_n_and_random_learn_nothing(told: Told) -> None:
    for name in ("best-of-n", "random"):
        early, late = (proposals(POLICIES[name], told(generation)) for generation in (0, 3))
        assert [p.strategy for p in early] == [p.strategy for p in late]
        assert all(not p.parents for p in late)


def test_best_of_n_does_not_look_into_the_pool(told: Told) -> None:
    without, pooled = (proposals(POLICIES["best-of-n"], told(0, seeds=n)) for n in (0, 2))
    assert [p.strategy for p in without] == [p.strategy for p in pooled]


def test_merging_code_claims_what_both_parents_claim(told: Told) -> None:
    for proposal in proposals(POLICIES["code-crossover"], told(2)):
        assert proposal.origin == "merge" and len(proposal.parents) == 2
        both = frozenset().union(*(parent.strategy.tactics for parent in proposal.parents))
        assert proposal.strategy.tactics <= both


def test_ties_go_to_the_simpler_and_clear_gains_to_the_faster(records: tuple[Candidate, ...]) -> None:
    best = max((c for c in records if c.passed), key=lambda c: c.speedup.ratio)
    simpler = replace(best, strategy=Strategy())
    assert tied(best, simpler) and fitter(best, simpler) is simpler and fitter(simpler, best) is simpler
    slowest = min((c for c in records if c.passed), key=lambda c: c.speedup.ratio)
    assert not tied(best, slowest) and fitter(slowest, best) is best


def test_a_child_s_trial_is_against_its_base_and_a_failure_carries_no_gain(
    records: tuple[Candidate, ...],
) -> None:
    cell = Cell(Zone.MEMORY, "any", "cpu")
    base, child = records[0], next(c for c in records[1:] if c.passed and c.strategy.uses)
    found = trial(child, base, cell)
    assert found.changes == {use.tactic: 1 for use in child.strategy.uses}
    assert found.log_ratio is not None and found.sd > 0
    broken = replace(child, evaluation=replace(child.evaluation, speedup={}))
    assert trial(broken, base, cell).log_ratio is None
