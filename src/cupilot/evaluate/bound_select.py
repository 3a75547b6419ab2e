"""Indices (argmax, top-k, sort): kept together with the values they were chosen from.

An index is judged by the value it selects, so that every tie is right. Does not judge; `compare` does.
"""

from __future__ import annotations

from typing import Any

import torch

from cupilot.evaluate.bound_rules import Args, Keywords, discrete, results
from cupilot.evaluate.bound_shadow import Selection, Shadows, carries_error, is_discrete
from cupilot.evaluate.bound_sums import ordered


def extreme_index(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> torch.Tensor:
    """argmax and argmin, over one dimension or all."""
    out: torch.Tensor = func(*args, **kwargs)
    if not carries_error(args[0]):
        return discrete(shadows, func, args, kwargs)  # type: ignore[no-any-return]
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    source = args[0].reshape(-1) if dim is None or args[0].dim() == 0 else args[0]
    _record(shadows, out, args[0], source, dim or 0, distinct=False)
    return out


def extreme(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Values and indices along one dimension: max, min, median, kthvalue, sort, top-k, cumulative maxima."""
    out = ordered(shadows, func, args, kwargs)
    values = results(out)
    if len(values) < 2 or not carries_error(args[0]):
        return out
    many = func.overloadpacket.__name__ in ("sort", "topk")
    dim = kwargs.get("dim", -1)
    positional = [a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)]
    if func.overloadpacket.__name__ in ("topk", "kthvalue"):
        positional = positional[1:]
    dim = positional[0] if positional else dim
    _record(shadows, values[1], args[0], args[0], dim, distinct=many)
    return out


def pooled(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Max pooling; its indices count along the flattened window dimensions."""
    out = ordered(shadows, func, args, kwargs)
    values = results(out)
    if len(values) > 1 and carries_error(args[0]):
        rank = 3 if "3d" in func.overloadpacket.__name__ else 2
        index = values[1]
        source = args[0].flatten(-rank)
        _attach(shadows, index, args[0], source, -1, (*index.shape[:-rank], -1), distinct=False)
    return out


def _record(
    shadows: Shadows,
    index: torch.Tensor,
    origin: torch.Tensor,
    source: torch.Tensor,
    dim: int,
    *,
    distinct: bool,
) -> None:
    if not is_discrete(index) or index.dtype == torch.bool:
        return
    dim %= max(1, source.dim())
    shape = list(source.shape) or [1]
    shape[dim] = -1
    _attach(
        shadows, index, origin, source.reshape(source.shape or (1,)), dim, tuple(shape), distinct=distinct
    )


def _attach(
    shadows: Shadows,
    index: torch.Tensor,
    origin: torch.Tensor,
    source: torch.Tensor,
    dim: int,
    shape: tuple[int, ...],
    *,
    distinct: bool,
) -> None:
    rows = source.movedim(dim, -1)
    rows = rows.reshape(-1, rows.shape[-1])
    errors = None
    if not shadows.is_exact(origin):
        moved = shadows.error(origin).reshape(source.shape).movedim(dim, -1)
        errors = moved.reshape(rows.shape)
        _doubt_ties(shadows, index, rows, errors, dim, shape)
    full = tuple(index.reshape(shape).shape)
    shadows.select(index, Selection(rows.clone(), errors, dim, full, distinct))


def _doubt_ties(
    shadows: Shadows,
    index: torch.Tensor,
    rows: torch.Tensor,
    errors: torch.Tensor,
    dim: int,
    shape: tuple[int, ...],
) -> None:
    """An index chosen among values closer than their bounds may legitimately be another one."""
    chosen = index.reshape(shape).movedim(dim, -1)
    picks = chosen.reshape(rows.shape[0], -1)
    if picks.shape[1] > 8:
        doubt = torch.ones(index.shape, dtype=torch.bool)
        shadows.put(index, doubt)
        return
    value, bound = rows.gather(1, picks), errors.gather(1, picks)
    near = (rows.unsqueeze(2) - value.unsqueeze(1)).abs() <= shadows.step * (
        errors.unsqueeze(2) + bound.unsqueeze(1)
    )
    doubt = (near.sum(1) > 1).reshape(chosen.shape).movedim(-1, dim).reshape(index.shape)
    if bool(doubt.any()):
        shadows.put(index, doubt)
