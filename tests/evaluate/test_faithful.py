"""Honest kernels are refused on no distribution, and every mutant is caught: a part of a larger campaign.

Each operator comes with faithful variants (other orders of summation, online and blocked algorithms,
functions good to four units in the last place) and with mutants. NaN is left out: variants may differ there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cupilot.evaluate import patterns
from cupilot.evaluate.compare import compare
from cupilot.evaluate.inputs import Distribution
from cupilot.evaluate.preparation import why_dead
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.rounding import Rounding
from cupilot.types import DType

Tensor = torch.Tensor
Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Operator:
    shapes: tuple[tuple[int, ...], ...]
    function: Function
    faithful: dict[str, Function]
    mutants: dict[str, Function] = field(default_factory=dict)


def ulp4(function: Function) -> Function:
    """As a vectorised function good to four units in the last place."""

    def noisy(x: Tensor) -> Tensor:
        exact = function(x.double())
        noise = torch.rand(exact.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        return (exact * (1 + 3.5 * 2.0**-23 * (noise * 2 - 1))).float()

    return noisy


def in_order(x: Tensor, dim: int = -1) -> Tensor:
    return torch.from_numpy(np.add.accumulate(x.numpy(), axis=dim)).select(dim, -1)


def pairwise(x: Tensor, dim: int = -1) -> Tensor:
    x = x.movedim(dim, 0)
    while len(x) > 1:
        x = torch.cat([x, torch.zeros_like(x[:1])]) if len(x) % 2 else x
        x = x[0::2] + x[1::2]
    return x[0]


def fused_product(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = (total.double() + a[:, k : k + 1].double() * b[k : k + 1].double()).float()
    return total


def online_softmax(x: Tensor) -> Tensor:
    largest, total = torch.full(x.shape[:-1], -math.inf), torch.zeros(x.shape[:-1])
    for block in x.split(17, -1):
        peak = torch.maximum(largest, block.amax(-1))
        terms = exp(block - peak[..., None])
        total, largest = total * exp(largest - peak) + in_order(terms), peak
    return exp(x - largest[..., None]) / total[..., None]


def welford(x: Tensor) -> Tensor:
    mean, square = torch.zeros(x.shape[:-1]), torch.zeros(x.shape[:-1])
    for k in range(x.shape[-1]):
        delta = x[..., k] - mean
        mean = mean + delta / (k + 1)
        square = square + delta * (x[..., k] - mean)
    return (x - mean[..., None]) / torch.sqrt(square / x.shape[-1] + 1e-5)[..., None]


def one_pass_norm(x: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(((x * x).mean(-1, keepdim=True) - mean * mean).clamp_min(0) + 1e-5)


def two_pass_variance(x: Tensor) -> Tensor:
    count = x.shape[-1]
    centred = x - (in_order(x) / count)[..., None]
    return pairwise(centred * centred) / (count - 1)


exp, erf, tanh, log1p = ulp4(torch.exp), ulp4(torch.erf), ulp4(torch.tanh), ulp4(torch.log1p)
ROWS, PAIR = ((12, 130),), ((12, 130), (12, 130))

OPERATORS = {
    "softmax": Operator(
        ROWS,
        lambda x: torch.softmax(x, -1),
        {"online": online_softmax},
        {
            "no maximum": lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
            "last term": lambda x: x.softmax(-1) * x.exp().sum(-1, True) / x[:, :-1].exp().sum(-1, True),
            "half": lambda x: x.half().float().softmax(-1),
        },
    ),
    "layer_norm": Operator(
        ROWS,
        lambda x: F.layer_norm(x, x.shape[-1:]),
        {"welford": welford},
        {"one pass": one_pass_norm, "no epsilon": lambda x: (x - x.mean(-1, True)) / x.std(-1, keepdim=True)},
    ),
    "sum": Operator(
        ROWS,
        lambda x: x.sum(-1),
        {"in order": in_order, "pairwise": pairwise},
        {"every second": lambda x: 2 * x[:, ::2].sum(-1), "tail": lambda x: x[:, :128].sum(-1)},
    ),
    "product": Operator(
        ((12, 130), (130, 9)),
        lambda a, b: a @ b,
        {
            "fused": fused_product,
            "blocks": lambda a, b: sum(x @ y for x, y in zip(a.split(32, 1), b.split(32), strict=True)),
        },
        {
            "bf16": lambda a, b: a.bfloat16().float() @ b,
            "term": lambda a, b: a[:, 1:] @ b[1:],
            "half blocks": lambda a, b: sum(
                (x @ y).half().float() for x, y in zip(a.split(32, 1), b.split(32), strict=True)
            ),
        },
    ),
    "gelu": Operator(
        ROWS,
        F.gelu,
        {"erf": lambda x: x * 0.5 * (1 + erf(x * np.float32(0.5**0.5)))},
        {
            "tanh": lambda x: F.gelu(x, approximate="tanh"),
            "tail": lambda x: torch.where(x < -3, 0.0, F.gelu(x)),
        },
    ),
    "mish": Operator(
        ROWS, F.mish, {"steps": lambda x: x * tanh(log1p(exp(x.clamp(max=80.0))))}, {"silu": F.silu}
    ),
    "log_sigmoid": Operator(
        ROWS,
        F.logsigmoid,
        {"stable": lambda x: x.clamp(max=0) - log1p(exp(-x.abs()))},
        {"naive": lambda x: -torch.log(1 + torch.exp(-x))},
    ),
    "variance": Operator(
        ROWS,
        lambda x: x.var(-1),
        {"two passes": two_pass_variance},
        {
            "biased": lambda x: x.var(-1, unbiased=False),
            "one pass": lambda x: (x * x).mean(-1) - x.mean(-1) ** 2,
        },
    ),
    "loss_of_constants": Operator(
        PAIR,
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        {
            "in order": lambda x, y: (
                in_order((x.clamp_min(0) - x * y.sigmoid() + log1p(exp(-x.abs()))).flatten()) / 1560
            )
        },
        {"no terms": lambda x, y: (-x * y.sigmoid()).mean()},
    ),
    "cosine": Operator(
        PAIR,
        F.cosine_similarity,
        {
            "rsqrt": lambda a, b: (
                pairwise(a * b)
                / (pairwise(a * a).sqrt().clamp_min(1e-8) * in_order(b * b).sqrt().clamp_min(1e-8))
            )
        },
        {"squares": lambda a, b: (a * b).sum(-1) / ((a * a).sum(-1) * (b * b).sum(-1)).clamp_min(1e-8)},
    ),
    "depthwise": Operator(
        ((2, 6, 12, 12), (6, 1, 3, 3)),
        lambda x, w: F.conv2d(x, w, groups=6),
        {
            "taps": lambda x, w: sum(
                x[..., i : i + 10, j : j + 10] * w[:, 0, i, j, None, None] for i in range(3) for j in range(3)
            )
        },
        {"corner": lambda x, w: F.conv2d(x, w * (torch.arange(9).reshape(3, 3) < 8), groups=6)},
    ),
    "branch": Operator(
        PAIR,
        lambda a, b: torch.where(a * 1.3 > b, a, b * 2),
        {"divided": lambda a, b: torch.where(a > b / 1.3, a, b + b)},
        {"shifted": lambda a, b: torch.where(a * 1.31 > b, a, b * 2)},
    ),
}


def cases(operator: Operator) -> Iterator[tuple[Distribution, list[Tensor], Reference]]:
    for name in patterns.PATTERNS:
        distribution = Distribution(name)
        if distribution.places_nonfinite:
            continue
        generator = torch.Generator().manual_seed(3)
        tensors = [patterns.make(name, shape, 0, generator) for shape in operator.shapes]
        named = {str(i): t for i, t in enumerate(tensors)}
        reference = build_reference(
            lambda t, d: (operator.function(*(v.to(d) for v in t.values())),),
            named,
            ["out"],
            Rounding(),
            coherent=distribution.is_coherent,
        )
        if not why_dead(reference, distribution):
            yield distribution, tensors, reference


def ratio(kernel: Function, tensors: list[Tensor], reference: Reference) -> float:
    return compare(kernel(*tensors).contiguous().numpy(), DType.F32, reference.outputs[0]).ratio


@pytest.mark.parametrize("name", OPERATORS)
def test_no_faithful_variant_is_refused_and_no_mutant_survives(name: str) -> None:
    operator = OPERATORS[name]
    live = list(cases(operator))
    assert len(live) >= 8
    for variant, kernel in operator.faithful.items():
        worst = max((ratio(kernel, tensors, reference), d.name) for d, tensors, reference in live)
        assert worst[0] <= 1, (variant, worst)
    for mutant, kernel in operator.mutants.items():
        assert any(ratio(kernel, tensors, reference) > 1 for _, tensors, reference in live), mutant
