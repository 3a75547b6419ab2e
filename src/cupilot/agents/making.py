"""From what the user wrote behind `--model` to an author.

`SPEC` alone answers for every role; `SPEC; ROLE=SPEC; ...` gives roles models of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from cupilot.agents.author import ModelAuthor
from cupilot.agents.roles import CODE_TOKENS, ROLES
from cupilot.agents.templates import Prompts, shipped_prompts
from cupilot.budget import Budget
from cupilot.errors import UsageError
from cupilot.lm.asking import Asking
from cupilot.lm.calling import Caller
from cupilot.lm.names import Opening, open_endpoint
from cupilot.lm.replay import Replay
from cupilot.store import Json, Store, UnansweredError
from cupilot.strategy.tactics import load_cookbook, recorded_cookbook


def model_author(
    models: str,
    language: str,
    store: Store,
    budget: Budget,
    *,
    offline: bool = False,
    most_tokens: int = CODE_TOKENS,
    notice: Callable[[str], None] = lambda _: None,
    opening: Opening | None = None,
) -> ModelAuthor:
    """`offline`: only recorded answers; no key is looked for and nothing is contacted."""
    specs = parse_models(models)
    opening = opening or Opening(notice=notice)
    endpoints = {} if offline else {role: open_endpoint(spec, opening) for role, spec in specs.items()}
    recording = next((found for found in endpoints.values() if isinstance(found, Replay)), None)
    callers = {role: Caller(endpoint, notice=notice) for role, endpoint in endpoints.items()}
    tables = _kept(
        store, "cookbook", lambda: load_cookbook().written_in(language).to_json(), offline, recording
    )
    files = _kept(store, "prompts", lambda: dict(shipped_prompts().files), offline, recording)
    asking = Asking(store, budget, callers)
    asking.check()
    return ModelAuthor(models, asking, recorded_cookbook(tables), Prompts(files), most_tokens=most_tokens)


def _kept(store: Store, what: str, now: Callable[[], Json], offline: bool, recording: Replay | None) -> Json:
    """What the run began with: its questions stay the same when cuPilot's own texts change.

    A recording that answers brings what it was made with.
    """
    if not offline:
        return store.ask(what, {}, lambda: (recording.kept(what) if recording else None) or now())
    row = store.get(what, {})
    if row is None:
        raise UnansweredError(f"the {what} of the run")
    return row.answer


def parse_models(text: str) -> dict[str, str]:
    """Specifications by role; "" for all roles that are not named."""
    specs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        role, equals, spec = part.partition("=")
        if not (equals and role.strip() in ROLES):
            role, spec = "", part
        if role.strip() in specs:
            raise UsageError(
                f"--model names the {role.strip()} twice" if role else f"--model: {part!r} is for no role",
                hint="write SPEC; ROLE=SPEC; ... with roles "
                + ", ".join(ROLES)
                + "; put a program with a ; in its arguments into a script",
            )
        specs[role.strip()] = spec.strip()
    if "" not in specs:
        raise UsageError("--model names no model for all roles", hint="write SPEC, or SPEC; ROLE=SPEC; ...")
    return specs
