"""Inputs in which every place of a line wins once, by so much that the others do not count.

Where elements compete (maxima, softmax, the scores of attention), a kernel that overlooks a place is right as
long as another winner is near. Finds out which dimensions compete, by gradients and not by names, and
places the winners. Does not decide how many inputs one can afford; `preparation` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from cupilot.evaluate.coverage import ENOUGH
from cupilot.evaluate.inputs import projected
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Role, TensorSpec

MARGIN = 192.0  # in single precision exp(x) overflows far below it, and exp(-x) vanishes
SILENCED = 0.25  # of the elements that mattered: beyond it, winners decide
OUTWEIGHED = 2.5  # times the others' mean influence; twice is what a function such as relu makes


@dataclass(frozen=True)
class Strengths:
    """Of one tensor: its values, and how much each counts, as `coverage.strengths` finds."""

    values: torch.Tensor
    found: torch.Tensor


@dataclass(frozen=True)
class Rivalry:
    """The elements of `tensor` along `dim` compete: the largest decides, or (sign -1) the smallest."""

    tensor: str
    dim: int
    sign: int

    @property
    def name(self) -> str:
        return f"{'winners' if self.sign > 0 else 'losers'} {self.tensor} dim {self.dim}"

    def turns(self, case: ShapeCase) -> int:
        """Inputs until every place along the dimension has won in some line; none for a single place."""
        shape = next(spec.shape for spec in case.signature.tensors if spec.name == self.tensor)
        places = shape[self.dim]
        lines = torch.Size(shape).numel() // max(1, places)
        return -(-places // lines) if places > 1 and lines else 0


def rival_inputs(
    problem: Problem, case: ShapeCase, base: Mapping[str, torch.Tensor], rivalry: Rivalry, turn: int
) -> dict[str, torch.Tensor]:
    """`base` with one winner in each line of the tensor.

    The other matrices get one in each row: in a product of both (the scores of attention) every row then
    picks one winner.
    """
    domains = problem.domains_at(case)
    inputs = dict(base)
    for spec in case.signature.tensors:
        if not spec.dtype.is_floating or spec.role is Role.BUFFER or 0 in spec.shape:
            continue
        if spec.name == rivalry.tensor:
            values = _crowned(base[spec.name], spec, rivalry.dim, turn, rivalry.sign)
        elif len(spec.shape) > 1:
            values = _crowned(base[spec.name], spec, len(spec.shape) - 1, 0, 1)
        else:
            continue
        inputs[spec.name] = projected(domains[spec.name], spec, values)
    return inputs


def _crowned(base: torch.Tensor, spec: TensorSpec, dim: int, turn: int, sign: int) -> torch.Tensor:
    values = base.float().clone()
    margin = MARGIN if spec.role is Role.INPUT else MARGIN * float(values.square().mean().sqrt())
    lines = values.movedim(dim, -1).reshape(-1, spec.shape[dim])
    each = torch.arange(len(lines))
    lines[each, (each + turn * len(lines)) % spec.shape[dim]] += sign * margin
    moved = values.movedim(dim, -1)
    return lines.reshape(moved.shape).movedim(-1, dim).contiguous()


def compete(plain: Strengths, crowned: Strengths) -> bool:
    """Whether the winners decide: they silence the others, or count for much more than the others.

    The former holds for maxima and softmax, the latter for log-softmax, whose every output holds its own
    element and the winner.
    """
    won = plain.values != crowned.values
    mattered = (plain.found > ENOUGH) & ~won
    silenced = mattered & ~(crowned.found > ENOUGH)
    if int(silenced.sum()) > SILENCED * max(1, int(mattered.sum())):
        return True
    influence = torch.nan_to_num(crowned.found / crowned.values.abs(), nan=0.0, posinf=0.0)
    if not bool(won.any()) or bool(won.all()):
        return False
    return float(influence[won].mean()) > OUTWEIGHED * float(influence[~won].mean())
