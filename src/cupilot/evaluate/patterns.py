"""The shapes of data: one function per pattern, from a shape and a generator to single-precision values.

Knows nothing of problems; `inputs` decides which tensor gets which pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

Shape = tuple[int, ...]
Pattern = Callable[[Shape, int, torch.Generator], torch.Tensor]

_ROOMY = 64  # elements of a tensor that can do without its two ends
_MARKS = (-1, -10, 1, -100, 9, 99, -1000, 999, *range(-9, -1), *range(2, 9), *range(-16, -10), *range(10, 17))
_LOW_BITS = 0x1FFF  # the mantissa bits that tf32 drops; half and bf16 drop more


def make(pattern: str, shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return _MAKERS[pattern](shape, dim, generator)


def _normal(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator)


def _uniform(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator)


def _heavy(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Student's t with two degrees of freedom, cut where squares would be all that counts."""
    spread = torch.randn(shape, generator=generator).square_()
    spread += torch.randn(shape, generator=generator).square_()
    return _normal(shape, dim, generator).div_(spread.div_(2).sqrt_().clamp_(min=1e-3))


def _offset(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, dim, generator).add_(4096.0)


def _around(centre: float) -> Pattern:
    return lambda shape, dim, generator: _normal(shape, dim, generator).mul_(8).add_(centre)


def _negative(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return _uniform(shape, dim, generator).neg_().sub_(0.01)


def _scaled(scale: float) -> Pattern:
    return lambda shape, dim, generator: _normal(shape, dim, generator).mul_(scale)


def _scattered(first: float, last: float) -> Pattern:
    """Normal numbers with the two values at a few places, the ends among them if there is room."""

    def pattern(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
        out = _normal(shape, dim, generator)
        flat = out.view(-1)
        if flat.numel():
            flat[torch.randint(flat.numel(), (2,), generator=generator)] = first
            flat[torch.randint(flat.numel(), (2,), generator=generator)] = last
        if flat.numel() >= _ROOMY:
            flat[0], flat[-1] = first, last
        return out

    return pattern


def _dominated(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """About one element in thirty near zero, the others so far below that their exponentials do not count."""
    out = _normal(shape, dim, generator).mul_(3).sub_(30)
    return torch.where(torch.rand(shape, generator=generator) < 1 / 30, out.add(30).div_(8), out)


def _cancelling(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Along the last dimension every element has a partner of nearly the opposite value."""
    out = _normal(shape, dim, generator)
    half = out.shape[-1] // 2 if out.dim() else 0
    if half:
        places = torch.randperm(out.shape[-1], generator=generator)
        noise = torch.randn(out[..., :half].shape, generator=generator).mul_(1e-4).add_(1.0)
        out[..., places[half : 2 * half]] = -out[..., places[:half]] * noise
    return out


def _spikes(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    heights = torch.randint(1, 4096, shape, generator=generator).float().div_(64)
    return heights * (torch.rand(shape, generator=generator) < 1 / 32)


def _position_coded(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    count = torch.Size(shape).numel()
    start = int(torch.randint(1 << 20, (), generator=generator))
    code = (torch.arange(start, start + count) * 2654435761) % 2039
    return code.float().div_(256).reshape(shape)


def _constant(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return torch.full(shape, float(torch.rand((), generator=generator)) * 2 + 0.1)


def _sorted(descending: bool) -> Pattern:
    def pattern(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
        out = _normal(shape, dim, generator)
        return out.sort(-1, descending=descending).values if out.dim() else out

    return pattern


def _sparse(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """About eight non-zero terms in each row."""
    keep = torch.rand(shape, generator=generator) < min(1.0, 8 / max(1, shape[-1] if shape else 1))
    return (torch.rand(shape, generator=generator) + 1) * keep


def _edges(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Zero but for the first and the last slice of every dimension: where tails are forgotten."""
    values, keep = torch.rand(shape, generator=generator) + 1, torch.zeros(shape, dtype=torch.bool)
    for axis, extent in enumerate(shape):
        keep.narrow(axis, 0, min(1, extent)).fill_(True)
        keep.narrow(axis, max(0, extent - 1), min(1, extent)).fill_(True)
    return values * keep


def _wide(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    exponent = torch.rand(shape, generator=generator).mul_(24).sub_(16)
    return torch.exp2(exponent) * torch.randn(shape, generator=generator).sign_()


def _low_bits(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """In [1, 2) with the low bits just under half of what is dropped: half, bf16 and tf32 all round down."""
    bits = (torch.rand(shape, generator=generator) + 1).view(torch.int32)
    low = torch.randint(0x0E00, 0x1000, shape, generator=generator, dtype=torch.int32)
    return ((bits & ~_LOW_BITS) | low).view(torch.float32)


def _full_mantissa(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    bits = torch.randint(1 << 23, shape, generator=generator, dtype=torch.int32) | 0x3F800001
    signs = torch.randint(2, shape, generator=generator, dtype=torch.int32) << 31
    return (bits | signs).view(torch.float32)


def _coarse(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Exact in bf16, so that only another tensor's rounding shows."""
    return (torch.rand(shape, generator=generator) + 1).bfloat16().float()


def _selection(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """One non-zero element in each line along `dim`."""
    out = torch.zeros(shape)
    if not shape or 0 in shape:
        return out
    line = [1 if axis == dim else extent for axis, extent in enumerate(shape)]
    places = torch.randint(shape[dim], line, generator=generator)
    return out.scatter_(dim, places, _full_mantissa(tuple(line), dim, generator))


def _zero(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return torch.zeros(shape)


def _faint(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Of one sign, each row of its own size from 1e-6 to 1e-2."""
    rows = (*shape[:-1], 1) if shape else ()
    exponent = torch.rand(rows, generator=generator).mul_(-4).sub_(2)
    return (torch.rand(shape, generator=generator) + 1) * torch.pow(10.0, exponent)


def _masked(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """Positive, with minus infinity in the first places of each line along `dim`: of none to of half."""
    out = _coarse(shape, dim, generator)
    if not shape or 0 in shape:
        return out
    line = [1 if axis == dim else extent for axis, extent in enumerate(shape)]
    lines, most = torch.Size(line).numel(), shape[dim] // 2
    length = ((torch.arange(lines) + torch.randint(most + 1, (), generator=generator)) % (most + 1)).view(
        line
    )
    length[(0,) * len(line)] = most
    along = [extent if axis == dim else 1 for axis, extent in enumerate(shape)]
    return torch.where(torch.arange(shape[dim]).view(along) < length, -math.inf, out)


def _opposite(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    return _uniform(shape, dim, generator).mul_(-8).sub_(64)


def _whole(shape: Shape, dim: int, generator: torch.Generator) -> torch.Tensor:
    """In each row one of the numbers that programs use as marks, and the one above it."""
    rows = torch.Size(shape[:-1]).numel()
    marks = torch.tensor(_MARKS).repeat(-(-max(1, rows) // len(_MARKS)))[: max(1, rows)]
    if not shape:
        return marks[0].float()
    pair = torch.randint(2, shape, generator=generator)
    return (marks[:rows].reshape(*shape[:-1], 1) + pair).float()


PATTERNS: dict[str, tuple[Pattern, str]] = {
    "normal": (_normal, "ordinary numbers of both signs"),
    "low bits": (_low_bits, "a silent drop of precision"),
    "own": (_normal, "the problem's own inputs"),
    "negative": (_negative, "running maxima that start at zero"),
    "edges": (_edges, "forgotten tails and borders"),
    "large": (_scaled(1e5), "overflow, such as exp without subtracting the maximum, or half precision's"),
    "dominated": (_dominated, "approximations of exp that stop short of zero"),
    "offset": (_offset, "variances that cancel (mean far from zero)"),
    "far below": (_around(-150.0), "exponentials of the inputs themselves, which vanish"),
    "far above": (_around(150.0), "exponentials of the inputs themselves, which overflow"),
    "whole": (_whole, "numbers that a kernel takes for a mark, such as -1"),
    "sparse": (_sparse, "dropped elements"),
    "spikes": (_spikes, "dropped elements"),
    "cancelling": (_cancelling, "sums whose terms cancel"),
    "heavy-tailed": (_heavy, "a few elements that dominate"),
    "uniform": (_uniform, "numbers in [0, 1)"),
    "position-coded": (_position_coded, "elements taken from the wrong place"),
    "constant": (_constant, "equal elements, ties, zero variance"),
    "ascending": (_sorted(False), "maxima that change at every step"),
    "descending": (_sorted(True), "maxima that never change"),
    "small": (_scaled(1e-6), "an epsilon that is missing or added twice"),
    "denormal": (_scaled(2.0**-128), "underflow"),
    "wide": (_wide, "24 powers of two in one row"),
    "nan": (_scattered(math.nan, math.nan), "NaN that is swallowed"),
    "infinite": (_scattered(math.inf, -math.inf), "infinities that are swallowed"),
}
_SINGLED_OUT: dict[str, tuple[Pattern, str]] = {
    "selection": (_selection, "a dropped or imprecise term (one term for each output)"),
    "low bits in": (_low_bits, "a silent drop of one input's precision"),
    "faint": (_faint, "an epsilon that is missing, doubled or of the wrong sign"),
    "opposite": (_opposite, "products far below zero, such as scores of which the largest is -500"),
    "masked": (_masked, "rows that begin with minus infinity"),
    "zero": (_zero, ""),
    "full mantissa": (_full_mantissa, ""),
    "coarse": (_coarse, ""),
}
_MAKERS = {name: maker for name, (maker, _) in (PATTERNS | _SINGLED_OUT).items()}
EXPOSES = {name: exposes for name, (_, exposes) in (PATTERNS | _SINGLED_OUT).items()}
