"""The report: one self-contained HTML file, readable on a phone and in the dark, that loads nothing."""

from __future__ import annotations

from importlib.resources import files

from cupilot.report import sections
from cupilot.report.markup import Markup, el
from cupilot.report.view import RunView

_PARTS = (
    sections.masthead,
    sections.search,
    sections.roofs,
    sections.lineage,
    sections.strategies,
    sections.source,
    sections.proof,
    sections.advice,
)


def page(view: RunView) -> str:
    style = Markup(files("cupilot.report").joinpath("assets/style.css").read_text(encoding="utf-8"))
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{view.problem} – cuPilot"),
        el("style", style),
    )
    body = el("body", el("main", [part(view) for part in _PARTS]))
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"
