"""How operators that work element by element carry a bound: moving, pointwise, comparing, converting.

A rule computes the operator's value, attaches the bound of the result and returns the value. All bounds are
in units of the unit round-off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from cupilot.evaluate.bound_shadow import (
    HOPELESS,
    STEP_UNITS,
    Shadows,
    carries_error,
    chunks,
    finite_magnitude,
    is_discrete,
)
from cupilot.evaluate.rounding import FACTOR

Args = tuple[Any, ...]
Keywords = Mapping[str, Any]
Rule = Callable[[Shadows, Any, Args, Keywords], Any]


def names(text: str) -> frozenset[str]:
    """A set of operator names, written as words."""
    return frozenset(text.split())


UNROUNDED = names(
    """neg abs relu maximum minimum fmax fmin where clamp clamp_min clamp_max hardtanh sign sgn floor ceil
    round trunc fmod threshold masked_fill positive nan_to_num relu6 hardshrink copysign heaviside
    fill zero"""
)
JUMPING = names("floor ceil round trunc sign sgn heaviside fmod remainder floor_divide hardshrink frac")
FLUSHING = names("exp exp2 sigmoid erfc softplus log_sigmoid_forward expm1 pow")


def floats(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if carries_error(leaf)]


def results(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def name_of(func: Any) -> str:
    return str(func.overloadpacket.__name__)


def pointwise(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Per input the larger of |f(x ± h e) - f(x)| / h with a finite step h, so that kinks inside it count."""
    out = func(*args, **kwargs)
    name = name_of(func)
    leaves, spec = tree_flatten((args, dict(kwargs)))
    first = {id(leaf): i for i, leaf in reversed(list(enumerate(leaves)))}  # x * x moves both factors at once
    moving = [i for i in first.values() if carries_error(leaves[i]) and shadows.get(leaves[i]) is not None]
    doubtful = [i for i, leaf in enumerate(leaves) if is_discrete(leaf) and shadows.get(leaf) is not None]
    if not carries_error(out):
        return _doubt(shadows, out, [leaves[i] for i in doubtful])
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    bounds = {i: shadows.get(leaves[i]) for i in (*moving, *doubtful)}
    if not bounds and name in UNROUNDED:
        return out
    scale = FACTOR / STEP_UNITS if name in JUMPING else 1.0
    error = torch.empty(out.shape, dtype=torch.float64)
    for cut in chunks(out, [*tensors, *(b for b in bounds.values() if b is not None)]):
        here = [cut(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        value, total = cut(out), cut(error).zero_()

        def moved(
            i: int, other: torch.Tensor, here: list[Any] = here, value: torch.Tensor = value
        ) -> torch.Tensor:
            inputs = [other if leaves[k] is leaves[i] else leaf for k, leaf in enumerate(here)]
            new_args, new_kwargs = tree_unflatten(inputs, spec)
            return func(*new_args, **new_kwargs).sub_(value).abs_()  # type: ignore[no-any-return]

        for i in moving:
            step = cut(bounds[i]) * shadows.step  # type: ignore[arg-type]
            change = torch.nan_to_num_(moved(i, here[i] + step), nan=0.0, posinf=HOPELESS)
            change = torch.maximum(
                change, torch.nan_to_num_(moved(i, here[i] - step), nan=0.0, posinf=HOPELESS)
            )
            total.add_(change, alpha=1.0 / (shadows.step * scale))
        for i in doubtful:
            doubt = cut(bounds[i])  # type: ignore[arg-type]
            flipped = moved(i, here[i] ^ doubt) if here[i].dtype == torch.bool else doubt * HOPELESS
            total.add_(torch.nan_to_num(flipped, nan=HOPELESS), alpha=1.0 / shadows.jump)
        if name not in UNROUNDED:
            total.add_(finite_magnitude(value))
            total.add_(shadows.rounding.flush if name in FLUSHING else shadows.rounding.underflow)
    shadows.put(out, error)
    return out


def comparison(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """A comparison is in doubt where the finite step of one of its computed operands turns it."""
    out = func(*args, **kwargs)
    doubt = torch.zeros(out.shape, dtype=torch.bool)
    for i, arg in enumerate(args):
        if carries_error(arg) and not shadows.is_exact(arg):
            step = shadows.error(arg) * shadows.step
            for shifted in (arg + step, arg - step):
                doubt |= func(*args[:i], shifted, *args[i + 1 :], **kwargs) != out
        elif is_discrete(arg) and (known := shadows.get(arg)) is not None:
            doubt |= known
    if bool(doubt.any()):
        shadows.put(out, doubt)
    return out


def discrete(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Integers and booleans from integers and booleans: one doubtful input puts every result in doubt."""
    out = func(*args, **kwargs)
    doubtful = [t for t in tree_leaves((args, dict(kwargs))) if is_discrete(t) and shadows.get(t) is not None]
    for result in results(out):
        if doubtful and is_discrete(result):
            shadows.put(result, torch.ones(result.shape, dtype=torch.bool))
        elif doubtful and carries_error(result):
            shadows.put(result, torch.full_like(result, HOPELESS))
    return out


def _doubt(shadows: Shadows, out: Any, doubtful: list[torch.Tensor]) -> Any:
    if doubtful and is_discrete(out):
        doubt = torch.zeros(out.shape, dtype=torch.bool)
        for tensor in doubtful:
            doubt |= shadows.doubt(tensor)
        shadows.put(out, doubt)
    return out


def moved(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Elements change places only: the same movement, applied to the bounds."""
    out = func(*args, **kwargs)
    tensors = tree_leaves((args, dict(kwargs)))
    known = any(isinstance(t, torch.Tensor) and shadows.get(t) is not None for t in tensors)
    if known and any(carries_error(result) for result in results(out)):
        bounds = func(*tree_map(lambda t: shadows.error(t) if carries_error(t) else t, args), **kwargs)
        for result, bound in zip(results(out), results(bounds), strict=True):
            shadows.put(result, bound)
        _spread_doubt(shadows, out, args)
    elif known:
        sources = tree_map(lambda t: _doubt_of(shadows, t), args)
        for result, doubt in zip(results(out), results(func(*sources, **kwargs)), strict=True):
            shadows.put(result, doubt != 0)
    if name_of(func) in _WHOLE_COPIES and (selection := shadows.selection(args[0])) is not None:
        shadows.select(out, selection)
    return out


_WHOLE_COPIES = names("clone _to_copy _unsafe_view _reshape_copy contiguous")


def _doubt_of(shadows: Shadows, value: Any) -> Any:
    if not is_discrete(value):
        return value
    found = shadows.get(value)
    return torch.zeros_like(value) if found is None else found.to(value.dtype)


def _spread_doubt(shadows: Shadows, out: Any, args: Args) -> None:
    """Elements fetched by a doubtful index are unknown."""
    for arg in tree_leaves(args):
        if is_discrete(arg) and (doubt := shadows.get(arg)) is not None:
            while doubt.dim() < out.dim():
                doubt = doubt.unsqueeze(-1)
            if any(a not in (1, b) for a, b in zip(doubt.shape, out.shape, strict=False)):
                doubt = torch.ones((), dtype=torch.bool)
            shadows.put(out, torch.where(doubt, HOPELESS, shadows.error(out)))


def converted(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """A change of type. A kernel need not follow a model's own rounding to half: it widens the bound."""
    source, asked = args[0], kwargs.get("dtype")
    if carries_error(source) and asked in (torch.float16, torch.bfloat16, torch.float32):
        out = func(*args, **{**kwargs, "dtype": torch.float64})
        rounding = 0.0 if asked is torch.float32 else torch.finfo(asked).eps / 2 / shadows.jump
        shadows.put(out, shadows.error(source) + rounding * finite_magnitude(source))
        return out
    if carries_error(source) and asked not in (None, torch.float64):  # float to integer: truncation
        out = func(*args, **kwargs)
        if not shadows.is_exact(source):
            step = shadows.error(source) * shadows.step
            shadows.put(out, (func(source + step, **kwargs) != out) | (func(source - step, **kwargs) != out))
        return out
    if is_discrete(source) and asked is torch.float64:
        out = func(*args, **kwargs)
        if (doubt := shadows.get(source)) is not None:
            height = 1.0 / shadows.jump if source.dtype == torch.bool else HOPELESS
            shadows.put(out, doubt.double() * height)
        return out
    return moved(shadows, func, args, kwargs)


def padded(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Movement with a constant beside it, which carries no error."""
    out = func(*args, **kwargs)
    if carries_error(out):
        shadows.put(out, func(shadows.error(args[0]), args[1], 0.0))
    return out


def filled(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Scatter and fill by a plain number: the same places, with a bound of zero."""
    out = func(*args, **kwargs)
    if carries_error(out):
        numberless = tree_map(lambda a: 0.0 if isinstance(a, float) else a, args)
        shadows.put(out, func(shadows.error(args[0]), *numberless[1:], **kwargs))
        _spread_doubt(shadows, out, args)
    return out


def copied(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """The functional form of `copy_`: the first tensor gives the shape, the second the values."""
    out = func(*args, **kwargs)
    found = shadows.get(args[1])
    if carries_error(out) and found is not None:
        height = 1.0 if found.is_floating_point() else HOPELESS
        shadows.put(out, (found.double() * height).expand(out.shape))
    elif found is not None and is_discrete(out):
        shadows.put(out, (found != 0).expand(out.shape))
    return out


def constant(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Values that do not depend on any input."""
    return func(*args, **kwargs)
