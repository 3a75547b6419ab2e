"""The facts of a brief as the words of a prompt. Raw counters never enter: only digests of them do.

Code and figures shown together are always of the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cupilot.brief import Brief, Complaint, Parent, Refuted
from cupilot.kernel.file import KernelFile, print_kernel
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Source
from cupilot.strategy.guidance import relieved, weights
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Tactic
from cupilot.units import scaled, seconds

_LOG_CHARS = 3000
_FENCES = {"cpp": "cpp", "cu": "cuda"}


def problem(subject: Problem) -> str:
    return "\n\n".join((f"# The problem\n\n```python\n{subject.source.strip()}\n```", signature(subject)))


def signature(subject: Problem) -> str:
    """What a kernel file can name, at the shapes that are timed."""
    target = subject.target
    lines = [f"- {spec} ({spec.role})" for spec in (*target.tensors, *target.outputs)]
    lines += [f"- {name} = {value} (number)" for name, value in target.scalars.items()]
    words = [f"What a kernel is handed, at the shapes that are timed (precision {subject.precision}):"]
    words += ["\n".join(lines)]
    if len(subject.targets) > 1:
        shapes = "; ".join(
            ", ".join(str(tensor) for tensor in case.signature.tensors if tensor.role == "input")
            for case in subject.targets
        )
        words.append(f"The score is the geometric mean over these shapes: {shapes}.")
    if subject.fixed_shape:
        words.append("The shapes are fixed: no others will be tried.")
    return "\n\n".join(words)


def guidance(brief: Brief, base: Parent | None = None) -> str:
    """The roofline's digest; nothing where guidance is switched off."""
    place = brief.placement
    if place is None:
        return ""
    kind = "measured" if place.source is Source.MEASURED else "from the data sheet"
    lines = [
        f"- zone: {place.zone}-bound; what binds is {place.binds}",
        f"- intensity {place.intensity_ops_per_byte:.3g} operations per byte; {_ridges(place)}",
        f"- attainable by a very good kernel on one thread: {seconds(place.attainable_s)} "
        f"({scaled(place.bytes_per_s, 'B/s')}, {scaled(place.matrix_ops_per_s, 'op/s')}; peaks {kind})",
    ]
    if base is not None and base.time_s is not None:
        left = place.headroom(base.time_s)
        lines.append(
            f"- the fastest kernel here takes {seconds(base.time_s)}: {left:.0%} of that is headroom"
        )
    moved = ", ".join(sorted(relieved(place.zone)))
    lines.append(f"- only what moves one of these can pay here: {moved}")
    return "# Where the time goes\n\n" + "\n".join(lines)


def _ridges(place: Placement) -> str:
    core, matrix = place.core_ridge_ops_per_byte, place.matrix_ridge_ops_per_byte
    return f"ridge at {core:.3g}" + (f", with matrix units at {matrix:.3g}" if matrix != core else "")


def tactics(brief: Brief) -> str:
    """The cookbook, what promises most first, with what each tactic has been worth so far."""
    worth = weights(brief.cookbook, brief.placement, brief.credit)
    ranked = sorted(brief.cookbook, key=lambda tactic: -worth[tactic.id])
    if not ranked:
        return "# The cookbook\n\nIt is empty here: describe the strategy in steps."
    return "# The cookbook, most promising first\n\n" + "\n".join(_tactic(t, brief) for t in ranked)


def _tactic(tactic: Tactic, brief: Brief) -> str:
    details = [f"moves {tactic.moves}"]
    details += [f"{p.name}: {' | '.join(map(str, p.values))}" for p in tactic.parameters]
    if tactic.requires:
        details.append(f"requires {', '.join(sorted(tactic.requires))}")
    if tactic.conflicts:
        details.append(f"excludes {', '.join(sorted(tactic.conflicts))}")
    earned = brief.credit.get(tactic.id)
    if earned is not None:
        failed = f", {earned.failures} failed" if earned.failures else ""
        details.append(f"measured so far {earned}{failed}")
    return f"- `{tactic.id}` ({'; '.join(details)}): {tactic.does}"


def hints(strategy: Strategy, brief: Brief) -> str:
    """What the tactics of this strategy mean, and how they are written in this language."""
    lines = []
    for use in strategy.uses:
        if use.tactic in brief.cookbook:
            tactic = brief.cookbook[use.tactic]
            lines.append(f"- `{tactic.id}`: {tactic.does} {tactic.hints.get(brief.language, '')}".rstrip())
    return "Its tactics mean:\n\n" + "\n".join(lines) if lines else ""


def experience(brief: Brief) -> str:
    """What similar problems were solved with, and what failed here."""
    parts = []
    if brief.similar:
        parts.append(
            "# What made similar problems fast\n\n" + "\n\n".join(map(strategy_words, brief.similar))
        )
    if brief.refuted:
        parts.append("# What was tried here and failed\n\n" + _refuted(brief.refuted))
    return "\n\n".join(parts)


def _refuted(refuted: Iterable[Refuted]) -> str:
    return "\n".join(f"- {_one_line(item.strategy)}: {item.reason}" for item in refuted)


def _one_line(strategy: Strategy) -> str:
    return "; ".join((*map(str, strategy.uses), *strategy.free_steps)) or "the plain kernel"


def strategy_words(strategy: Strategy) -> str:
    lines = [f"- tactic `{use}`" for use in strategy.uses]
    lines += [f"- step: {step}" for step in strategy.free_steps]
    if not lines:
        lines = ["- nothing yet: the plain kernel"]
    if strategy.rationale:
        lines.append(f"- because: {strategy.rationale}")
    return "\n".join(lines)


def parent(item: Parent, brief: Brief, *, code: bool = True) -> str:
    """A strategy, its kernel, and the figures of exactly that kernel."""
    parts = [strategy_words(item.strategy), _figures(item, brief)]
    if code:
        parts.append(kernel(item.kernel, brief.language))
    return "\n\n".join(parts)


def base(item: Parent, brief: Brief) -> str:
    return "\n\n".join((_figures(item, brief), kernel(item.kernel, brief.language)))


def _figures(item: Parent, brief: Brief) -> str:
    """Times; what costs them only with the roofline, which limits every gain and chooses what is named."""
    took = f", {seconds(item.time_s)} a call" if item.time_s is not None else ""
    lines = [f"- {item.speedup:.2f} times as fast as the framework{took}"]
    for advice in item.advice if brief.placement is not None else ():
        lines.append(f"- {advice['severity']}: {advice['cause']}")
        lines += [f"  - {_action(action, brief)}" for action in advice.get("actions", ())]
    return "\n".join(lines)


def _action(action: Mapping[str, Any], brief: Brief) -> str:
    """By its tactic where that is offered, else in words alone."""
    gain, tactic = f"up to {action['expected_gain']:.2g} times as fast", action["tactic"]
    shown = f"`{tactic}`, {gain}" if tactic in brief.cookbook else gain
    return f"{shown}: {action['why']}"


def kernel(file: KernelFile, language: str) -> str:
    return f"```{_FENCES.get(language, '')}\n{print_kernel(file)}```"


def complaint(item: Complaint) -> str:
    log = item.log.strip()
    if len(log) > _LOG_CHARS:
        log = f"{log[: _LOG_CHARS // 2]}\n...\n{log[-_LOG_CHARS // 2 :]}"
    shown = f"\n\n```\n{log}\n```" if log else ""
    return f'At the stage "{item.stage}": {item.reason}{shown}'
