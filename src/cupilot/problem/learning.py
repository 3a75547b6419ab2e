"""Learns the domains of a problem's tensors from three draws of the user's own generator.

A generator that makes large tensors is watched making small ones: its factories are asked for smaller
extents, equal ones staying equal. A range that only the generator has, but not the module (which is defined
and finite beyond it), is no restriction: a ReLU drawn on [0, 1] must be right below zero too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cupilot.errors import ProblemError
from cupilot.problem.cases import ShapeCase
from cupilot.problem.domains import Domain, Extent, Order, Structure
from cupilot.problem.graph import Graph
from cupilot.problem.operators import DEFINED_EVERYWHERE
from cupilot.problem.program import Arguments, Program
from cupilot.types import Role, Signature, TensorSpec

Draw = Mapping[str, torch.Tensor]

_SEEDS = (11, 12, 13)
_SMALL_BYTES = 4 << 20  # inputs up to this size are drawn as they are
_FEW_VALUES = 8
_ENOUGH = 16  # observed elements below which nothing is concluded from floating values
_EXTENT_BY_RANK = {0: 64, 1: 4096, 2: 64, 3: 24, 4: 12, 5: 8}
_SMALL_SHARE = 2.0**-20  # of a whole whose parts are all positive
_MISSED = 8.0  # the top of a range is missed by more than _MISSED / n of it with probability e**-8


def learn_domains(
    program: Program, target: Signature, arguments: Arguments, graph: Graph, trial: ShapeCase
) -> dict[str, Domain]:
    """The domain of every tensor of `target`; `trial` is where the module is tried out."""
    draws = [draw_values(program, arguments, seed) for seed in _SEEDS]
    domains = {}
    for spec in target.tensors:
        if spec.role is Role.INPUT:
            domains[spec.name] = _learn(spec, [draw[spec.name] for draw in draws], target)
        elif spec.role is Role.PARAMETER:
            domains[spec.name] = Domain(spec.dtype)
    domains |= _buffer_domains(program, target, graph.mutated)
    ordered = {spec.name: domains[spec.name] for spec in target.tensors}
    if all(node.is_leaf or node.op in DEFINED_EVERYWHERE for node in graph.nodes):
        free = {name: _freed(domain) for name, domain in ordered.items() if domain.is_interval}
        return ordered | {spec.name: free[spec.name] for spec in program.inputs if spec.name in free}
    return _widened(program, ordered, trial.signature) if trial.is_small else ordered


def _freed(domain: Domain) -> Domain:
    return Domain(domain.dtype, drawn=str(domain))


def draw_values(program: Program, arguments: Arguments, seed: int) -> Draw:
    """A draw of the inputs for their values: large ones are made small where the generator allows it."""
    if sum(spec.size_bytes for spec in program.inputs) > _SMALL_BYTES:
        rank = max((len(spec.shape) for spec in program.inputs), default=0)
        # A generator that insists on its numbers (a reshape, say) fails here and is drawn from as it is.
        with contextlib.suppress(ProblemError):
            with _SmallFactories(_EXTENT_BY_RANK.get(rank, 6)):
                draw = program.draw_inputs(arguments, seed)
            if all(draw[spec.name].dim() == len(spec.shape) for spec in program.inputs):
                return draw
    return program.draw_inputs(arguments, seed)


class _SmallFactories(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Asks factories of tensors for smaller extents; different extents stay different, equal ones equal."""

    def __init__(self, limit: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._limit = limit
        self._small: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        names = [argument.name for argument in func._schema.arguments]
        if "size" in names and "self" not in names:
            at = names.index("size")
            args = (*args[:at], [self._shrink(extent) for extent in args[at]], *args[at + 1 :])
        return func(*args, **(kwargs or {}))

    def _shrink(self, extent: int) -> int:
        if extent <= self._limit:
            return extent
        return self._small.setdefault(extent, self._limit + len(self._small))


def _learn(spec: TensorSpec, draws: Sequence[torch.Tensor], target: Signature) -> Domain:
    """What all draws of one tensor have in common."""
    count = sum(draw.numel() for draw in draws)
    if count == 0 or (spec.dtype.is_floating and (count < _ENOUGH or not _all_finite(draws))):
        return Domain(spec.dtype) if spec.dtype.is_floating else Domain(spec.dtype, 0, 1)
    low = min(float(draw.min()) for draw in draws)
    high = max(float(draw.max()) for draw in draws)
    domain = Domain(spec.dtype, structure=_structure(draws), order=_order(draws))
    if not spec.dtype.is_floating:
        return _integer_domain(domain, spec, low, high, count, target)
    values = _few_values(draws)
    if values and domain.structure is Structure.FULL:
        return replace(domain, values=values)
    simplex = _simplex_dim(draws) if low >= 0 else None
    if simplex is not None:
        return replace(domain, low=_SMALL_SHARE if low > 0 else 0.0, high=1.0, sums_to_one=simplex)
    low_bound, high_bound = _bounds(low, high, count)
    return replace(domain, low=low_bound, high=high_bound)


def _all_finite(draws: Sequence[torch.Tensor]) -> bool:
    return all(bool(draw.isfinite().all()) for draw in draws)


def _integer_domain(
    domain: Domain, spec: TensorSpec, low: float, high: float, count: int, target: Signature
) -> Domain:
    """The observed range; its top is tied to an extent that it almost reaches."""
    found = replace(domain, low=low, high=high)
    if (low, high) == (0, 1) or low < 0 or count < _ENOUGH:
        return found
    others = [other for other in target.tensors if other.name != spec.name]
    candidates = [
        (extent, Extent(other.name, dim))
        for other in (*others, spec)
        for dim, extent in enumerate(other.shape)
    ]
    near = [item for item in candidates if high < item[0] and high + 1 >= item[0] * (1 - _MISSED / count)]
    if not near:
        return found
    extent, tie = min(near, key=lambda item: item[0])
    return replace(found, low=0 if low <= extent * _MISSED / count else low, high=extent - 1, below=tie)


def _few_values(draws: Sequence[torch.Tensor]) -> tuple[float, ...]:
    """The distinct values, if they are so few that this cannot be chance."""
    sample = torch.cat([draw.flatten()[:4096] for draw in draws])
    distinct: torch.Tensor = torch.unique(sample)
    if not 2 <= distinct.numel() <= min(_FEW_VALUES, sample.numel() // _ENOUGH):
        return ()
    if not all(bool(torch.isin(draw, distinct).all()) for draw in draws):
        return ()
    return tuple(float(value) for value in distinct)


def _bounds(low: float, high: float, count: int) -> tuple[float | None, float | None]:
    """Signs and the intervals [0, 1] and [-1, 1]; a range that no function knows of is none."""
    if low >= 0:
        clear = 2.0 ** math.floor(math.log2(low)) if low > 1e-3 * high > 0 else 0.0  # bounded away from zero
        return clear, 1.0 if high <= 1 else None
    if high <= 0:
        return (-1.0 if low >= -1 else None), 0.0
    if count >= 256 and -1 <= low < -0.9 and 0.9 < high <= 1:
        return -1.0, 1.0
    return None, None


def _simplex_dim(draws: Sequence[torch.Tensor]) -> int | None:
    for dim in reversed(range(draws[0].dim())):
        if all(
            draw.shape[dim] > 1 and bool(((draw.double().sum(dim) - 1).abs() < 1e-3).all()) for draw in draws
        ):
            return dim
    return None


def _structure(draws: Sequence[torch.Tensor]) -> Structure:
    if draws[0].dim() < 2 or min(draws[0].shape[-2:]) < 3 or not all(bool(draw.any()) for draw in draws):
        return Structure.FULL
    upper = not any(bool(draw.tril(-1).any()) for draw in draws)
    lower = not any(bool(draw.triu(1).any()) for draw in draws)
    if upper or lower:
        return Structure.DIAGONAL if upper and lower else Structure.UPPER if upper else Structure.LOWER
    rows, columns = draws[0].shape[-2:]
    constant = any(bool((draw == draw.flatten()[0]).all()) for draw in draws)
    if rows == columns and not constant and all(torch.equal(draw, draw.mT) for draw in draws):
        return Structure.SYMMETRIC
    return Structure.FULL


def _order(draws: Sequence[torch.Tensor]) -> Order:
    if draws[0].dim() == 0 or draws[0].shape[-1] < 8:
        return Order.NONE
    ahead = [draw[..., 1:] >= draw[..., :-1] for draw in draws]
    behind = [draw[..., 1:] <= draw[..., :-1] for draw in draws]
    up, down = all(bool(steps.all()) for steps in ahead), all(bool(steps.all()) for steps in behind)
    if up == down:  # neither, or constant rows
        return Order.NONE
    return Order.ASCENDING if up else Order.DESCENDING


def _buffer_domains(program: Program, target: Signature, mutated: Sequence[str]) -> dict[str, Domain]:
    """Tables and masks that every construction makes alike are constants of the problem; state is not.

    State starts as one repeated number (a running mean of zeros): a kernel must not rely on that number.
    """
    buffers = [spec for spec in target.tensors if spec.role is Role.BUFFER]
    if not buffers:
        return {}
    states = [program.draw_state(seed) for seed in _SEEDS]
    domains = {}
    for spec in buffers:
        values = [state[spec.name] for state in states]
        same = all(torch.equal(values[0], other) for other in values[1:])
        uniform = bool((values[0] == values[0].flatten()[0]).all()) if values[0].numel() else True
        if same and not uniform and spec.name not in mutated:
            domains[spec.name] = Domain(spec.dtype, fixed=values[0])
        elif same and uniform and spec.dtype.is_floating:
            positive = bool((values[0] > 0).any())
            domains[spec.name] = Domain(spec.dtype, low=0.0 if positive else None)
        else:
            domains[spec.name] = _learn(spec, values, target)
    return domains


def _widened(program: Program, domains: dict[str, Domain], trial: Signature) -> dict[str, Domain]:
    """Intervals that only the generator keeps to are given up, one tensor after the other."""
    shapes = {spec.name: spec.shape for spec in trial.tensors}
    for name in [spec.name for spec in program.inputs if domains[spec.name].is_interval]:
        domain = domains[name]
        for low in (None, 0.0):
            if (low, None) == (domain.low, domain.high):
                break
            tried = {**domains, name: replace(_freed(domain), low=low)}
            if _is_defined(program, tried, trial, shapes):
                domains = tried
                break
    return domains


def _is_defined(
    program: Program, domains: Mapping[str, Domain], trial: Signature, shapes: Mapping[str, tuple[int, ...]]
) -> bool:
    """Whether the reference is finite in both precisions on wide normal inputs, projected."""
    generator = torch.Generator().manual_seed(_SEEDS[0])
    tensors = {
        spec.name: domains[spec.name]
        .at(shapes)
        .project(3 * torch.randn(spec.shape, generator=generator, dtype=torch.float64))
        for spec in trial.tensors
    }
    try:
        outputs = [
            out for dtype in (torch.float64, torch.float32) for out in program.reference(tensors, dtype)
        ]
    except ProblemError:  # the module checks its inputs itself, as binary cross-entropy does
        return False
    return all(bool(output.isfinite().all()) for output in outputs)
