"""`cupilot optimize --dry-run`: calls, tokens and money of a run with language models, before it begins."""

from __future__ import annotations

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cupilot.agents.estimate import Calls, Scope, estimate
from cupilot.agents.making import parse_models
from cupilot.agents.templates import shipped_prompts
from cupilot.brief import Brief
from cupilot.budget import UNLIMITED, parse_budget
from cupilot.device.registry import open_device
from cupilot.errors import UsageError
from cupilot.evolve.folder import Asked
from cupilot.evolve.loop import Settings
from cupilot.evolve.policies import CROSSOVER_SHARE
from cupilot.evolve.standing import placed
from cupilot.lm.names import open_endpoint
from cupilot.lm.program import Program
from cupilot.lm.replay import Replay
from cupilot.problem.loading import load
from cupilot.strategy.tactics import load_cookbook


def run(asked: Asked) -> int:
    if asked.model is None:
        raise UsageError("the built-in author costs nothing", hint="--dry-run is for --model MODEL")
    models = parse_models(asked.model)
    for spec in models.values():
        endpoint = open_endpoint(spec)  # its name, its key; nothing is contacted
        if isinstance(endpoint, Program | Replay):
            endpoint.check()
    problem = load(asked.problem, asked.size)
    language = open_device(asked.device).language
    place = placed(problem, asked.device) if asked.roofline else None
    cookbook = load_cookbook().written_in(language)
    brief = Brief(problem, asked.device, language, cookbook, place)
    rows = estimate(brief, shipped_prompts(), models, _scope(asked))
    Console(highlight=False).print(page(asked, rows))
    return 0


def _scope(asked: Asked) -> Scope:
    limits, settings = parse_budget(asked.budget), Settings()
    candidates = asked.epochs * asked.generations * asked.population
    if limits.evaluations != UNLIMITED.evaluations:
        candidates = min(candidates, int(limits.evaluations))
    first = 1 / (asked.epochs * asked.generations)  # a first generation has no parents
    planned, crossed = {  # mutations and random strategies need no model
        "sce": (first, CROSSOVER_SHARE * (1 - first)),
        "code-crossover": (first, 1 - first),
        "best-of-n": (1.0, 0.0),
    }.get(asked.policy, (0.0, 0.0))
    code_crossover = asked.policy == "code-crossover"
    return Scope(candidates, settings.repairs, settings.refinements, planned, crossed, code_crossover)


def page(asked: Asked, rows: list[Calls]) -> Group:
    table = Table(box=None, padding=(0, 2))
    for name in ("role", "calls", "tokens", "price", "at most"):
        table.add_column(name, justify="left" if name == "role" else "right", header_style="dim")
    for row in rows:
        table.add_row(
            row.role,
            f"{row.likely:.0f}",
            _tokens(row.likely_tokens),
            _money(row.likely_usd),
            f"{row.most:.0f} calls  {_money(row.most_usd)}",
        )
    tokens = sum(row.likely_tokens for row in rows)
    most = sum(row.most * row.most_tokens for row in rows)
    likely_usd, most_usd = _total([row.likely_usd for row in rows]), _total([row.most_usd for row in rows])
    table.add_row(
        Text("together", "bold"),
        f"{sum(row.likely for row in rows):.0f}",
        _tokens(tokens),
        _money(likely_usd),
        f"{_tokens(most)} tokens  {_money(most_usd)}",
    )
    words = "Without the thinking that some models are paid for; at most: every answer at its limit."
    return Group(table, Text(words, "dim"), Text(f"The run stops at its budget: {asked.budget}.", "dim"))


def _tokens(count: float) -> str:
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.2f} usd"


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
