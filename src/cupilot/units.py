"""Numbers as people write them: on the terminal, in reports, in exports."""

from __future__ import annotations


def seconds(value: float) -> str:
    """0.00321 -> "3.21 ms"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def scaled(value: float, unit: str) -> str:
    """1.5e12, "op/s" -> "1.5 Top/s"."""
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
