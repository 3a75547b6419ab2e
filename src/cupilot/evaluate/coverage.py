"""Which elements of the inputs have been put to the test: one backward pass through the reference tells.

An element is exercised by an input when changing it by its own size would move some output by more than the
error allowed there. Where draws leave elements out (the losers of a maximum, one term in many),
`aimed_inputs` puts them deliberately where they count. Does not run candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from cupilot.evaluate.inputs import projected
from cupilot.evaluate.reference import Reference
from cupilot.evaluate.suite import Coverage
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Role

Masks = dict[str, torch.Tensor]
ENOUGH = (
    4.0  # exercised: the weighted influence, a sum with random signs, exceeds the allowed error so many times
)
AIMS = ("winner", "alone", "loser")


@dataclass
class Tally:
    """Element by element, over all inputs of one shape: exercised, and of any influence at all."""

    exercised: Masks = field(default_factory=dict)
    influential: Masks = field(default_factory=dict)

    def add(self, strength: Masks) -> int:
        """Counts one input's strengths in; returns how many elements are exercised for the first time."""
        fresh = 0
        for name, values in strength.items():
            seen = self.exercised.setdefault(name, torch.zeros(values.shape, dtype=torch.bool))
            felt = self.influential.setdefault(name, torch.zeros(values.shape, dtype=torch.bool))
            now = values > ENOUGH
            fresh += int((now & ~seen).sum())
            seen |= now
            felt |= values > 0
        return fresh

    def missing(self) -> int:
        return sum(int((~seen).sum()) for seen in self.exercised.values())

    def counts(self, *, exhausted: bool) -> Coverage:
        """What was not seen to matter counts as unimportant only when everything was tried."""
        exercised = sum(int(seen.sum()) for seen in self.exercised.values())
        matter = sum(int((s | self.influential[n]).sum()) for n, s in self.exercised.items())
        return Coverage(exercised, matter if exhausted else exercised + self.missing())


def strengths(
    problem: Problem, case: ShapeCase, tensors: Mapping[str, torch.Tensor], reference: Reference
) -> Masks:
    """Each element's influence times its size, in units of the error allowed; empty without gradients."""
    roles = {spec.name: spec.role for spec in case.signature.tensors}
    leaves = {
        name: tensor.double().requires_grad_()
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and roles[name] is not Role.BUFFER
    }
    found = _winners(leaves, reference)
    inputs = {name: leaves[name] * 1.0 if name in leaves else _wide(t) for name, t in tensors.items()}
    try:
        loss = _loss(problem.differentiable(inputs), reference)
        if loss is None:
            return found
        gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    except RuntimeError:  # an operator without derivative, or a module that overwrites what backward needs
        return found
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        if gradient is not None:
            strength = torch.nan_to_num((gradient * leaf.detach()).abs(), nan=0.0)
            found[name] = torch.maximum(found[name], strength) if name in found else strength
    return found


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor.clone()


def _loss(outputs: tuple[torch.Tensor, ...], reference: Reference) -> torch.Tensor | None:
    """The outputs, weighted with random signs over the allowed errors, as one number."""
    generator = torch.Generator().manual_seed(0)
    total: torch.Tensor | None = None
    for output, expected in zip(outputs, reference.outputs, strict=True):
        if expected.allowed is None or not output.requires_grad:
            continue
        weight = 1.0 / torch.from_numpy(np.asarray(expected.allowed, dtype=np.float64))
        weight = weight * (torch.randint(0, 2, output.shape, generator=generator) * 2.0 - 1.0)
        part = torch.where(torch.isfinite(output), output * weight, 0.0).sum()
        total = part if total is None else total + part
    return total


def _winners(leaves: Mapping[str, torch.Tensor], reference: Reference) -> Masks:
    """Indices have no gradient: the elements of an input that they select are exercised."""
    found: Masks = {}
    for expected in reference.outputs:
        choice = expected.choice
        if choice is None or choice.allowed is not None:
            continue
        for name, leaf in leaves.items():
            dim = choice.dim % max(1, leaf.dim())
            moved = leaf.detach().movedim(dim, -1) if leaf.dim() else leaf.detach().reshape(1)
            if moved.numel() != choice.values.size or not np.array_equal(
                moved.reshape(choice.values.shape).numpy(), choice.values
            ):
                continue
            best = np.moveaxis(expected.value.reshape(choice.shape), choice.dim, -1)
            mask = torch.zeros(choice.values.shape, dtype=torch.float64)
            mask.scatter_(
                1, torch.from_numpy(best.reshape(choice.values.shape[0], -1).astype(np.int64)), 2 * ENOUGH
            )
            found[name] = mask.reshape(moved.shape).movedim(-1, dim).reshape(leaf.shape)
    return found


def aimed_inputs(
    problem: Problem,
    case: ShapeCase,
    base: Mapping[str, torch.Tensor],
    tally: Tally,
    aim: str,
    count: int,
    seed: int,
) -> dict[str, torch.Tensor]:
    """`base` with up to `count` elements that were never exercised made winners, losers, or left alone."""
    generator = torch.Generator().manual_seed(seed)
    specs = {spec.name: spec for spec in case.signature.tensors}
    inputs, domains = dict(base), problem.domains_at(case)
    for name, seen in tally.exercised.items():
        unseen = torch.nonzero(~seen.reshape(-1)).reshape(-1)
        if not len(unseen):
            continue
        chosen = unseen[torch.randperm(len(unseen), generator=generator)[:count]]
        values = base[name].float().clone()
        size = float(values.abs().max()) or 1.0
        lift = 1 + torch.rand(len(chosen), generator=generator)
        if aim == "alone":
            lift, size = lift * values.reshape(-1)[chosen].sign(), 1.0
            values.zero_()
        values.view(-1)[chosen] = lift * (-size if aim == "loser" else size)
        inputs[name] = projected(domains[name], specs[name], values)
    return inputs
