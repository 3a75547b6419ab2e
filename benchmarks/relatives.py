"""Problems as users bring them, and which of them are relatives: the second set of `retrieval.py`.

Written down before anything was measured with them, and after the kinds of work that the pool compares had
been chosen. Fused chains, own losses, own norms; none is in the suite. Functions take tensors as arguments.

A line of `KIN` is a family: what makes one of it fast makes the others fast. Before the bar stand problems of
this file, after it members of the suite. Pairs are neighbours before the bar, and the last of them with the
first member after it; the other members are relatives too, and so are left out of the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

KIN = (
    "swiglu geglu highway | swish sigmoid tanh gelu gelu_tanh gelu_chain",
    "bias_gelu bias_tanh_residual | gelu swish sigmoid tanh gelu_tanh gelu_chain",
    "channel_affine_relu channel_prelu | leaky_relu relu hard_tanh hard_sigmoid matrix_scalar",
    "fake_quantize relu_squared clipped_residual | hard_tanh relu leaky_relu hard_sigmoid",
    "masked_softmax gumbel_softmax | softmax softmax_temperature log_softmax",
    "standardized_rows scaled_shifted_norm | layer_norm_rows layer_norm residual_layer_norm",
    "gated_rms_norm residual_rms_norm | rms_norm_rows rms_norm",
    "unit_rows simplex_rows min_max_rows | l2_norm l1_norm frobenius_norm",
    "log_mean_exp soft_maximum | ",
    "row_deviation row_energy | row_moments sum_reduction mean_reduction",
    "row_range row_peak | max_reduction min_reduction",
    "nearest_center best_scaled | argmin argmax argmax_rows",
    "root_mean_square_error log_cosh_loss percentage_error | mse_loss huber_loss hinge_loss",
    "binary_cross_entropy_logits poisson_loss | kl_div_loss",
    "smoothed_cross_entropy focal_loss | cross_entropy_loss log_softmax_nll",
    "row_cosine contrastive_distance | cosine_similarity_loss triplet_margin_loss",
    "weighted_row_sum scored_rows | matvec",
    "linear_gelu linear_tanh_scale low_rank_update | matmul_bias_relu linear matmul square_matmul",
    "gram_matrix covariance | matmul_transposed_b matmul_transposed_a matmul_transposed_both",
    "scaled_scores weighted_values | batched_matmul matmul_3d matmul_4d",
    "causal_attention biased_attention | attention",
    "running_mean discounted_sum | cumsum cumsum_exclusive cumsum_reverse masked_cumsum",
    "running_maximum running_minimum | ",
    "pooled_relu_max dilation_gradient | max_pool_2d max_pool_1d max_pool_3d",
    "smoothed_image root_mean_pool | average_pool_2d average_pool_1d average_pool_3d",
    "conv_relu conv_silu_scale | conv2d_square conv2d_square_5x9 conv2d_wide conv2d_tall_5x7 conv2d_alexnet",
    "depthwise_relu6 blurred_channels | depthwise_conv2d_square depthwise_conv2d_wide depthwise_conv2d_3x1",
    "causal_conv1d gated_conv1d | conv1d",
)


@dataclass(frozen=True)
class Example:
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    classes: int = 0  # the last tensor holds labels below this number

    def inputs(self) -> list[Tensor]:
        drawn = [torch.randn(shape) for shape in self.shapes]
        if self.classes:
            drawn[-1] = torch.randint(self.classes, self.shapes[-1])
        return drawn


EXAMPLES: dict[str, Example] = {}


def of(*shapes: tuple[int, ...], classes: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function with the shapes of its arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        EXAMPLES[function.__name__] = Example(function, shapes, classes)
        return function

    return register


ROWS = (3000, 1100)
COLUMN = (3000, 1)
WIDTH = (1100,)
IMAGE = (12, 24, 90, 110)
CHANNELS = (24, 1, 1)
SEQUENCE = (6, 40, 1800)
HEADS = (6, 4, 200, 48)

# -- element by element -----------------------------------------------------------------------------------


@of(ROWS, ROWS)
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


@of(ROWS, ROWS)
def geglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.gelu(gate) * up


@of(ROWS, ROWS, ROWS)
def highway(x: Tensor, carried: Tensor, gate: Tensor) -> Tensor:
    share = torch.sigmoid(gate)
    return share * torch.tanh(x) + (1 - share) * carried


@of(ROWS, WIDTH)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias)


@of(ROWS, WIDTH, ROWS)
def bias_tanh_residual(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return residual + torch.tanh(x + bias)


@of(IMAGE, CHANNELS, CHANNELS)
def channel_affine_relu(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return torch.relu(x * scale + shift)


@of(IMAGE, CHANNELS)
def channel_prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x > 0, x, slope * x)


@of(ROWS)
def fake_quantize(x: Tensor) -> Tensor:
    return torch.clamp(torch.round(x * 16.0), -128, 127) * 0.0625


@of(ROWS)
def relu_squared(x: Tensor) -> Tensor:
    positive = torch.relu(x)
    return positive * positive


@of(ROWS, ROWS)
def clipped_residual(x: Tensor, residual: Tensor) -> Tensor:
    return torch.clamp(x + residual, -6.0, 6.0)


# -- rows ---------------------------------------------------------------------------------------------------


@of(ROWS, ROWS)
def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores * 0.125 + mask, dim=-1)


@of(ROWS, ROWS)
def gumbel_softmax(logits: Tensor, noise: Tensor) -> Tensor:
    return torch.softmax((logits + noise) / 0.7, dim=-1)


@of(ROWS)
def standardized_rows(x: Tensor) -> Tensor:
    centered = x - x.mean(dim=-1, keepdim=True)
    return centered * torch.rsqrt((centered * centered).mean(dim=-1, keepdim=True) + 1e-5)


@of(ROWS, WIDTH, WIDTH, ROWS)
def scaled_shifted_norm(x: Tensor, scale: Tensor, shift: Tensor, residual: Tensor) -> Tensor:
    return F.layer_norm(x, (1100,)) * (1 + scale) + shift + residual


@of(ROWS, ROWS, WIDTH)
def gated_rms_norm(x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    normed = x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6)
    return normed * weight * F.silu(gate)


@of(ROWS, ROWS, WIDTH)
def residual_rms_norm(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    total = x + residual
    return total * torch.rsqrt(total.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight


@of(ROWS)
def unit_rows(x: Tensor) -> Tensor:
    return x / torch.sqrt((x * x).sum(dim=-1, keepdim=True) + 1e-12)


@of(ROWS)
def simplex_rows(x: Tensor) -> Tensor:
    positive = torch.relu(x) + 1e-6
    return positive / positive.sum(dim=-1, keepdim=True)


@of(ROWS)
def min_max_rows(x: Tensor) -> Tensor:
    low = x.amin(dim=-1, keepdim=True)
    return (x - low) / (x.amax(dim=-1, keepdim=True) - low + 1e-6)


@of(ROWS)
def log_mean_exp(x: Tensor) -> Tensor:
    return torch.logsumexp(x, dim=-1) - 7.003


@of(ROWS)
def soft_maximum(x: Tensor) -> Tensor:
    return torch.logsumexp(x * 4.0, dim=-1) * 0.25


@of(ROWS)
def row_deviation(x: Tensor) -> Tensor:
    return torch.std(x, dim=-1)


@of(ROWS)
def row_energy(x: Tensor) -> Tensor:
    return (x * x).mean(dim=-1)


@of(ROWS)
def row_range(x: Tensor) -> Tensor:
    return x.amax(dim=-1) - x.amin(dim=-1)


@of(ROWS)
def row_peak(x: Tensor) -> Tensor:
    return x.abs().amax(dim=-1)


@of(ROWS, COLUMN)
def nearest_center(centers: Tensor, x: Tensor) -> Tensor:
    return torch.argmin((centers - x) ** 2, dim=-1)


@of(ROWS, WIDTH)
def best_scaled(x: Tensor, scale: Tensor) -> Tensor:
    return torch.argmax(x * scale, dim=-1)


@of(ROWS, WIDTH)
def weighted_row_sum(x: Tensor, weight: Tensor) -> Tensor:
    return (x * weight).sum(dim=-1)


@of(ROWS, (1100,), (3000,))
def scored_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.sigmoid(x @ weight + bias)


# -- losses -------------------------------------------------------------------------------------------------


@of(ROWS, ROWS)
def root_mean_square_error(guess: Tensor, target: Tensor) -> Tensor:
    return torch.sqrt(((guess - target) ** 2).mean())


@of(ROWS, ROWS)
def log_cosh_loss(guess: Tensor, target: Tensor) -> Tensor:
    apart = guess - target
    return (apart + F.softplus(-2.0 * apart) - 0.6931472).mean()


@of(ROWS, ROWS)
def percentage_error(guess: Tensor, target: Tensor) -> Tensor:
    return ((guess - target).abs() / (target.abs() + 0.1)).mean()


@of(ROWS, ROWS)
def binary_cross_entropy_logits(logits: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, target)


@of(ROWS, ROWS)
def poisson_loss(guess: Tensor, target: Tensor) -> Tensor:
    return (torch.exp(guess) - target * guess).mean()


@of(ROWS, (3000,), classes=1100)
def smoothed_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, label_smoothing=0.1)


@of(ROWS, (3000,), classes=1100)
def focal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    picked = torch.log_softmax(logits, dim=-1).gather(1, labels[:, None])
    return -((1 - picked.exp()) ** 2 * picked).mean()


@of(ROWS, ROWS)
def row_cosine(a: Tensor, b: Tensor) -> Tensor:
    lengths = torch.sqrt((a * a).sum(dim=-1)) * torch.sqrt((b * b).sum(dim=-1))
    return (a * b).sum(dim=-1) / (lengths + 1e-6)


@of(ROWS, ROWS)
def contrastive_distance(a: Tensor, b: Tensor) -> Tensor:
    apart = torch.sqrt(((a - b) ** 2).sum(dim=-1) + 1e-6)
    return torch.relu(40.0 - apart).mean()


# -- products -----------------------------------------------------------------------------------------------


@of((500, 700), (900, 700), (900,))
def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.linear(x, weight, bias))


@of((500, 700), (900, 700), (900,))
def linear_tanh_scale(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(F.linear(x, weight, bias)) * 1.7159


@of((500, 700), (700, 40), (40, 900), (500, 900))
def low_rank_update(x: Tensor, down: Tensor, up: Tensor, base: Tensor) -> Tensor:
    return base + (x @ down) @ up * 0.5


@of((700, 600))
def gram_matrix(x: Tensor) -> Tensor:
    return x @ x.T


@of((700, 600))
def covariance(x: Tensor) -> Tensor:
    centered = x - x.mean(dim=0, keepdim=True)
    return centered.T @ centered / 699.0


@of(HEADS, HEADS)
def scaled_scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) * 0.144


@of((6, 4, 200, 200), HEADS)
def weighted_values(weights: Tensor, v: Tensor) -> Tensor:
    return weights @ v


@of(HEADS, HEADS, HEADS)
def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) * 0.144
    future = torch.ones(200, 200, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(future, -1e9), dim=-1) @ v


@of(HEADS, HEADS, HEADS, (200, 200))
def biased_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) * 0.144 + bias, dim=-1) @ v


# -- along a sequence ---------------------------------------------------------------------------------------


@of(ROWS, WIDTH)
def running_mean(x: Tensor, counts: Tensor) -> Tensor:
    return torch.cumsum(x, dim=-1) * counts


@of(ROWS, WIDTH)
def discounted_sum(x: Tensor, discount: Tensor) -> Tensor:
    return torch.cumsum(x * discount, dim=-1)


@of(ROWS)
def running_maximum(x: Tensor) -> Tensor:
    return torch.cummax(x, dim=-1).values


@of(ROWS)
def running_minimum(x: Tensor) -> Tensor:
    return torch.cummin(x, dim=-1).values


# -- windows ------------------------------------------------------------------------------------------------


@of(IMAGE)
def pooled_relu_max(x: Tensor) -> Tensor:
    return F.max_pool2d(torch.relu(x), 3, stride=2)


@of(IMAGE)
def dilation_gradient(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 5, stride=1, padding=2) - x


@of(IMAGE)
def smoothed_image(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, 5, stride=1, padding=2) * 0.5 + x * 0.5


@of(IMAGE)
def root_mean_pool(x: Tensor) -> Tensor:
    return torch.sqrt(F.avg_pool2d(x * x, 3, stride=2) + 1e-6)


@of((4, 16, 70, 90), (32, 16, 3, 3))
def conv_relu(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(F.conv2d(x, weight, padding=1))


@of((4, 16, 70, 90), (32, 16, 3, 3), (32,))
def conv_silu_scale(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.conv2d(x, weight, bias)) * 0.8


@of(IMAGE, (24, 1, 3, 3))
def depthwise_relu6(x: Tensor, weight: Tensor) -> Tensor:
    return F.relu6(F.conv2d(x, weight, padding=1, groups=24))


@of(IMAGE, (24, 1, 5, 5))
def blurred_channels(x: Tensor, weight: Tensor) -> Tensor:
    return x - F.conv2d(x, weight, padding=2, groups=24)


@of(SEQUENCE, (48, 40, 4), (48,))
def causal_conv1d(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.conv1d(F.pad(x, (3, 0)), weight, bias)


@of(SEQUENCE, (48, 40, 5), (48, 40, 5))
def gated_conv1d(x: Tensor, weight: Tensor, gate: Tensor) -> Tensor:
    return F.conv1d(x, weight) * torch.sigmoid(F.conv1d(x, gate))
