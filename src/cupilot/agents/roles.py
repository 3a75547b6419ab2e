"""The roles of the paper that a model fills: from a brief to what a role is told, and to a request.

The Roofline Prophet is code: its digest is part of these prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cupilot.agents import facts
from cupilot.agents.answers import strategy_schema
from cupilot.agents.templates import Prompts
from cupilot.brief import Brief, Complaint, Parent
from cupilot.kernel.file import KernelFile
from cupilot.lm.messages import Request, Turn
from cupilot.strategy.strategy import Strategy
from cupilot.types import Stage

CODE_TOKENS = 16_000  # of an answer, thinking included
STRATEGY_TOKENS = 8_000


@dataclass(frozen=True)
class Role:
    name: str  # also of its prompt file
    does: str
    writes_code: bool


ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role("generator", "Kernel Generator: the first plain kernel", True),
        Role("manager-plan", "SCE Manager: proposes a strategy", False),
        Role("manager-cross", "SCE Manager: crosses two strategies", False),
        Role("translator", "Strategy Translator: writes the kernel of a strategy", True),
        Role("translator-align", "Strategy Translator: says what the finished kernel does", False),
        Role("revisor-syntax", "Kernel Revisor: mends what does not compile", True),
        Role("revisor-function", "Kernel Revisor: mends what computes something else", True),
        Role("revisor-performance", "Kernel Revisor: refines a kernel from its profile", True),
        Role("code-crossover", "two kernels in, one out: the usual design, to compare with", True),
    )
}


@dataclass(frozen=True)
class Task:
    """A role with everything it is told, by the names of its prompt's placeholders."""

    role: Role
    subject: str  # what it is about: samples, strategies and kernels by their hashes
    values: Mapping[str, str]


def generate(brief: Brief) -> Task:
    return _task("generator", "the first kernel", problem=facts.problem(brief.problem))


def plan(brief: Brief, sample: int) -> Task:
    return _task(
        "manager-plan",
        str(sample),
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief),
        tactics=facts.tactics(brief),
        experience=facts.experience(brief),
        sample=str(sample),
    )


def cross(brief: Brief, parents: tuple[Parent, Parent], sample: int) -> Task:
    a, b = parents
    return _task(
        "manager-cross",
        f"{sample} {a.strategy.hash} {b.strategy.hash}",
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, max(parents, key=lambda parent: parent.speedup)),
        tactics=facts.tactics(brief),
        parent_a=facts.parent(a, brief, code=False),
        parent_b=facts.parent(b, brief, code=False),
        experience=facts.experience(brief),
        sample=str(sample),
    )


def translate(brief: Brief, strategy: Strategy, base: Parent) -> Task:
    return _task(
        "translator",
        f"{strategy.hash} {base.kernel.hash}",
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        hints=facts.hints(strategy, brief),
        base=facts.base(base, brief),
    )


def align(brief: Brief, strategy: Strategy, kernel: KernelFile) -> Task:
    return _task(
        "translator-align",
        f"{strategy.hash} {kernel.hash}",
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        tactics=facts.tactics(replace(brief, credit={})),
        kernel=facts.kernel(kernel, brief.language),
    )


def repair(brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint) -> Task:
    shown = {"kernel": facts.kernel(kernel, brief.language), "complaint": facts.complaint(complaint)}
    if complaint.stage != Stage.VERIFY:
        return _task("revisor-syntax", kernel.hash, signature=facts.signature(brief.problem), **shown)
    return _task(
        "revisor-function",
        f"{strategy.hash} {kernel.hash}",
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        **shown,
    )


def refine(brief: Brief, current: Parent) -> Task:
    return _task(
        "revisor-performance",
        f"{current.strategy.hash} {current.kernel.hash}",
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, current),
        base=facts.base(current, brief),
        strategy=facts.strategy_words(current.strategy),
    )


def merge(brief: Brief, parents: tuple[Parent, Parent], sample: int) -> Task:
    a, b = parents
    return _task(
        "code-crossover",
        f"{sample} {a.kernel.hash} {b.kernel.hash}",
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, max(parents, key=lambda parent: parent.speedup)),
        parent_a=facts.base(a, brief),
        parent_b=facts.base(b, brief),
        sample=str(sample),
    )


def request(task: Task, brief: Brief, prompts: Prompts) -> Request:
    """The task exactly as it is sent."""
    name = task.role.name
    turn = Turn("user", prompts.render(f"{name}.md", task.values))
    if task.role.writes_code:
        rules = prompts.render(f"_device_{brief.language}.md", {})
        system = prompts.render("system_code.md", {"device_rules": rules})
        return Request(name, system, (turn,), CODE_TOKENS, subject=task.subject)
    system = prompts.render("system_strategy.md", {})
    schema = strategy_schema(brief.cookbook)
    return Request(name, system, (turn,), STRATEGY_TOKENS, schema, task.subject)


def corrected(asked: Request, answer: str, error: str, prompts: Prompts) -> Request:
    """The same conversation, gone on with the exact error."""
    again = Turn("user", prompts.render("correction.md", {"error": error}))
    return replace(asked, turns=(*asked.turns, Turn("assistant", answer or "(nothing)"), again))


def _task(name: str, subject: str, **values: str) -> Task:
    return Task(ROLES[name], subject, values)
