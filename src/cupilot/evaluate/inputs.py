"""Input distributions: each exposes what others hide. Deterministic from a seed, projected into domains.

Weights are drawn from every distribution too, at the scale the module's constructor gives them. Does not
decide which distributions prove something; `suite` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from cupilot.evaluate import patterns
from cupilot.problem.cases import ShapeCase
from cupilot.problem.domains import Domain
from cupilot.problem.dtypes import torch_dtype
from cupilot.problem.problem import Problem
from cupilot.types import Role, TensorSpec

FIRST_SELECTIONS = 4
MOST_SELECTIONS = 10
MOST_LOW_BIT_TENSORS = 4
MOST_MASKED = 8
_ALONG = ("selection", "masked")  # patterns of lines along one dimension
_BESIDE = {  # what the other tensors hold where a pattern singles one out
    "selection": "full mantissa",
    "low bits in": "coarse",
    "masked": "coarse",
    "opposite": "coarse",
    "faint": "zero",
}


@dataclass(frozen=True)
class Distribution:
    """One way to fill all tensors of a problem; `tensor` and `dim` single one out where the pattern does."""

    pattern: str
    tensor: str = ""
    dim: int = 0

    @property
    def name(self) -> str:
        if not self.tensor:
            return self.pattern
        return f"{self.pattern} {self.tensor}" + (f" dim {self.dim}" if self.pattern in _ALONG else "")

    @property
    def is_coherent(self) -> bool:
        """Rounding errors may all push one way: the bound must not count on their cancelling."""
        return self.pattern in ("constant", "low bits", "low bits in", "position-coded", "offset")

    @property
    def places_nonfinite(self) -> bool:
        """NaN or infinities that have to reach the result."""
        return self.pattern in ("nan", "infinite")

    @property
    def is_finite(self) -> bool:
        return not self.places_nonfinite and self.pattern != "masked"

    @property
    def needs_room(self) -> bool:
        """Shows more in long lines than in those of the first shape."""
        return self.pattern in ("masked", "faint")

    @property
    def exposes(self) -> str:
        return patterns.EXPOSES[self.pattern]


def distributions(problem: Problem) -> tuple[Distribution, ...]:
    """All of them, the most incisive first."""
    floating = [spec for spec in problem.target.tensors if spec.dtype.is_floating]
    largest = sorted(floating, key=lambda spec: -spec.numel)[:MOST_LOW_BIT_TENSORS]
    lines = [(s.name, dim) for s in largest for dim in reversed(range(len(s.shape))) if s.shape[dim] > 1]
    selections = [Distribution("selection", *line) for line in lines]
    masked = [Distribution("masked", *line) for line in lines[:MOST_MASKED]]
    plain = [Distribution(pattern) for pattern in patterns.PATTERNS]
    low_bits = [Distribution("low bits in", spec.name) for spec in largest] if len(largest) > 1 else []
    faint = [Distribution("faint", spec.name) for spec in largest if spec.role is Role.INPUT]
    first, last = selections[:FIRST_SELECTIONS], selections[FIRST_SELECTIONS:MOST_SELECTIONS]
    opposite = [Distribution("opposite", spec.name) for spec in largest] if len(largest) > 1 else []
    return (*plain[:5], *first, *low_bits, *plain[5:], *faint, *opposite, *masked, *last)


def draw_inputs(
    problem: Problem,
    case: ShapeCase,
    distribution: Distribution,
    seed: int,
    own: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """All tensors of `case`, in their storage types. `own` spares a draw where only its scale is needed."""
    if own is None or distribution.pattern == "own":
        own = problem.draw_values(seed % 2**31, case)
    domains = problem.domains_at(case)
    return {
        spec.name: _draw(domains[spec.name], spec, own[spec.name], distribution, seed)
        for spec in case.signature.tensors
    }


def _draw(
    domain: Domain, spec: TensorSpec, own: torch.Tensor, distribution: Distribution, seed: int
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(derived_seed(seed, distribution.name, spec.name))
    if distribution.pattern == "own" and own.shape == torch.Size(spec.shape) and spec.dtype.is_floating:
        return own.contiguous()  # indices may be out of range here: a table can be shorter than at the target
    resampled = _resampled(own, spec.shape, generator)
    if not spec.dtype.is_floating or distribution.pattern == "own":
        return projected(domain, spec, resampled)
    pattern = distribution.pattern
    if distribution.tensor and distribution.tensor != spec.name:
        pattern = _BESIDE[distribution.pattern]
        if pattern == "zero" and spec.role is not Role.INPUT:
            pattern = "coarse"
    values = patterns.make(pattern, spec.shape, distribution.dim, generator)
    if spec.role is not Role.INPUT:
        values = values * _scale(own)
        if distribution.places_nonfinite:
            values = torch.nan_to_num(values, nan=1.0, posinf=1.0, neginf=-1.0)
    return projected(domain, spec, values)


def projected(domain: Domain, spec: TensorSpec, values: torch.Tensor) -> torch.Tensor:
    """The nearest tensor in the domain, as it is stored."""
    return domain.project(values).to(torch_dtype(spec.dtype)).contiguous()


def _resampled(own: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    if own.shape == torch.Size(shape):
        return own
    count = torch.Size(shape).numel()
    if own.numel() == 0 or count == 0:
        return torch.zeros(shape, dtype=own.dtype)
    return own.reshape(-1)[torch.randint(own.numel(), (count,), generator=generator)].reshape(shape)


def _scale(own: torch.Tensor) -> float:
    """The weights' size as a power of two, which leaves every mantissa as it is."""
    size = float(own.double().square().mean().sqrt()) if own.numel() else 0.0
    return float(2.0 ** round(torch.log2(torch.tensor(size)).item())) if 0 < size < float("inf") else 1.0


def derived_seed(*parts: object) -> int:
    """A seed from other seeds and names."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")
