"""The report's sections, each a function of the view. Words and tables; drawings are in `charts`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cupilot.evaluate.advice import action_words
from cupilot.evaluate.result import Evaluation, Interval
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.ending import Ending
from cupilot.kernel.file import print_kernel
from cupilot.ledger import changes
from cupilot.report.charts import credit_chart, progress, roofline
from cupilot.report.highlight import code, difference
from cupilot.report.markup import Child, Markup, el
from cupilot.report.view import RunView, words
from cupilot.strategy.strategy import Strategy
from cupilot.units import seconds

_BASELINE_WORDS = {"eager": "over eager", "compile": "over torch.compile", "library": "over the library"}


def masthead(view: RunView) -> Markup:
    """The result in one glance."""
    verdict = view.verdict
    return el(
        "header",
        el("p", "cuPilot · evolved kernel report", class_="kicker"),
        el("h1", view.problem),
        el("p", " · ".join(_where(view)), class_="sub"),
        el("p", _headline(view), class_=f"headline {view.ending.name.lower()}"),
        el("div", _tiles(view, verdict), class_="tiles") if verdict else None,
        el("p", f"The search ended: {view.outcome.reason}.", class_="note"),
    )


def _where(view: RunView) -> Iterable[str]:
    yield view.target
    others = len(view.verdict.targets) - 1 if view.verdict is not None else 0
    if others > 0:
        yield f"and {others} more shape{'s' * (others > 1)}: geometric means"
    yield view.precision
    yield f"one thread of {view.run.machine}"


def _headline(view: RunView) -> Child:
    verdict = view.verdict
    if view.ending is Ending.NOTHING_PASSED or verdict is None:
        return "No kernel passed every check: keep the reference."
    eager = verdict.speedup.get("eager")
    reached = f" The best kernel reached {eager} in the search." if eager else ""
    if view.ending is Ending.UNPROVEN:
        proof = view.outcome.proof
        why = f"The final proof is undecided: {proof.reason}." if proof else "The run has no final proof yet."
        return f"{why}{reached}"
    if view.ending is Ending.REFERENCE_WINS:
        return f"Nothing beat the reference beyond doubt: keep the reference.{reached}"
    assert eager is not None, "a champion beat the reference"
    return [el("strong", f"{eager.ratio:.2f}×"), " faster than PyTorch eager, proved from scratch"]


def _tiles(view: RunView, verdict: Evaluation) -> list[Markup]:
    tiles = [
        _tile(_BASELINE_WORDS.get(name, f"over {name}"), f"{s.ratio:.2f}×", _range(s))
        for name, s in verdict.speedup.items()
    ]
    if verdict.time_s is not None:
        tiles.append(_tile("time per call", seconds(verdict.time_s), verdict.kind.value))
    if verdict.floor_s is not None:
        left = "" if verdict.headroom is None else f"{verdict.headroom:.0%} headroom"
        zone = f"{verdict.zone} zone" if verdict.zone else ""
        tiles.append(_tile("floor", seconds(verdict.floor_s), ", ".join(filter(None, (left, zone)))))
    passed, records = len(view.passed), len(view.outcome.records)
    tiles.append(_tile("candidates", str(records), f"{passed} passed in {_duration(view.run.elapsed_s)}"))
    return tiles


def _tile(name: str, value: str, more: str) -> Markup:
    return el("div", el("span", name), el("b", value), el("small", more), class_="tile")


def search(view: RunView) -> Markup:
    note = "Each dot is a kernel that passed every check, with its interval; ticks at the foot failed one."
    return _section("Speedup over time", note, progress(view), id_="search")


def roofs(view: RunView) -> Markup:
    placement, verdict = view.run.placement, view.verdict
    note = ""
    if placement is not None:
        floor_s, attainable_s = placement.floor_s, placement.attainable_s
        if verdict is not None and verdict.floor_s and verdict.attainable_s:  # where the data really lay
            floor_s, attainable_s = verdict.floor_s, verdict.attainable_s
        note = (
            f"The problem lies in the {placement.zone} zone: {placement.binds} binds. "
            f"No right kernel can be faster than {seconds(floor_s)}; "
            f"a very good one takes {seconds(attainable_s)}. Peaks are {placement.source}."
        )
    return _section("Roofline", note, roofline(view), id_="roofline")


def lineage(view: RunView) -> Markup:
    """From the plain kernel to the champion, step by step."""
    steps = [_step(view, child, base) for child, base in _ancestry(view)]
    note = "Every step back from the best kernel to the plain one, and what each changed."
    return _section("Lineage", note, el("ol", steps, class_="lineage"), id_="lineage")


def _ancestry(view: RunView) -> list[tuple[Candidate, Candidate | None]]:
    by_slot = {c.slot: c for c in view.outcome.records}
    chain: list[tuple[Candidate, Candidate | None]] = []
    at = view.contender
    while at is not None and len(chain) < len(by_slot):
        base = by_slot.get(at.base) if at.base else None
        chain.append((at, base))
        at = base
    return chain


def _step(view: RunView, child: Candidate, base: Candidate | None) -> Markup:
    gain = ""
    if base is not None and base.passed and child.passed:
        gain = f"{child.speedup.ratio / base.speedup.ratio:.2f}× its base {base.slot}"
    if len(child.parents) == 2:
        gain += f"; its strategy comes from {' and '.join(map(str, child.parents))}"
    return el(
        "li",
        el(
            "div", el("b", str(child.slot)), el("em", child.origin), el("strong", _ratio(child)), class_="who"
        ),
        el("p", _changes(base.strategy if base else Strategy(), child.strategy), class_="changes"),
        el("p", gain, class_="note") if gain else None,
        el("p", child.strategy.rationale, class_="note") if child.strategy.rationale else None,
        class_="crown" if child is view.contender else None,
    )


def _changes(base: Strategy, child: Strategy) -> Child:
    pills = [
        el("span", f"{'+' if sign > 0 else '−'} {name}", class_="pill add" if sign > 0 else "pill del")
        for name, sign in sorted(changes(base, child).items(), key=lambda item: -item[1])
    ]
    pills += [el("span", f"+ {step}", class_="pill add") for step in child.free_steps]
    return pills or el("span", "plain", class_="pill")


def strategies(view: RunView) -> Markup:
    note = (
        "Credit is a posterior over all measured children, so that several changes at once are shared out: "
        "gain ± one standard deviation (number of trials). Where the pool had trials on similar "
        "problems, they are its prior."
    )
    seeds = None
    if view.run.seeds:
        offered = [f"{m.record.problem} ({m.similarity:.0%} alike)" for m in view.run.seeds]
        seeds = el("p", "Learned from kin in the pool: " + ", ".join(offered) + ".", class_="note")
    table = el("details", el("summary", f"All {len(view.outcome.records)} candidates"), _candidates(view))
    return _section(
        "Strategies and their credit",
        note,
        seeds,
        _uses(view),
        credit_chart(view.credit, view.tactics),
        table,
        id_="credit",
    )


def _uses(view: RunView) -> Child:
    """The best kernel's strategy in words."""
    best = view.contender
    if best is None or not best.complexity:
        return None
    uses = [(str(use), view.tactics.get(use.tactic, "")) for use in best.strategy.uses]
    uses += [("in words", step) for step in best.strategy.free_steps]
    return [el("p", f"The strategy of {best.slot}:", class_="note"), _facts(uses)]


def _candidates(view: RunView) -> Markup:
    rows = [
        [str(c.slot), c.origin, _ratio(c), _outcome(c), words(c.strategy if c.passed else c.intended)]
        for c in view.outcome.records
    ]
    return _table(["slot", "origin", "over eager", "outcome", "strategy"], rows)


def _outcome(candidate: Candidate) -> str:
    found = candidate.evaluation
    repaired = f", repaired {candidate.repairs}x" if candidate.repairs else ""
    if candidate.passed:
        time = "" if found.time_s is None else seconds(found.time_s)
        return f"{time}{repaired}"
    return f"{found.verdict} at {found.stage}: {found.reason}{repaired}"


def source(view: RunView) -> Markup:
    best = view.contender
    if best is None:
        return Markup("")
    by_slot = {c.slot: c for c in view.outcome.records}
    text = print_kernel(best.kernel)
    panes = [("kernel", code(text))]
    base = by_slot.get(best.base) if best.base else None
    if base is not None:
        panes.append((f"changes to its base {base.slot}", difference(print_kernel(base.kernel), text)))
    first = view.outcome.records[0]
    if base is not None and first.slot not in (best.slot, base.slot):
        panes.append(("changes to the plain kernel", difference(print_kernel(first.kernel), text)))
    panes.append(("reference", code(view.source)))
    details = [el("details", el("summary", name), pane, open=i == 0) for i, (name, pane) in enumerate(panes)]
    return _section("Code", f"The kernel of {best.slot}, as `cupilot eval` takes it.", details, id_="code")


def proof(view: RunView) -> Markup:
    verdict = view.verdict
    if verdict is None:
        return _section(
            "Proof", "Nothing passed, so there is nothing to prove.", _failures(view), id_="proof"
        )
    proved = view.outcome.proof is not None and view.outcome.proof.passed
    note = (
        "The kernel was evaluated again from scratch: fresh processes, fresh secret inputs, every check."
        if proved
        else "The kernel passed in the search; the final proof from scratch is missing."
    )
    return _section(
        "Proof",
        note,
        _facts([*_correctness(view, verdict), *_timing(view, verdict), *_circumstances(view)]),
        el("p", "Verify again:", class_="note"),
        el("pre", el("code", view.run.verify_command), class_="command"),
        _failures(view),
        id_="proof",
    )


def _correctness(view: RunView, verdict: Evaluation) -> Iterable[tuple[str, Child]]:
    if verdict.error is not None:
        error = verdict.error
        where = f"{error.output}[{', '.join(map(str, error.index))}]"
        yield (
            "worst error",
            f"{error.ratio:.2g} of what the bound allows, at {where} ({error.got:.9g} where "
            f"{error.expected:.9g} is exact), input '{error.input}', {error.shape}",
        )
    if verdict.inputs.live:
        yield f"{len(verdict.inputs.live)} inputs", _input_names(verdict.inputs.live)
    for name, why in verdict.inputs.dropped.items():
        yield "dropped input", f"{name}: {why}"
    for name, domain in verdict.inputs.domains.items():
        yield "domain", f"{name}: {domain}"
    if verdict.shapes:
        yield f"{len(verdict.shapes)} shapes", [el("div", view.shapes.get(s, s)) for s in verdict.shapes]
    for note in verdict.notes:
        yield "note", note


def _input_names(live: Sequence[str]) -> str:
    """Those that were aimed at elements which the others miss are many, and alike."""
    named = [name for name in live if not name.startswith("aimed")]
    aimed = len(live) - len(named)
    return ", ".join(named) + (f", and {aimed} aimed at elements that these miss" if aimed else "")


def _timing(view: RunView, verdict: Evaluation) -> Iterable[tuple[str, Child]]:
    for name, interval in verdict.speedup.items():
        yield _BASELINE_WORDS.get(name, f"over {name}"), f"{interval.ratio:.3f}× {_range(interval)}"
    for name, at in verdict.targets.items():
        eager = f"{at.speedup['eager'].ratio:.2f}× over eager, " if "eager" in at.speedup else ""
        yield f"at {view.shapes.get(name, name)}", f"{eager}{seconds(at.time_s)}, {_point(at.tuned)}"
    if verdict.tuned and not verdict.targets:
        yield "tuned to", _point(verdict.tuned)
    for name, fact in verdict.facts.items():
        yield name.replace("_", " "), fact if isinstance(fact, str) else f"{fact:.4g}"


def _point(tuned: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in tuned.items())


def _circumstances(view: RunView) -> Iterable[tuple[str, Child]]:
    run, limits = view.run, view.limits
    yield "machine", run.machine
    yield "versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())
    yield "started", run.started.strftime("%Y-%m-%d %H:%M")
    yield "command", el("code", run.command)
    yield "search", f"policy {run.policy}, author {view.author}, seed {view.settings.seed}"
    caps = {"s": limits.time_s, "evaluations": limits.evaluations, "tokens": limits.tokens}
    caps["usd"] = limits.money_usd
    yield "budget", ", ".join(f"{v:g} {name}" for name, v in caps.items() if v != float("inf")) or "none"
    spent = view.outcome.spent
    used = f"{spent.evaluations:g} evaluations in {_duration(spent.time_s)}"
    if spent.tokens:
        used += f", {spent.tokens:g} tokens, ${spent.money_usd:.2f}"
    yield "spent", used


def _failures(view: RunView) -> Child:
    lost = [*view.failed, *view.undecided]
    if not lost:
        return None
    rows = [[str(c.slot), str(c.evaluation.stage), c.evaluation.reason] for c in lost]
    heading = el("summary", f"{len(lost)} candidates did not pass")
    return el("details", heading, _table(["slot", "stage", "reason"], rows))


def advice(view: RunView) -> Markup:
    verdict = view.verdict
    items = [
        el(
            "li",
            el("b", str(each["severity"])),
            f" {each['cause']}",
            el("ul", [el("li", action_words(a)) for a in each.get("actions", ())]),
        )
        for each in (verdict.advice if verdict else ())
    ]
    if not items:
        return Markup("")
    return _section("What is left to win", "Digested from the code and the times.", el("ul", items))


def _section(title: str, note: str, *parts: Child, id_: str | None = None) -> Markup:
    return el("section", el("h2", title), el("p", note, class_="note") if note else None, *parts, id_=id_)


def _facts(rows: Iterable[tuple[str, Child]]) -> Markup:
    return el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in rows])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    top = el("tr", [el("th", name) for name in head])
    body = [el("tr", [el("td", cell) for cell in row]) for row in rows]
    return el("div", el("table", el("thead", top), el("tbody", body)), class_="scroll")


def _ratio(candidate: Candidate) -> str:
    return f"{candidate.speedup.ratio:.2f}×" if candidate.passed else "–"


def _range(interval: Interval) -> str:
    return f"[{interval.low:.2f}, {interval.high:.2f}]"


def _duration(elapsed_s: float) -> str:
    return f"{elapsed_s:.0f} s" if elapsed_s < 120 else f"{elapsed_s / 60:.1f} min"
