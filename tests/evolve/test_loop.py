import pytest
from fakes import COST, GAINS, LawfulEvaluator, Onlooker, ScriptedAuthor, make_search

from cupilot.brief import Brief, Declined, Parent
from cupilot.budget import Amounts, parse_budget
from cupilot.evaluate.result import Evaluation, Interval, Verdict
from cupilot.evolve import loop
from cupilot.evolve.candidate import Candidate, elites
from cupilot.evolve.loop import Settings
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy
from cupilot.types import Stage

BEST = {"vectorize", "unroll", "tile", "fuse"}  # stream slows down and excludes tile


@pytest.mark.parametrize("policy", ["sce", "random", "best-of-n"])
def test_every_policy_finds_a_good_kernel(relu: Problem, policy: str) -> None:
    outcome = make_search(relu, policy).run()
    assert outcome.champion is not None
    assert outcome.champion.speedup.ratio > 2


def test_evolution_finds_the_best_combination(relu: Problem) -> None:
    outcome = make_search(relu, "sce", settings=Settings(patience=6)).run()
    assert outcome.champion is not None
    assert outcome.champion.strategy.tactics == BEST
    assert outcome.champion.strategy.uses[0].tactic in GAINS


def test_the_same_seed_takes_the_same_path(relu: Problem) -> None:
    paths = [[c.strategy.hash for c in make_search(relu).run().records] for _ in range(2)]
    other = [c.strategy.hash for c in make_search(relu, settings=Settings(seed=1)).run().records]
    assert paths[0] == paths[1] != other


def test_no_strategy_is_tried_twice(relu: Problem) -> None:
    author = ScriptedAuthor()
    make_search(relu, "random", author=author).run()
    assert len(author.asked) == len(set(author.asked)) > 10


def test_the_budget_ends_the_run_and_says_so(relu: Problem) -> None:
    outcome = make_search(relu, limits=parse_budget("7evals")).run()
    assert outcome.reason == "the evaluations are used up"
    assert outcome.spent.evaluations == 7 == len(outcome.records)
    assert outcome.champion is not None and outcome.proof is not None


def test_an_interruption_keeps_the_champion_so_far(relu: Problem) -> None:
    outcome = make_search(relu, watcher=Onlooker(stop_after=5)).run()
    assert outcome.reason == "interrupted"
    assert outcome.champion is not None and len(outcome.records) == 5


def test_a_run_without_gains_ends_by_patience(relu: Problem) -> None:
    flat = LawfulEvaluator(gains={})
    outcome = make_search(relu, evaluator=flat, settings=Settings(population=3)).run()
    assert outcome.reason == "no gain in 3 generations"


def test_the_reference_wins_where_nothing_beats_it(relu: Problem) -> None:
    slow = LawfulEvaluator(gains=dict.fromkeys(GAINS, 0.9))
    outcome = make_search(relu, evaluator=slow).run()
    assert outcome.champion is None and outcome.proof is not None


def test_exhausted_strategies_end_the_run(relu: Problem) -> None:
    settings = Settings(population=80, patience=9)
    outcome = make_search(relu, "random", settings=settings).run()
    assert outcome.reason == "every strategy within reach has been tried"
    # 2^3 choices of the free tactics, times: neither, stream, tile in two sizes.
    assert len({c.intended.hash for c in outcome.records}) == 32


def test_broken_kernels_are_repaired_and_counted(relu: Problem) -> None:
    author = ScriptedAuthor(clumsy=frozenset({"vectorize"}))
    outcome = make_search(relu, author=author).run()
    mended = [c for c in outcome.records if c.repairs]
    assert mended and all(c.passed for c in mended)


def test_failures_are_values_and_are_refuted_to_the_author(relu: Problem) -> None:
    author = ScriptedAuthor(clumsy=frozenset({"vectorize"}))
    search = make_search(relu, author=author, settings=Settings(repairs=0))
    outcome = search.run()
    failed = [c for c in outcome.records if not c.passed]
    assert failed and outcome.champion is not None
    assert "vectorize" not in outcome.champion.strategy
    assert all(t.log_ratio is None for t in search.trials() if t.stage)


def test_only_a_race_makes_a_champion(relu: Problem) -> None:
    outcome = make_search(relu).run()
    assert outcome.champion is not None
    winners = {a for a, _, interval in outcome.races if interval.low > 1}
    assert outcome.champion.slot in winners


class Unraced(LawfulEvaluator):
    """The machine is too busy for races."""

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        return None, Amounts(time_s=1.0)


def test_where_no_race_can_be_decided_clear_intervals_are_enough(relu: Problem) -> None:
    outcome = make_search(relu, evaluator=Unraced()).run()
    assert outcome.champion is not None and not outcome.races
    assert outcome.champion.speedup.ratio > 2 and outcome.proof is not None


def test_a_hopeless_champion_is_not_proven(relu: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "HOPELESS", 0.9)  # the plain kernel reaches 0.8

    class NeverProves(LawfulEvaluator):
        def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
            raise AssertionError("the final proof of a kernel that cannot win")

    outcome = make_search(relu, evaluator=NeverProves(gains=dict.fromkeys(GAINS, 0.5))).run()
    assert outcome.champion is None and outcome.proof is None


def test_elites_keep_one_of_every_idea(relu: Problem) -> None:
    outcome = make_search(relu, "random", settings=Settings(population=20)).run()
    chosen = elites(outcome.records, 8)
    assert len(chosen) == 8
    assert chosen[0].speedup.ratio == max(c.speedup.ratio for c in outcome.records if c.passed)
    assert len({c.strategy.hash for c in chosen}) == 8


def test_credit_finds_what_pays(relu: Problem) -> None:
    search = make_search(relu, "random")
    search.run()
    found = search._brief_now().credit
    assert found["vectorize"].log_gain > 0.4 and found["stream"].log_gain < found["vectorize"].log_gain


def test_what_could_not_be_decided_speaks_against_nothing(relu: Problem) -> None:
    class Disturbed(LawfulEvaluator):
        def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
            if "unroll" in kernel.summary:
                return Evaluation(Verdict.UNDECIDED, Stage.TIME, "the machine was busy"), COST
            return super().evaluate(kernel)

    author = Remembering()
    search = make_search(relu, "random", author=author, evaluator=Disturbed())
    search.run()
    assert any(c.evaluation.verdict is Verdict.UNDECIDED for c in search.records)
    assert not author.briefs[-1].refuted
    assert all(earned.failures == 0 for earned in author.briefs[-1].credit.values())


class Remembering(ScriptedAuthor):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.briefs: list[Brief] = []

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        self.briefs.append(brief)
        return super().write(brief, strategy, base)
