"""Finds tensors that change nothing: a bias before a normalisation, an input whose effect cancels.

Asks the reference itself, at a small shape: outputs that stay the same when a tensor is replaced do not
depend on it. Does not look at single elements.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from cupilot.problem.domains import Domain
from cupilot.problem.program import Program
from cupilot.types import Signature

_TRIALS = 2
_MOST_TENSORS = 24  # each costs a few runs; beyond it only the inputs are asked
_SAME = 1e-9  # of the largest output, in double precision


def without_influence(program: Program, domains: Mapping[str, Domain], at: Signature) -> frozenset[str]:
    """Names of the tensors that no output depends on."""
    shapes = {spec.name: spec.shape for spec in at.tensors}
    asked = list(shapes) if len(shapes) <= _MOST_TENSORS else [spec.name for spec in program.inputs]
    idle = set(asked)
    for trial in range(_TRIALS):
        generator = torch.Generator().manual_seed(trial)

        def fresh(name: str, source: torch.Generator = generator) -> torch.Tensor:
            noise = torch.randn(shapes[name], generator=source, dtype=torch.float64)
            return domains[name].at(shapes).project(noise)

        base = {name: fresh(name) for name in shapes}
        before = program.reference(base, torch.float64)
        for name in sorted(idle):
            after = program.reference({**base, name: fresh(name)}, torch.float64)
            if not all(_agree(one, two) for one, two in zip(before, after, strict=True)):
                idle.discard(name)
    return frozenset(idle)


def _agree(one: torch.Tensor, two: torch.Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, two)
    largest = torch.nan_to_num(one, posinf=0.0, neginf=0.0).abs().max() if one.numel() else 0.0
    return torch.allclose(one, two, rtol=0.0, atol=float(largest) * _SAME, equal_nan=True)
