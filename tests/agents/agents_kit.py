"""Models that answer from a script, and an evaluator whose speeds follow from what a kernel says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cupilot.agents.author import ModelAuthor
from cupilot.agents.templates import shipped_prompts
from cupilot.brief import Brief, Parent
from cupilot.budget import Amounts, Budget, parse_budget
from cupilot.evaluate.result import Evaluation, Interval, Kind, Verdict
from cupilot.evolve.ahead import Working
from cupilot.evolve.candidate import Candidate, Slot
from cupilot.evolve.loop import Search, Settings
from cupilot.evolve.policies import POLICIES
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.ledger import Cell
from cupilot.lm.asking import Asking
from cupilot.lm.calling import Caller, Patience
from cupilot.lm.messages import Endpoint, Reply, Request, Stop
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Source, Zone
from cupilot.store import Store
from cupilot.strategy.evidence import parse_condition
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook, Parameter, Resource, Tactic
from cupilot.types import Stage

PLACEMENT = Placement(Zone.MEMORY, "DRAM", Source.MEASURED, 0.5, 4.0, 4.0, 2e10, 8e10, 8e10, 1e-4, 1e-5, 2e-4)
GAINS = {"vectorize": 2.0, "unroll": 1.2, "tile": 1.5}


def tactic(name: str) -> Tactic:
    """`vectorize` can be seen in the code; the others cannot be settled by evidence."""
    return Tactic(
        id=name,
        title=name.title(),
        does=f"Does {name}.",
        moves=Resource.BYTES,
        zones=frozenset({Zone.MEMORY}),
        requires=frozenset({"vectorize"}) if name == "unroll" else frozenset(),
        conflicts=frozenset(),
        parameters=(Parameter("size", (4, 8)),) if name == "tile" else (),
        hints={"cpp": f"How to {name}."},
        evidence={"cpp": (parse_condition('code ~ "vectorize"'),)} if name == "vectorize" else {},
        tested="",
    )


COOKBOOK = Cookbook(tactic(name) for name in GAINS)


def kernel_text(*names: str, flaw: str = "") -> str:
    words = " ".join((*names, flaw)).strip() or "plain"
    code = " ".join(f"{name}();" for name in names)
    return f"/* cupilot 1\n{words}\nlaunch:\n    k[1](x, out)\n*/\nvoid k() {{ {code} }}\n"


def fenced(text: str) -> str:
    return f"Here it is:\n\n```cpp\n{text}```\nGood luck."


def strategy_text(*names: str, steps: Iterable[str] = ()) -> str:
    tactics = [
        {"id": name, "parameters": [{"name": "size", "value": "8"}] if name == "tile" else []}
        for name in names
    ]
    expected = {"resource": "bytes", "factor": 2.0}
    return json.dumps(
        {"tactics": tactics, "steps": list(steps), "rationale": "It pays.", "expected": expected}
    )


Answer = str | Reply | Exception


@dataclass
class Scripted:
    """An endpoint. `script` is asked for every request; what it returns is the answer."""

    script: Callable[[Request], Answer]
    name: str = "command:scripted"
    asked: list[Request] = field(default_factory=list)

    def check(self) -> None: ...

    def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        answer = self.script(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer, Stop.DONE, 100, 10)


def in_turn(*answers: Answer) -> Callable[[Request], Answer]:
    left = list(answers)
    return lambda _: left.pop(0)


def author_of(store: Store, endpoint: Endpoint | None, budget: Budget | None = None) -> ModelAuthor:
    callers = {"": Caller(endpoint, Patience(attempts=1), sleep=lambda _: None)} if endpoint else {}
    asking = Asking(store, budget or Budget(parse_budget("")), callers)
    return ModelAuthor("scripted", asking, COOKBOOK, shipped_prompts())


def brief_of(problem: Problem) -> Brief:
    return Brief(problem, "cpu", "cpp", COOKBOOK, placement=None)


def parent(*names: str, speedup: float = 1.0) -> Parent:
    action = {"tactic": "vectorize", "why": "the loop is scalar", "expected_gain": 2.0}
    advice = {"severity": "high", "cause": "scalar arithmetic", "actions": [action]}
    strategy = Strategy(free_steps=names)
    return Parent(strategy, parse_kernel(kernel_text(*names)), speedup, 1e-3, (advice,))


@dataclass
class LawfulEvaluator:
    """Speed is the product of the gains of the tactics that a kernel names."""

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]:
        cost = Amounts(time_s=1.0, evaluations=1)
        if "flaw" in kernel.summary:
            return Evaluation(Verdict.FAILED, Stage.VERIFY, "out[3] is 1, expected 2"), cost
        ratio = 0.8
        for name, gain in GAINS.items():
            ratio *= gain if name in kernel.summary else 1.0
        return Evaluation(
            Verdict.PASSED,
            Stage.TIME,
            "",
            speedup={"eager": Interval(ratio, ratio * 0.99, ratio * 1.01)},
            time_s=1 / ratio,
            floor_s=0.05,
            kind=Kind.MEASURED,
        ), cost

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        ratio = challenger.speedup.ratio / champion.speedup.ratio
        return Interval(ratio, ratio * 0.99, ratio * 1.01), Amounts()

    def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
        return self.evaluate(champion.kernel)


@dataclass
class Onlooker:
    def trying(self, slot: Slot, what: str) -> None: ...

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None: ...

    def notice(self, what: str) -> None: ...

    def stop_requested(self) -> bool:
        return False


def search_of(
    problem: Problem,
    author: ModelAuthor,
    budget: Budget,
    policy: str = "sce",
    population: int = 3,
    at_once: bool = True,
) -> Search:
    return Search(
        brief_of(problem),
        author,
        LawfulEvaluator(),
        POLICIES[policy],
        Settings(epochs=1, generations=3, population=population),
        budget,
        Onlooker(),
        Cell(Zone.MEMORY, "any", "cpu"),
        ahead=Working(author.beside, at_once=at_once),
    )
