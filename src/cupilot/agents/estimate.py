"""What a run with language models will cost, before it begins: calls, tokens and money, likely and at most.

Prompts are the real ones of the problem; how long answers are and how often a kernel needs mending is taken
from recorded runs (docs/results/agents.md). Thinking, where a model thinks, comes on top of "likely".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cupilot.agents import roles
from cupilot.agents.author import TRIES
from cupilot.agents.templates import Prompts
from cupilot.brief import Brief
from cupilot.lm.messages import Request, estimated_tokens, most_tokens_in
from cupilot.lm.prices import price

KERNEL_TOKENS = 1500
STRATEGY_TOKENS = 300


@dataclass(frozen=True)
class Calls:
    """Of one role."""

    role: str
    model: str
    likely: float
    most: float
    tokens_in: int  # of one likely call
    tokens_out: int
    most_tokens: int  # of one call, both ways
    likely_usd: float | None  # for all calls; None without a price
    most_usd: float | None

    @property
    def likely_tokens(self) -> float:
        return self.likely * (self.tokens_in + self.tokens_out)


@dataclass(frozen=True)
class Scope:
    """How large the search is, as the loop knows it."""

    candidates: int
    repairs: int
    refinements: int
    planned: float  # the share of candidates that begin with a plan
    crossed: float  # the share that have two parents
    code_crossover: bool = False


def estimate(brief: Brief, prompts: Prompts, models: Mapping[str, str], search: Scope) -> list[Calls]:
    """`models` by role, with "" for the others."""
    n = search.candidates
    planned, crossed = n * search.planned, n * search.crossed
    code = roles.request(roles.generate(brief), brief, prompts)
    plan = roles.request(roles.plan(brief, 0), brief, prompts)
    cross = "code-crossover" if search.code_crossover else "manager-cross"
    written = n - crossed if search.code_crossover else n
    rows = {
        # likely calls, most before corrections, a request like it, kernels in the prompt, writes code
        "generator": (1.0, 1.0, code, 0, True),
        "manager-plan": (planned, float(n), plan, 0, False),
        cross: (crossed, float(n), code if search.code_crossover else plan, 2, search.code_crossover),
        "translator": (written, float(n), code, 1, True),
        "revisor-syntax": (0.1 * n, float(search.repairs * (n + 1)), code, 1, True),
        "revisor-function": (0.2 * n, float(search.repairs * (n + 1)), code, 1, True),
        "revisor-performance": (0.6 * n, float(search.refinements * n), code, 1, True),
        "translator-align": (0.7 * n, float(n), plan, 1, False),
    }
    return [
        _calls(name, models.get(name, models[""]), likely, most, request, kernels, writes)
        for name, (likely, most, request, kernels, writes) in rows.items()
        if most
    ]


def _calls(
    role: str, model: str, likely: float, most: float, request: Request, kernels: int, writes_code: bool
) -> Calls:
    text = request.system + "".join(turn.text for turn in request.turns)
    tokens_in = estimated_tokens(text) + kernels * (KERNEL_TOKENS if writes_code else STRATEGY_TOKENS)
    tokens_out = KERNEL_TOKENS if writes_code else STRATEGY_TOKENS
    # Every correction repeats the conversation with the answer that was no good.
    most_in = most_tokens_in(request) + kernels * 4 * KERNEL_TOKENS
    most_in += (TRIES - 1) * request.max_tokens // 2
    rate = price(model)
    return Calls(
        role,
        model,
        likely,
        most * TRIES,
        tokens_in,
        tokens_out,
        most_in + request.max_tokens,
        None if rate is None else likely * rate.of(tokens_in, tokens_out),
        None if rate is None else most * TRIES * rate.of(most_in, request.max_tokens),
    )
