"""HTML and SVG elements that escape whatever is not markup already. Self-contained pages need no more."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "circle", "col", "input", "line", "meta", "path", "rect", "polyline"})


class Markup(str):
    """Text that is safe to stand in a page as it is."""

    __slots__ = ()


Child = str | int | Iterable["Child"] | None


def el(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """`el("a", "text", href="#x", class_="y", data_tip="z")`: strings are escaped, Markup is not."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{shown}>" if name in ("br", "col", "input", "meta") else f"<{name}{shown}/>")
    return Markup(f"<{name}{shown}>{render(children)}</{name}>")


def render(child: Child) -> Markup:
    if child is None:
        return Markup("")
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return Markup(escape(str(child)))
    return Markup("".join(map(render, child)))


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
