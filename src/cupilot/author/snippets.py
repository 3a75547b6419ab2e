"""The C++ that kernels are put together from: text files beside this module, pasted as far as needed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources

_NEEDS: dict[str, tuple[str, ...]] = {
    "load": ("vector",),
    "load_mask": ("vector",),
    "load_strided": ("vector",),
    "transpose": ("vector",),
    "store": ("vector",),
    "store_mask": ("vector",),
    "store_strided": ("vector",),
    "stream": ("store",),
    "padded": ("vector",),
    "part": ("vector",),
    "tile": ("vector",),
    "scan": ("vector",),
    "doubles": ("vector",),
    "span": ("vector",),
    "horizontal": ("vector",),
    "place": ("vector", "extreme"),
    "highest": ("vector", "extremes", "horizontal"),
    "each": ("vector",),
    "each2": ("vector",),
    "root": ("vector",),
    "bounds": ("vector",),
    "exp": ("bounds",),
    "expm1": ("bounds",),
    "erf": ("bounds",),
    "log1p": ("log", "magnitude"),
    "tanh": ("expm1", "magnitude"),
}
_ORDER = (
    "scalar", "vector", "tile", "part", "load", "load_mask", "load_strided", "transpose", "store",
    "store_mask", "store_strided", "stream", "widened", "padded", "span", "scan", "doubles",
    "counted", "extremes",
    "horizontal", "highest", "extreme",
    "place", "magnitude", "root", "each", "each2", "reciprocal", "bounds", "exp", "log", "log1p",
    "expm1", "tanh", "erf", "moments", "peak",
)  # fmt: skip
_COPIES = {"load", "load_mask", "store", "root", "scan"}


@cache
def _text(name: str) -> str:
    return (resources.files("cupilot.author") / "cpp" / f"{name}.h").read_text(encoding="utf-8").strip()


def preamble(wanted: Iterable[str], *, double: bool, vector: bool) -> str:
    """Includes, the element type and the snippets with all they need, in order."""
    needed = set(wanted)
    while more := {n for name in needed for n in _NEEDS.get(name, ())} - needed:
        needed |= more
    if "vector" in needed and not vector:
        needed = needed - {"vector"} | {"scalar"}
    lines = ["#include <cmath>"]
    if needed & _COPIES and vector:
        lines.append("#include <cstring>")
    real, whole = ("double", "long") if double else ("float", "int")
    lines += ["", f"typedef {real} real;"]
    if needed & {"scalar", "vector"}:
        lines.append(f"typedef {whole} whole;")
    return (
        "\n".join([*lines, "", "\n\n".join(_text(name) for name in _ORDER if name in needed)]).rstrip() + "\n"
    )
