"""How alike problems are: a number between none and all, and one that credit may be shared by."""

from __future__ import annotations

import random
from dataclasses import asdict, replace

import numpy as np
import pytest

from cupilot.kinship import Structure, from_json, similarity, table
from cupilot.roofline import Zone

SOFTMAX = Structure(("softmax",), ("reduction", "functions"), "rows", Zone.MEMORY, 1.5, 1 << 23, 16384)


def drawn(rng: random.Random) -> Structure:
    return Structure(
        tuple(rng.choices(("add", "exp", "sum", "mm"), k=rng.randint(1, 4))),
        tuple(rng.choices(("functions", "reduction", "product"), k=rng.randint(1, 3))),
        rng.choice(("rows", "product")),
        rng.choice(list(Zone)),
        rng.uniform(0.1, 100),
        rng.randint(1, 1 << 24),
        rng.randint(1, 1 << 14),
    )


def test_the_same_is_wholly_alike_and_others_less_both_ways() -> None:
    other = replace(SOFTMAX, operators=("exp", "sum"), zone=Zone.COMPUTE)
    assert similarity(SOFTMAX, SOFTMAX) == pytest.approx(1)
    assert similarity(SOFTMAX, other) == pytest.approx(similarity(other, SOFTMAX))
    assert 0 < similarity(SOFTMAX, other) < 0.8


def test_a_table_of_likenesses_is_a_covariance() -> None:
    rng = random.Random(3)
    found = table([drawn(rng) for _ in range(40)])
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_structures_travel() -> None:
    assert from_json(asdict(SOFTMAX)) == SOFTMAX
