"""How alike two problems are, as far as kernels are concerned: by structure, never by name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cupilot.roofline import Zone

# Alike enough to learn from: `benchmarks/retrieval.py` prints how many relatives are, and how many strangers.
KIN = 0.55


@dataclass(frozen=True)
class Structure:
    """What a problem is, as far as kernels are concerned."""

    operators: tuple[str, ...]  # of the graph, in order
    work: tuple[str, ...]  # kinds of work in them, neighbours of one kind merged
    family: str
    zone: Zone
    intensity_ops_per_byte: float
    elements: int  # of the largest tensor
    reduced: int  # extent of the longest reduction, 1 without any


def similarity(a: Structure, b: Structure) -> float:
    """1 for the same structure. Operators and kinds of work carry most of it, then zone and extents."""
    return (
        0.35 * _cosine(Counter(a.operators), Counter(b.operators))
        + 0.25 * _cosine(_passes(a.work), _passes(b.work))
        + 0.10 * (a.family == b.family)
        + 0.10 * (a.zone == b.zone)
        + 0.10 * _near(a.intensity_ops_per_byte, b.intensity_ops_per_byte)
        + 0.05 * _near(a.elements, b.elements)
        + 0.05 * _near(a.reduced, b.reduced)
    )


def _passes(work: Sequence[str]) -> Counter[str]:
    """Kinds of work, and which follows which."""
    return Counter([*work, *(f"{a} {b}" for a, b in pairwise(work))])


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    dot = sum(a[name] * b[name] for name in a)
    norm = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return dot / norm if norm else 0.0


def _near(a: float, b: float) -> float:
    return math.exp(-abs(math.log2((a + 1e-3) / (b + 1e-3))) / 4)


def table(structures: Sequence[Structure]) -> np.ndarray:
    """How alike any two are. A covariance: sums and products of such kernels are such kernels."""
    return np.array([[similarity(a, b) for b in structures] for a in structures])


def from_json(data: Mapping[str, Any]) -> Structure:
    """The inverse of `dataclasses.asdict`."""
    return Structure(
        operators=tuple(data["operators"]),
        work=tuple(data["work"]),
        family=str(data["family"]),
        zone=Zone(data["zone"]),
        intensity_ops_per_byte=float(data["intensity_ops_per_byte"]),
        elements=int(data["elements"]),
        reduced=int(data["reduced"]),
    )
