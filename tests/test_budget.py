import pytest

from cupilot.budget import UNLIMITED, Amounts, Budget, parse_budget
from cupilot.errors import UsageError


def test_every_unit_is_understood() -> None:
    assert parse_budget("3min, 200evals,5usd,200ktok") == Amounts(180, 200, 200_000, 5)
    assert parse_budget("1.5h").time_s == 5400
    assert parse_budget("") == UNLIMITED


@pytest.mark.parametrize("text", ["3", "min", "3 parsecs", "-1s", "3min,4s", "1e9s", "0s", "2min,0usd"])
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_budget(text)
    assert caught.value.hint


def test_a_run_ends_when_one_limit_is_reached_and_says_which() -> None:
    budget = Budget(parse_budget("2evals,1h"))
    budget.spend(Amounts(evaluations=1))
    assert budget.exhausted() is None
    budget.spend(Amounts(evaluations=1))
    assert budget.exhausted() == "the evaluations are used up"


def test_reservations_count_until_they_are_settled() -> None:
    budget = Budget(parse_budget("100tok"))
    ticket = budget.reserve(Amounts(tokens=80))
    assert isinstance(ticket, int)
    assert budget.reserve(Amounts(tokens=30)) == "the tokens are used up"
    budget.settle(ticket, Amounts(tokens=10))
    assert isinstance(budget.reserve(Amounts(tokens=90)), int)


def test_the_reserve_for_the_final_proof_is_kept() -> None:
    budget = Budget(parse_budget("100s"), reserve=Amounts(time_s=20))
    budget.spend(Amounts(time_s=80))
    assert budget.exhausted() == "the time is used up"
