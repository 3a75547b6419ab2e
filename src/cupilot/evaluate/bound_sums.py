"""Operators with an inner sum, an order or a chain: reductions, products, convolutions, maxima, scans.

Also `sketch`, which samples the response of an operator nobody wrote a rule for, and names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

from cupilot.evaluate.bound_rules import Args, Keywords, Rule, discrete, floats, name_of, results
from cupilot.evaluate.bound_shadow import HOPELESS, Shadows, carries_error, finite_magnitude
from cupilot.evaluate.rounding import COHERENT_FACTOR, FACTOR


def averaged(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Sums and means with non-negative weights: op(e) + g op(|terms|), g from the terms that count."""
    out = func(*args, **kwargs)
    if not carries_error(out):
        return discrete(shadows, func, args, kwargs)

    def applied(change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        inputs = tree_map(lambda t: change(t) if carries_error(t) else t, args)
        return func(*inputs, **kwargs)  # type: ignore[no-any-return]

    terms = applied(finite_magnitude)
    share = applied(_counts) * terms_per_unit(name_of(func), args, kwargs, out)
    if _repeats(args):
        growth = share.clamp(min=1.0).sqrt() * _COHERENCE
    else:
        runs = applied(_in_runs(name_of(func), args)) * terms_per_unit(name_of(func), args, kwargs, out)
        coherent = torch.maximum(share, runs).clamp(min=1.0).sqrt() * _COHERENCE
        growth = torch.where(runs * _MANY > share, coherent, _growth(shadows, share))
    error = applied(shadows.error) + growth * terms
    if name_of(func) in ("sum", "mean"):
        lost = applied(lambda tensor: _too_small(tensor, _summed(name_of(func), tensor, args)))
        error = error + lost / (FACTOR * shadows.rounding.unit)
    if name_of(func) != "cumsum":
        error = error + finite_magnitude(out)
    shadows.put(out, error + shadows.rounding.underflow)
    return out


def terms_per_unit(name: str, args: Args, kwargs: Keywords, out: torch.Tensor) -> float:
    """Turns the operator applied to ones into a number of terms: one for sums, the window for averages."""
    if "avg_pool" in name and not name.startswith("_adaptive"):
        window: float = math.prod(args[1])
        return window
    if name == "mean" or name.startswith("_adaptive"):
        inputs: int = args[0].numel()
        return max(1.0, float(math.ceil(inputs / max(1, out.numel()))))
    return 1.0


def _repeats(args: Args) -> bool:
    """Many terms are one and the same number: their rounding errors are too, and add up."""
    for tensor in floats(args):
        sample = tensor.reshape(-1)[:: max(1, tensor.numel() // _SAMPLE)]
        same = int((sample == sample.median()).sum())
        if same * _MANY > sample.numel() > 0 and bool(sample.median() != 0):
            return True
    return False


def _in_runs(name: str, args: Args) -> Callable[[torch.Tensor], torch.Tensor]:
    """One where a term stands in a run of equal ones along a dimension that is summed over.

    Zeros with one value among them become such runs when a mean is subtracted, in each line other ones.
    """

    def change(tensor: torch.Tensor) -> torch.Tensor:
        found = torch.zeros_like(tensor)
        for dim in _summed(name, tensor, args):
            length = tensor.shape[dim] - _RUN + 1
            if length < 1:
                continue
            first = tensor.narrow(dim, 0, length)
            run = (first == tensor.narrow(dim, 1, length)) & (first == tensor.narrow(dim, _RUN - 1, length))
            found.narrow(dim, 0, length).masked_fill_(run & (first != 0), 1.0)
        return found

    return change


def _too_small(tensor: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """The terms that vanish one by one when they are added to the largest, however much they are together."""
    magnitude = finite_magnitude(tensor)
    if not magnitude.numel() or not dims:
        return torch.zeros_like(magnitude)
    return magnitude.masked_fill_(magnitude > 2 * _SMALLEST * magnitude.amax(dims, keepdim=True), 0.0)


def _summed(name: str, tensor: torch.Tensor, args: Args) -> list[int]:
    """The dimensions that a sum, mean or scan runs over; all of them where it is not said."""
    if name in ("sum", "mean", "cumsum") and len(args) > 1 and args[1] not in (None, [], ()):
        return [args[1]] if isinstance(args[1], int) else list(args[1])
    return list(range(tensor.dim()))


_SMALLEST = 2.0**-24  # of the largest term: half a unit in its last place
_SAMPLE = 1024
_MANY = 8  # one term in so many
_RUN = 8
_COHERENCE = COHERENT_FACTOR / FACTOR


def _counts(tensor: torch.Tensor) -> torch.Tensor:
    """One where a term can move the sum at all."""
    magnitude = finite_magnitude(tensor)
    return (magnitude > _SMALLEST * magnitude.max()).double() if tensor.numel() else magnitude


def _growth(shadows: Shadows, count: torch.Tensor) -> torch.Tensor:
    return count.clamp_(min=1.0).sqrt_().clamp_(max=shadows.root_cap)


def multiplied(first: int, second: int, addend: int | None = None) -> Rule:
    """Products of two tensors with an inner sum, perhaps added to a third; operands by place in the call."""

    def rule(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
        out = func(*args, **kwargs)
        if not carries_error(out):
            return discrete(shadows, func, args, kwargs)
        a, b = args[first], args[second]
        z = None if addend is None else args[addend]
        scalars = {k: abs(v) if isinstance(v, (int, float)) else v for k, v in kwargs.items()}
        narrow = _single_is_enough(func, shadows, a, b)

        def product(x: torch.Tensor, y: torch.Tensor, added: torch.Tensor | None) -> torch.Tensor:
            call = list(args)
            call[first], call[second] = x, y
            if addend is not None:
                call[addend] = added
            if narrow:
                call = [t.float() if carries_error(t) else t for t in call]
            return func(*call, **scalars).double()  # type: ignore[no-any-return]

        zero = None if z is None else torch.zeros_like(z)
        size_a, size_b = finite_magnitude(a), finite_magnitude(b)
        count = product((size_a != 0).double(), (size_b != 0).double(), zero)
        terms = product(size_a, size_b, None if z is None else finite_magnitude(z))
        error = product(size_a, shadows.error(b), None if z is None else shadows.error(z))
        error = error + product(shadows.error(a), size_b, zero) + _growth(shadows, count) * terms
        if shadows.rounding.product_error:
            error = error + shadows.rounding.product_error * terms
        shadows.put(out, error + shadows.rounding.underflow)
        return out

    return rule


def _single_is_enough(func: Any, shadows: Shadows, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Double-precision convolutions are slow on CPUs; a bound needs three digits, if its range fits."""
    if name_of(func) != "convolution" or a.numel() * b.numel() < 1 << 20:
        return False
    for tensor in (a, b, shadows.error(a), shadows.error(b)):
        size = finite_magnitude(tensor)
        smallest = size[size > 0].min() if bool((size > 0).any()) else torch.ones(())
        if float(size.max()) > 1e12 or float(smallest) < 1e-12:
            return False
    return True


def ordered(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Values picked by rank (max, pooling, sort, median): monotone, so the ends of the step bound them."""
    out = func(*args, **kwargs)
    source = args[0]
    if not carries_error(source):
        return discrete(shadows, func, args, kwargs)
    values = results(out)[0]
    step = shadows.error(source) * shadows.step
    change = torch.zeros_like(values)
    for shifted in (source + step, source - step):
        distance = (results(func(shifted, *args[1:], **kwargs))[0] - values).abs()
        change = torch.maximum(change, torch.nan_to_num(distance, nan=0.0, posinf=HOPELESS))
    shadows.put(values, change / shadows.step)
    return out


def chained(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """Products along a dimension: |x| + h e bounds every perturbed product, zeros included."""
    out = func(*args, **kwargs)
    if not carries_error(out):
        return discrete(shadows, func, args, kwargs)
    source = args[0]
    size, rest = finite_magnitude(source), args[1:]
    largest = func(size + shadows.error(source) * shadows.step, *rest, **kwargs)
    smallest = func(size, *rest, **kwargs)
    dim = rest[0] if rest and isinstance(rest[0], int) else None
    count = torch.tensor(float(source.numel() if dim is None or source.dim() == 0 else source.shape[dim]))
    error = (largest - smallest) / shadows.step + _growth(shadows, count) * smallest
    shadows.put(out, error + shadows.rounding.underflow)
    return out


_SAMPLES = 9
_SKETCH_STEP = 1e-11


def sketch(shadows: Shadows, func: Any, args: Args, kwargs: Keywords) -> Any:
    """An operator without a rule: the median response to Cauchy noise of the size of its inputs' bounds."""
    out = func(*args, **kwargs)
    if not any(carries_error(result) for result in results(out)) or not floats((args, dict(kwargs))):
        return discrete(shadows, func, args, kwargs)
    shadows.sketched.add(name_of(func))
    generator = torch.Generator().manual_seed(1)

    def disturbed(value: Any) -> Any:
        if not carries_error(value):
            return value
        noise = torch.empty(value.shape, dtype=torch.float64).uniform_(-0.4999, 0.4999, generator=generator)
        noise = noise.mul_(math.pi).tan_() * (shadows.error(value) + finite_magnitude(value))
        return value + _SKETCH_STEP * noise

    samples: list[list[torch.Tensor]] = [[] for _ in results(out)]
    for _ in range(_SAMPLES):
        for place, result in zip(samples, results(func(*tree_map(disturbed, args), **kwargs)), strict=True):
            place.append(result)
    for result, place in zip(results(out), samples, strict=True):
        if carries_error(result):
            response = (
                torch.stack([(sample - result).abs() for sample in place]).median(0).values / _SKETCH_STEP
            )
            shadows.put(result, response + finite_magnitude(result) + shadows.rounding.underflow)
    return out
