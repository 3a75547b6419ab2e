"""The report's drawings as inline SVG: speedup over time, the roofline, credit. No library."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cupilot.evolve.candidate import Candidate, Slot
from cupilot.ledger import Credit
from cupilot.report.markup import Markup, el
from cupilot.report.scales import Linear, Log, spread
from cupilot.report.view import RunView, words
from cupilot.roofline import Placement
from cupilot.units import scaled, seconds

_WIDTH, _HEIGHT = 760.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 82.0, 16.0, 16.0, 46.0
_DOT, _CROWN = 4.5, 7.0
_CREDIT_ROW = 26.0


@dataclass(frozen=True)
class Step:
    """From this moment on `champion` was the one to beat."""

    at: float
    champion: Candidate


def progress(view: RunView) -> Markup:
    """Every candidate where it ended, and the champion of each moment."""
    by_time = len(view.run.finished_s) >= len(view.outcome.records) > 0
    at = _moments(view, by_time)
    passed = view.passed
    if not passed:
        return el("p", "No candidate passed, so there is nothing to draw.", class_="note")
    low, high = spread([1.0, *(c.speedup.low for c in passed), *(c.speedup.high for c in passed)], 0.08, 1.5)
    x = Linear(0.0, max([1.0, *at.values()]) * 1.02, _LEFT, _WIDTH - _RIGHT)
    y = Log(low, high, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        *_grid_y(y, lambda v: f"{v:g}x"),
        *_grid_x(x, _clock if by_time else (lambda v: f"{v:g}")),
        _axis_title("time since the start" if by_time else "candidate", "speedup over eager"),
        _level(y(1.0), "eager"),
        *(_failed_tick(c, x(at[c.slot])) for c in view.outcome.records if not c.passed),
        _staircase(_steps(view, at), x, y),
        *(_candidate_dot(c, x(at[c.slot]), y, c is view.contender) for c in passed),
    ]
    return _svg("Speedup of every candidate over eager", _HEIGHT, parts)


def _moments(view: RunView, by_time: bool) -> Mapping[Slot, float]:
    if by_time:
        return view.run.finished_s
    return {c.slot: float(i) for i, c in enumerate(view.outcome.records, 1)}


def _steps(view: RunView, at: Mapping[Slot, float]) -> list[Step]:
    """The fastest candidate so far: what the search knew, before races confirmed it."""
    steps: list[Step] = []
    for candidate in sorted(view.passed, key=lambda c: at[c.slot]):
        if not steps or candidate.speedup.ratio > steps[-1].champion.speedup.ratio:
            steps.append(Step(at[candidate.slot], candidate))
    return steps


def _staircase(steps: Sequence[Step], x: Linear, y: Log) -> Markup:
    points = [(x(steps[0].at), y(steps[0].champion.speedup.ratio))]
    for step in steps[1:]:
        points += [(x(step.at), points[-1][1]), (x(step.at), y(step.champion.speedup.ratio))]
    points.append((x.end, points[-1][1]))
    return el("polyline", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points), class_="stairs")


def _candidate_dot(candidate: Candidate, at: float, y: Log, is_champion: bool) -> Markup:
    speedup = candidate.speedup
    tip = f"{candidate.slot} · {speedup} · {words(candidate.strategy)}"
    whisker = el("line", x1=at, x2=at, y1=y(speedup.low), y2=y(speedup.high), class_="whisker")
    dot = el("circle", cx=at, cy=y(speedup.ratio), r=_CROWN if is_champion else _DOT)
    return el("g", el("title", tip), whisker, dot, class_="champion" if is_champion else "dot")


def _failed_tick(candidate: Candidate, at: float) -> Markup:
    foot = _HEIGHT - _BOTTOM
    tip = f"{candidate.slot} · {candidate.evaluation.verdict} at {candidate.evaluation.stage}"
    line = el("line", x1=at, x2=at, y1=foot, y2=foot - 10)
    return el("g", el("title", tip), line, class_="tick-failed")


def roofline(view: RunView) -> Markup:
    """The device's roofs, the problem's place under them, and what each candidate reached."""
    placement = view.run.placement
    if placement is None:
        return el("p", "The problem was not placed on a roofline.", class_="note")
    if placement.intensity_ops_per_byte <= 0:
        return el("p", f"The problem only moves data; {placement.level} is its limit.", class_="note")
    passed = [c for c in view.passed if c.evaluation.time_s]
    rates = [_rate(placement, c.evaluation.time_s or 1.0) for c in passed]
    top = max(placement.matrix_ops_per_s, placement.core_ops_per_s)
    ridges = [placement.core_ridge_ops_per_byte, placement.matrix_ridge_ops_per_byte]
    left, right = spread([placement.intensity_ops_per_byte, *ridges], 0.25, 100)
    low, high = spread([top, left * placement.bytes_per_s, *rates, _reachable(placement)], 0.08, 100)
    x = Log(left, right, _LEFT, _WIDTH - _RIGHT)
    y = Log(low, high, _HEIGHT - _BOTTOM, _TOP)
    at = x(placement.intensity_ops_per_byte)
    parts = [
        *_grid_y(y, lambda v: scaled(v, "op/s")),
        *_grid_x(x, lambda v: f"{v:g}"),
        _axis_title("operations per byte that must be moved", ""),
        *_roofs(placement, x, y, left, right),
        el("line", x1=at, x2=at, y1=y(_reachable(placement)), y2=_HEIGHT - _BOTTOM, class_="problem"),
        *_spread_out(passed, rates, at, y, view.contender),
        _attainable(at, y(_reachable(placement)), placement),
    ]
    return _svg("Candidates under the roofline", _HEIGHT, parts)


def _attainable(at: float, y: float, placement: Placement) -> Markup:
    tip = f"attainable: {seconds(placement.attainable_s)}, limited by {placement.binds}"
    return el("g", el("title", tip), el("circle", cx=at, cy=y, r=_DOT), class_="attainable")


def _reachable(placement: Placement) -> float:
    return min(placement.intensity_ops_per_byte * placement.bytes_per_s, placement.matrix_ops_per_s)


def _rate(placement: Placement, time_s: float) -> float:
    """Minimal operations per second: at the attainable time the roof itself is reached."""
    return _reachable(placement) * placement.attainable_s / time_s


def _roofs(placement: Placement, x: Log, y: Log, left: float, right: float) -> list[Markup]:
    top = max(placement.matrix_ops_per_s, placement.core_ops_per_s)
    ridge = top / placement.bytes_per_s
    here = min(placement.intensity_ops_per_byte, ridge)
    aside = math.sqrt(here * (ridge if here < ridge / 10 else left))  # on the slope, away from the candidates
    roofs = [
        _segment(x, y, (left, left * placement.bytes_per_s), (ridge, top), "roof"),
        _segment(x, y, (ridge, top), (right, top), "roof"),
        _label(
            x(aside) + 10,
            y(aside * placement.bytes_per_s) + 14,
            f"{placement.level} {scaled(placement.bytes_per_s, 'B/s')}",
        ),
        _label(x.end - 4, y(top) - 7, f"peak {scaled(top, 'op/s')}", "end"),
    ]
    if placement.matrix_ops_per_s > placement.core_ops_per_s * 1.01:
        core = placement.core_ops_per_s
        start = placement.core_ridge_ops_per_byte
        roofs.append(_segment(x, y, (start, core), (right, core), "roof second"))
        roofs.append(_label(x.end - 4, y(core) + 14, f"plain cores {scaled(core, 'op/s')}", "end"))
    return roofs


def _spread_out(
    passed: Sequence[Candidate], rates: Sequence[float], at: float, y: Log, champion: Candidate | None
) -> list[Markup]:
    """All candidates share the problem's intensity: they stand side by side, the champion on the line."""
    dots = []
    for i, (candidate, rate) in enumerate(zip(passed, rates, strict=True)):
        is_champion = candidate is champion
        shift = 0.0 if is_champion else (6 + 7 * (i % 4)) * (1 if i % 2 else -1)
        time = seconds(candidate.evaluation.time_s or 0.0)
        tip = f"{candidate.slot} · {scaled(rate, 'op/s')} · {time} · {words(candidate.strategy)}"
        dot = el("circle", cx=at + shift, cy=y(rate), r=_CROWN if is_champion else _DOT)
        dots.append(el("g", el("title", tip), dot, class_="champion" if is_champion else "dot"))
    return dots


def credit_chart(credit: Mapping[str, Credit], tactics: Mapping[str, str]) -> Markup:
    """What each tactic was worth, best first, with one standard deviation either way."""
    rows = sorted(credit.items(), key=lambda item: -item[1].log_gain)
    if not rows:
        return el("p", "Nothing was measured often enough to share out credit.", class_="note")
    reach = max(0.05, *(abs(c.log_gain) + c.sd for _, c in rows))
    height = _CREDIT_ROW * len(rows) + 30
    x = Linear(-reach, reach, 290.0, _WIDTH - 165)
    parts = [el("line", x1=x(0.0), x2=x(0.0), y1=4, y2=height - 26, class_="grid strong")]
    for i, (name, found) in enumerate(rows):
        mid = _CREDIT_ROW * (i + 0.5) + 4
        start, end = sorted((x(0.0), x(found.log_gain)))
        kind = "gain" if found.log_gain >= 0 else "loss"
        whisker = {"x1": x(found.log_gain - found.sd), "x2": x(found.log_gain + found.sd)}
        parts += [
            el("text", name, x=282.0, y=mid + 4, text_anchor="end", class_="name"),
            el(
                "g",
                el("title", f"{found}, {found.failures} failed. {tactics.get(name, '')}"),
                el("rect", x=start, y=mid - 7, width=max(end - start, 1.0), height=14, rx=2, class_=kind),
                el("line", **whisker, y1=mid, y2=mid, class_="whisker"),
            ),
            el("text", str(found), x=_WIDTH - 4, y=mid + 4, text_anchor="end", class_="value"),
        ]
    parts.append(_label(x(0.0), height - 8, "no effect", "middle"))
    return _svg("Credit of the tactics", height, parts)


def _svg(title: str, height: float, parts: Sequence[Markup]) -> Markup:
    box = f"0 0 {_WIDTH:g} {height:g}"
    return el("div", el("svg", el("title", title), parts, viewBox=box, role="img"), class_="chart")


def _grid_y(y: Log, words_of: Callable[[float], str]) -> list[Markup]:
    parts = []
    for value in y.ticks(7):
        parts.append(el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(value), y2=y(value), class_="grid"))
        parts.append(_label(_LEFT - 8, y(value) + 4, words_of(value), "end"))
    return parts


def _grid_x(x: Linear | Log, words_of: Callable[[float], str]) -> list[Markup]:
    foot = _HEIGHT - _BOTTOM
    parts = [el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=foot, y2=foot, class_="grid strong")]
    return parts + [_label(x(value), foot + 17, words_of(value), "middle") for value in x.ticks(9)]


def _axis_title(below: str, beside: str) -> Markup:
    foot = _label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, below, "middle")
    return Markup(foot + (_label(_LEFT + 6, _TOP + 8, beside) if beside else ""))


def _label(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return el("text", text, x=x, y=y, text_anchor=anchor, class_="label")


def _level(y: float, name: str) -> Markup:
    line = el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="level")
    return Markup(line + _label(_WIDTH - _RIGHT - 4, y + 14, name, "end"))


def _segment(x: Log, y: Log, start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    return el("line", x1=x(start[0]), y1=y(start[1]), x2=x(end[0]), y2=y(end[1]), class_=kind)


def _clock(elapsed_s: float) -> str:
    return f"{elapsed_s:.0f} s" if elapsed_s < 120 else f"{elapsed_s / 60:g} min"
