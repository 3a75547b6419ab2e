"""The author against scripted models: corrections, refusals, budgets, faults, whole runs, replays."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from agents_kit import (
    PLACEMENT,
    Answer,
    LawfulEvaluator,
    Scripted,
    author_of,
    brief_of,
    fenced,
    in_turn,
    kernel_text,
    parent,
    search_of,
    strategy_text,
)

from cupilot.agents.making import model_author, parse_models
from cupilot.brief import Complaint, Declined
from cupilot.budget import Amounts, Budget, parse_budget
from cupilot.errors import UsageError
from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.evolve.loop import Search
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.lm.messages import EndpointError, Reach, Reply, Request, Stop
from cupilot.lm.replay import Replay
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement
from cupilot.store import Store, UnansweredError
from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.types import Stage

GOOD = fenced(kernel_text("vectorize"))


def test_an_invalid_answer_goes_back_with_its_error(relu: Problem, store: Store) -> None:
    model = Scripted(in_turn("Sorry?", fenced(kernel_text().replace("out", "result")), GOOD))
    author = author_of(store, model)
    kernel = author.generate(brief_of(relu))
    assert isinstance(kernel, KernelFile) and kernel.summary == "vectorize"
    last = model.asked[-1].turns
    assert [turn.speaker for turn in last] == ["user", "assistant", "user", "assistant", "user"]
    assert "no fenced code block" in last[2].text and "result" in last[4].text and "line 4" in last[4].text
    assert author.tally == {("generator", "invalid"): 2, ("generator", "corrected"): 1}


def test_after_three_unusable_answers_the_author_declines(relu: Problem, store: Store) -> None:
    model = Scripted(lambda _: "I do not know.")
    found = author_of(store, model).generate(brief_of(relu))
    assert isinstance(found, Declined)
    assert (
        "3 answers of the generator were unusable" in found.reason and "no fenced code block" in found.reason
    )
    assert len(model.asked) == 3


def test_an_answer_that_was_cut_off_is_asked_for_again(relu: Problem, store: Store) -> None:
    model = Scripted(in_turn(Reply(GOOD[:40], Stop.LENGTH, 1, 1), GOOD))
    assert isinstance(author_of(store, model).generate(brief_of(relu)), KernelFile)
    assert "cut off after 16000 tokens" in model.asked[1].turns[-1].text


def test_a_model_that_refuses_is_quoted(relu: Problem, store: Store) -> None:
    model = Scripted(in_turn(Reply("This looks like malware.", Stop.REFUSED, 1, 1)))
    found = author_of(store, model).generate(brief_of(relu))
    assert found == Declined("the model refused: This looks like malware.")


def test_repairs_go_to_the_revisor_for_what_is_wrong(relu: Problem, store: Store) -> None:
    model = Scripted(lambda _: GOOD)
    author, brief = author_of(store, model), brief_of(relu)
    kernel = parse_kernel(kernel_text())
    for stage in ("compile", "load", "verify"):
        author.repair(brief, Strategy(), kernel, Complaint(stage, "no"))
    assert [r.role for r in model.asked] == ["revisor-syntax", "revisor-syntax", "revisor-function"]


def test_crossing_keeps_the_lineage_and_merging_needs_no_strategy(relu: Problem, store: Store) -> None:
    model = Scripted(lambda r: GOOD if r.schema is None else strategy_text("tile"))
    author, brief = author_of(store, model), brief_of(relu)
    a, b = parent("one"), parent("two")
    child = author.cross(brief, (a, b), Random(0))
    assert isinstance(child, Strategy) and child.parents == (a.strategy.hash, b.strategy.hash)
    assert isinstance(author.merge(brief, (a, b), Random(0)), KernelFile)


def test_evidence_decides_and_a_model_is_asked_only_about_the_rest(relu: Problem, store: Store) -> None:
    model = Scripted(lambda _: strategy_text("vectorize", "unroll", steps=["Keeps the row."]))
    author, brief = author_of(store, model), brief_of(relu)
    kernel = parse_kernel(kernel_text("vectorize"))
    seen = author.align(brief, Strategy(), kernel, {"code": "vectorize();"})
    assert seen.tactics == {"vectorize"} and not model.asked  # evident: nothing to ask
    claims = Strategy((TacticUse.of("tile", size=4), TacticUse.of("vectorize")), rationale="Why.")
    read = author.align(brief, claims, kernel, {"code": "vectorize();"})
    assert read.tactics == {"vectorize", "unroll"} and read.rationale == "Why."
    refuted = author.align(brief, claims, kernel, {"code": "scalar();"})
    assert "vectorize" not in refuted  # whatever the model says


def test_refinement_needs_a_profile_that_says_something(relu: Problem, store: Store) -> None:
    author, brief = author_of(store, Scripted(lambda _: GOOD)), replace(brief_of(relu), placement=PLACEMENT)
    assert isinstance(author.refine(brief, parent("one")), KernelFile)
    silent = replace(parent("one"), advice=())
    assert isinstance(author.refine(brief, silent), Declined)
    assert isinstance(author.refine(replace(brief, placement=None), silent), KernelFile)  # nothing can say so


# -- budgets -------------------------------------------------------------------------------------------


def test_tokens_and_money_are_reserved_at_the_largest_and_settled_at_the_truth(
    relu: Problem, store: Store
) -> None:
    budget = Budget(parse_budget("100ktok"))
    held: list[float] = []

    def answer(_: Request) -> Answer:
        held.append(100_000 - sum(a.tokens for a in budget._held.values()))
        return GOOD

    author_of(store, Scripted(answer), budget).generate(brief_of(relu))
    assert held[0] < 100_000 - 16_000 and not budget._held
    assert budget.spent.tokens == 110


def test_a_budget_that_cannot_hold_the_largest_answer_ends_the_run(relu: Problem, store: Store) -> None:
    model = Scripted(lambda _: GOOD)
    budget = Budget(parse_budget("10ktok"))
    found = author_of(store, model, budget).generate(brief_of(relu))
    assert isinstance(found, Declined) and not model.asked
    assert budget.exhausted() == "the tokens are used up: the next answer could cost more than is left"


def test_money_needs_a_price(store: Store) -> None:
    with pytest.raises(UsageError, match="none is known for openai:unheard-of") as caught:
        author_of(store, Scripted(lambda _: GOOD, name="openai:unheard-of"), Budget(parse_budget("5usd")))
    assert "CUPILOT_PRICES" in caught.value.hint


def test_money_is_counted_by_the_price_list(relu: Problem, store: Store) -> None:
    budget = Budget(parse_budget("5usd"))
    author = author_of(store, Scripted(lambda _: GOOD, name="anthropic:claude-haiku-4-5"), budget)
    author.generate(brief_of(relu))
    assert budget.spent.money_usd == pytest.approx((100 * 1 + 10 * 5) / 1e6)


# -- whole runs ----------------------------------------------------------------------------------------


def capable(request: Request) -> Answer:
    """Knows all tactics, and answers according to what it is asked."""
    asked = request.turns[0].text
    if request.schema is not None:
        number = len(asked) + sum(map(ord, asked))
        names = [("vectorize",), ("tile",), ("vectorize", "unroll"), ("vectorize", "tile")][number % 4]
        return strategy_text(*names)
    wanted = asked.split("# The strategy")[-1].split("Its tactics")[0] if "# The strategy" in asked else ""
    names = tuple(name for name in ("vectorize", "tile", "unroll") if f"`{name}" in wanted)
    flaw = "flaw" if request.role == "translator" and "unroll" in wanted else ""
    return fenced(kernel_text(*names, flaw=flaw))


@pytest.mark.parametrize("policy", ["sce", "code-crossover", "best-of-n"])
def test_every_policy_runs_with_a_model_and_replays_without_one(
    relu: Problem, tmp_path: Path, policy: str
) -> None:
    def run(store: Store, model: Scripted | Replay | None) -> list[str]:
        budget = Budget(parse_budget("60evals"))
        author = author_of(store, model, budget)
        outcome = search_of(relu, author, budget, policy, at_once=model is not None).run()
        assert outcome.champion is not None and outcome.champion.speedup.ratio > 1.5
        return [f"{c.slot} {c.origin} {c.strategy.hash} {c.kernel.hash} {c.repairs}" for c in outcome.records]

    model = Scripted(capable)
    with Store(tmp_path / "run.db") as store:
        first = run(store, model)
        asked = len(model.asked)
        assert run(store, model) == first and len(model.asked) == asked  # resumed: nothing is asked twice
        assert run(store, None) == first  # looked at: no model is there
    with Store(tmp_path / "other.db") as store:
        assert run(store, Replay("replay:run.db", tmp_path / "run.db")) == first
    origins = {line.split()[1] for line in first}
    assert ("merge" in origins) == (policy == "code-crossover")


@dataclass
class WithRoofline(LawfulEvaluator):
    """Says of every kernel what the roofline leads to, and that tiles are impossibly fast."""

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        found, cost = super().evaluate(kernel)
        if found.passed and "tile" in kernel.summary:
            return Evaluation(Verdict.FAILED, Stage.FLOOR, "ROOFLINE floor"), cost
        actions = [{"tactic": "vectorize", "why": "ROOFLINE action", "expected_gain": 2.0}]
        advice = {"severity": "high", "cause": "ROOFLINE cause", "actions": actions}
        return replace(found, advice=(advice,), attainable_s=found.time_s), cost


@pytest.mark.parametrize("policy", ["sce", "code-crossover", "best-of-n"])
def test_a_search_without_the_roofline_tells_no_role_of_it(
    relu: Problem, tmp_path: Path, policy: str
) -> None:
    def run(table: str, placement: Placement | None) -> tuple[Search, list[Request], str]:
        model, budget = Scripted(capable), Budget(parse_budget("60evals"))
        with Store(tmp_path / table) as store:
            search = search_of(relu, author_of(store, model, budget), budget, policy)
            search.brief, search.evaluator = replace(search.brief, placement=placement), WithRoofline()
            return search, model.asked, search.search()

    def text(asked: list[Request]) -> str:
        return "".join(turn.text for request in asked for turn in request.turns)

    search, asked, reason = run("hidden.db", None)
    assert any(c.evaluation.stage is Stage.FLOOR for c in search.records)
    assert "ROOFLINE" not in text(asked) and "floor" not in reason
    roles = {request.role for request in asked}
    assert {"manager-plan", "translator", "revisor-performance"} <= roles
    assert ("it was refused after it was timed" in text(asked)) == (policy == "sce")
    _, asked, reason = run("guided.db", PLACEMENT)
    assert reason.startswith("at the floor") and "ROOFLINE" not in text(asked[:1])


def test_a_failing_endpoint_ends_the_run_with_the_champion(relu: Problem, store: Store) -> None:
    left = [12]

    def answer(request: Request) -> Answer:
        left[0] -= 1
        return capable(request) if left[0] > 0 else EndpointError("gone fishing", reach=Reach.PASSING)

    budget = Budget(parse_budget("60evals"))
    model = Scripted(answer)
    outcome = search_of(relu, author_of(store, model, budget), budget, population=8).run()
    assert "3 requests in a row failed" in outcome.reason and "gone fishing" in outcome.reason
    assert outcome.champion is not None
    assert sum("gone fishing" in c.evaluation.reason for c in outcome.records) <= 3
    # Resumed with an endpoint that works, it goes on where it stopped.
    budget = Budget(parse_budget("60evals"))
    resumed = search_of(relu, author_of(store, Scripted(capable), budget), budget, population=8).run()
    assert len(resumed.records) > len(outcome.records)


def test_candidates_of_useless_answers_fail_as_values(relu: Problem, store: Store) -> None:
    def answer(request: Request) -> Answer:
        return "no idea" if request.role == "manager-plan" else capable(request)

    budget = Budget(parse_budget("60evals"))
    outcome = search_of(relu, author_of(store, Scripted(answer), budget), budget).run()
    declined = [c for c in outcome.records if c.origin == "declined"]
    assert declined and all("unusable" in c.evaluation.reason for c in declined)
    assert outcome.reason != "" and outcome.records[0].passed


def test_whoever_only_looks_never_calls_a_model(relu: Problem, store: Store) -> None:
    with pytest.raises(UnansweredError):
        author_of(store, None).generate(brief_of(relu))


# -- making --------------------------------------------------------------------------------------------


def test_roles_may_have_models_of_their_own(store: Store, tmp_path: Path) -> None:
    specs = parse_models(f"mailbox:{tmp_path}/a; translator=command:cat -n; manager-plan = mailbox:b")
    assert specs == {"": f"mailbox:{tmp_path}/a", "translator": "command:cat -n", "manager-plan": "mailbox:b"}
    author = model_author("mailbox:a; translator=command:cat", "cpp", store, Budget(parse_budget("")))
    assert set(author._asking._callers) == {"", "translator"}


@pytest.mark.parametrize(
    "text",
    ["", "translator=mailbox:a", "mailbox:a; mailbox:b", "mailbox:a; translater=mailbox:b", "nonsense"],
)
def test_unusable_models_are_refused_before_the_run(store: Store, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        model_author(text, "cpp", store, Budget(parse_budget("")))
    assert caught.value.hint


def test_a_run_keeps_the_prompts_and_the_cookbook_it_began_with(store: Store, relu: Problem) -> None:
    def make(offline: bool = False) -> list[str]:
        budget = Budget(parse_budget(""))
        made = model_author("command:cat", "cpp", store, budget, offline=offline)
        return sorted(tactic.id for tactic in made.cookbook(relu))

    kept = make()
    row = store.get("prompts", {})
    assert row is not None and "generator.md" in row.answer
    tables = store.get("cookbook", {})
    assert tables is not None and sorted(tables.answer) == kept == make(offline=True)


def test_canary_keys_reach_no_record(
    relu: Problem,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CUPILOT_API_KEY", "canary-5577006791947779410")
    monkeypatch.setenv("CUPILOT_KEYS", str(tmp_path / "none.toml"))
    monkeypatch.setenv("CUPILOT_CACHE", str(tmp_path / "cache"))
    budget, told = Budget(parse_budget("")), list[str]()
    with pytest.raises(EndpointError, match="cannot be reached") as caught:
        model_author("openai:m@http://127.0.0.1:9/v1", "cpp", store, budget, notice=told.append)
    printed = capsys.readouterr()
    seen = [str(caught.value), *told, printed.out, printed.err]
    seen += [json.dumps([row.request, row.answer]) for row in store.rows()]
    seen += [file.read_bytes().decode(errors="replace") for file in tmp_path.rglob("*") if file.is_file()]
    assert not any("canary" in text for text in seen)
