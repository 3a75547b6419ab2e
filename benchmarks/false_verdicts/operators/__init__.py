"""The operators of the benchmark, one module per family."""

from __future__ import annotations

from benchmarks.false_verdicts.operator import Operator
from benchmarks.false_verdicts.operators import (
    gathers,
    losses,
    norms,
    pointwise,
    products,
    reductions,
    scans,
    windows,
)

OPERATORS: tuple[Operator, ...] = (
    *pointwise.OPERATORS,
    *reductions.OPERATORS,
    *norms.OPERATORS,
    *scans.OPERATORS,
    *products.OPERATORS,
    *windows.OPERATORS,
    *gathers.OPERATORS,
    *losses.OPERATORS,
)
