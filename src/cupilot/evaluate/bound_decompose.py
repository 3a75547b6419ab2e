"""Fused operators, taken apart into the steps an honest kernel may take, so that each step's rounding counts.

Each function has its operator's own signature and runs under the dispatch mode. PyTorch's own decompositions
serve whatever is not listed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensor = torch.Tensor


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


def silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def mish(x: Tensor) -> Tensor:
    return x * torch.tanh(torch.nn.functional.softplus(x))


def glu(x: Tensor, dim: int = -1) -> Tensor:
    value, gate = x.chunk(2, dim)
    return value * torch.sigmoid(gate)


def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    terms = (x - x.amax(dim, keepdim=True)).exp()
    return terms / terms.sum(dim, keepdim=True)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    largest = x.amax(dim, keepdim=True)
    shift = torch.where(largest.isfinite(), largest, 0.0)
    total = (x - shift).exp().sum(dim, keepdim=True).log() + shift
    return total if keepdim else total.squeeze(dim)


def variance(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    dims = list(dim) if dim else list(range(x.dim()))
    count = math.prod(x.shape[d] for d in dims)
    centred = x - x.mean(dims, keepdim=True)
    degrees = count - (1 if correction is None else correction)
    return (centred * centred).sum(dims, keepdim=keepdim) / max(0.0, degrees)


def deviation(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Tensor:
    return variance(x, dim, **options).sqrt()


def variance_and_mean(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    dims = list(dim) if dim else list(range(x.dim()))
    return variance(x, dim, **options), x.mean(dims, keepdim=bool(options.get("keepdim")))


def deviation_and_mean(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    spread, mean = variance_and_mean(x, dim, **options)
    return spread.sqrt(), mean


def vector_norm(
    x: Tensor, ord: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    dims = list(dim) if dim else list(range(x.dim()))
    if ord == 2:
        return (x * x).sum(dims, keepdim=keepdim).sqrt()
    if ord == 1:
        return x.abs().sum(dims, keepdim=keepdim)
    if math.isinf(ord):
        size = x.abs()
        return size.amax(dims, keepdim=keepdim) if ord > 0 else size.amin(dims, keepdim=keepdim)
    if ord == 0:
        return (x != 0).sum(dims, keepdim=keepdim).to(torch.float64)
    return (x.abs() ** ord).sum(dims, keepdim=keepdim) ** (1 / ord)


def norm(
    x: Tensor,
    p: float | None = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    return vector_norm(x, 2 if p is None else p, dim, keepdim)


def _normalised(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    scale = ((centred * centred).mean(dims, keepdim=True) + eps).rsqrt()
    return centred * scale, mean, scale


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: list[int]) -> Tensor:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    value, mean, scale = _normalised(x, list(range(x.dim() - len(shape), x.dim())), eps)
    return _affine(value, weight, bias, list(shape)), mean, scale


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, inner: int, groups: int, eps: float
) -> tuple[Tensor, ...]:
    value, mean, scale = _normalised(x.reshape(n, groups, -1), [2], eps)
    shape = [1, c] + [1] * (x.dim() - 2)
    return _affine(value.reshape(x.shape), weight, bias, shape), mean, scale


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    shape = [1, -1] + [1] * (x.dim() - 2)
    if training or running_mean is None or running_var is None:
        value, mean, scale = _normalised(x, [0, *range(2, x.dim())], eps)
    else:
        mean, scale = running_mean.reshape(shape), (running_var.reshape(shape) + eps).rsqrt()
        value = (x - mean) * scale
    return _affine(value, weight, bias, shape), mean, scale


def rms_norm(x: Tensor, shape: list[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    smallest = torch.finfo(torch.float32).eps if eps is None else eps
    scale = ((x * x).mean(dims, keepdim=True) + smallest).rsqrt()
    return _affine(x * scale, weight, None, list(shape)), scale


def _reduced(terms: Tensor, reduction: int) -> Tensor:
    return terms if reduction == 0 else terms.mean() if reduction == 1 else terms.sum()


def mse_loss(a: Tensor, b: Tensor, reduction: int = 1) -> Tensor:
    return _reduced((a - b) * (a - b), reduction)


def smooth_l1_loss(a: Tensor, b: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    size = (a - b).abs()
    return _reduced(size if beta == 0 else _huber(size, beta) / beta, reduction)


def huber_loss(a: Tensor, b: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    return _reduced(_huber((a - b).abs(), delta), reduction)


def _huber(size: Tensor, delta: float) -> Tensor:
    """min(d, delta) * (d - min(d, delta) / 2): both branches without a comparison, so none is in doubt."""
    inner = size.clamp(max=delta)
    return inner * (size - 0.5 * inner)


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore: int) -> Any:
    kept = target != ignore
    index = torch.where(kept, target, 0).unsqueeze(1 if x.dim() > 1 else 0)
    dim = 1 if x.dim() > 1 else 0
    picked = -x.gather(dim, index).squeeze(dim)
    scale = kept.to(x.dtype) if weight is None else torch.where(kept, weight[index.squeeze(dim)], 0.0)
    terms = torch.where(kept, picked * scale if weight is not None else picked, 0.0)
    total = scale.sum()
    if reduction == 0:
        return terms, total
    return (terms.sum() / total if reduction == 1 else terms.sum()), total


def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    terms = -(target * x.log().clamp(min=-100) + (1 - target) * (1 - x).log().clamp(min=-100))
    return _reduced(terms if weight is None else terms * weight, reduction)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, None]:
    scores = (q @ k.transpose(-1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    if attn_mask is not None:
        scores = (
            scores + attn_mask if attn_mask.is_floating_point() else scores.masked_fill(~attn_mask, -math.inf)
        )
    terms = (scores - scores.amax(-1, keepdim=True)).exp()
    return (terms @ v) / terms.sum(-1, keepdim=True), None


def cdist(a: Tensor, b: Tensor, p: float = 2.0, mode: int | None = None) -> Tensor:
    return vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, [-1])


def euclidean_distance(a: Tensor, b: Tensor) -> Tensor:
    return cdist(a, b)


def cross_product(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
    def turned(t: Tensor, by: int) -> Tensor:
        return t.roll(-by, dim)

    return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)


def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    x1: list[int],
    x2: list[int],
    x3: list[int],
    dims: list[int],
    unroll: int = 1,
) -> Tensor:
    for places, which in ((x1, 0), (x2, 1), (x3, 2)):
        for place in places:
            a, b, c = (t.unsqueeze(place) if i == which else t for i, t in enumerate((a, b, c)))
    return (a * b * c).sum(dims)


def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + value * a * b


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    largest = x.amax(dim, keepdim=True)
    shift = torch.where(largest.isfinite(), largest, 0.0)
    return (x - shift).exp().cumsum(dim).log() + shift


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "gelu": gelu,
    "silu": silu,
    "mish": mish,
    "glu": glu,
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "var": variance,
    "std": deviation,
    "var_mean": variance_and_mean,
    "std_mean": deviation_and_mean,
    "linalg_vector_norm": vector_norm,
    "norm": norm,
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "native_batch_norm": batch_norm,
    "_native_batch_norm_legit": batch_norm,
    "_fused_rms_norm": rms_norm,
    "mse_loss": mse_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "nll_loss_forward": nll_loss,
    "nll_loss2d_forward": nll_loss,
    "binary_cross_entropy": binary_cross_entropy,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_cdist_forward": cdist,
    "_euclidean_dist": euclidean_distance,
    "linalg_cross": cross_product,
    "_trilinear": trilinear,
    "addcmul": addcmul,
    "logcumsumexp": logcumsumexp,
}
