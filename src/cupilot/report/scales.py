"""From values to positions in a drawing, and the ticks that people expect on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_MANTISSAS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1,))
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Log:
    """Logarithmic: [low, high] to [start, end]."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(max(value, self.low * 1e-3) / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round numbers inside, at most so many."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for mantissas in _MANTISSAS:
            inside = [m * 10.0**d for d in decades for m in mantissas if self.low <= m * 10.0**d <= self.high]
            if len(inside) <= most:
                return inside
        stride = math.ceil(len(inside) / most)
        return inside[::stride]


@dataclass(frozen=True)
class Linear:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        step = next(
            s * 10.0**d
            for d in range(-3, 12)
            for s in _STEPS
            if (self.high - self.low) / (s * 10.0**d) <= most
        )
        first = math.ceil(self.low / step)
        return [i * step for i in range(first, math.floor(self.high / step) + 1)]


def spread(values: Iterable[float], share: float, least: float) -> tuple[float, float]:
    """The range of positive values on a logarithmic axis with some air, at least a factor `least` wide."""
    known = list(values)
    low, high = min(known), max(known)
    air = max((high / low) ** share, 1.02)
    low, high = low / air, high * air
    lacking = math.sqrt(max(1.0, least / (high / low)))
    return low / lacking, high * lacking
