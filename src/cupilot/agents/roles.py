"""The roles of the paper that a model fills, as prompts: a brief goes in, a request comes out.

The Roofline Prophet is code: its digest is part of these prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cupilot.agents import facts
from cupilot.agents.answers import strategy_schema
from cupilot.agents.templates import render
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


def generate(brief: Brief) -> Request:
    return _request("generator", brief, problem=facts.problem(brief.problem))


def plan(brief: Brief, sample: int) -> Request:
    return _request(
        "manager-plan",
        brief,
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief),
        tactics=facts.tactics(brief),
        experience=facts.experience(brief),
        sample=str(sample),
    )


def cross(brief: Brief, parents: tuple[Parent, Parent], sample: int) -> Request:
    a, b = parents
    return _request(
        "manager-cross",
        brief,
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, max(parents, key=lambda parent: parent.speedup)),
        tactics=facts.tactics(brief),
        parent_a=facts.parent(a, brief, code=False),
        parent_b=facts.parent(b, brief, code=False),
        experience=facts.experience(brief),
        sample=str(sample),
    )


def translate(brief: Brief, strategy: Strategy, base: Parent) -> Request:
    return _request(
        "translator",
        brief,
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        hints=facts.hints(strategy, brief),
        base=facts.base(base, brief),
    )


def align(brief: Brief, strategy: Strategy, kernel: KernelFile) -> Request:
    return _request(
        "translator-align",
        brief,
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        tactics=facts.tactics(replace(brief, credit={})),
        kernel=facts.kernel(kernel, brief.language),
    )


def repair(brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint) -> Request:
    shown = {"kernel": facts.kernel(kernel, brief.language), "complaint": facts.complaint(complaint)}
    if complaint.stage != Stage.VERIFY:
        return _request("revisor-syntax", brief, signature=facts.signature(brief.problem), **shown)
    return _request(
        "revisor-function",
        brief,
        problem=facts.problem(brief.problem),
        strategy=facts.strategy_words(strategy),
        **shown,
    )


def refine(brief: Brief, current: Parent) -> Request:
    return _request(
        "revisor-performance",
        brief,
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, current),
        base=facts.base(current, brief),
        strategy=facts.strategy_words(current.strategy),
    )


def merge(brief: Brief, parents: tuple[Parent, Parent], sample: int) -> Request:
    a, b = parents
    return _request(
        "code-crossover",
        brief,
        problem=facts.problem(brief.problem),
        guidance=facts.guidance(brief, max(parents, key=lambda parent: parent.speedup)),
        parent_a=facts.base(a, brief),
        parent_b=facts.base(b, brief),
        sample=str(sample),
    )


def corrected(request: Request, answer: str, error: str) -> Request:
    """The same conversation, gone on with the exact error."""
    said = (Turn("assistant", answer or "(nothing)"), Turn("user", render("correction.md", {"error": error})))
    return replace(request, turns=(*request.turns, *said))


def _request(name: str, brief: Brief, **values: str) -> Request:
    prompt = Turn("user", render(f"{name}.md", values))
    if ROLES[name].writes_code:
        rules = render(f"_device_{brief.language}.md", {})
        system = render("system_code.md", {"device_rules": rules})
        return Request(name, system, (prompt,), CODE_TOKENS)
    system = render("system_strategy.md", {})
    return Request(name, system, (prompt,), STRATEGY_TOKENS, strategy_schema(brief.cookbook))
