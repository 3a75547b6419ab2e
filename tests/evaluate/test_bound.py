"""The running error bound: covers honest rounding, refuses less, survives views and writes in place."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cupilot.errors import ProblemError
from cupilot.evaluate import patterns
from cupilot.evaluate.bound import Bounded, run_with_bound
from cupilot.evaluate.rounding import FACTOR, Rounding

ROUNDING = Rounding()
Function = Callable[..., object]


def bounded(
    function: Function, *tensors: torch.Tensor, coherent: bool = False
) -> tuple[tuple[Bounded, ...], tuple[str, ...]]:
    named = {str(i): t for i, t in enumerate(tensors)}
    return run_with_bound(lambda t: outputs(function(*t.values())), named, ROUNDING, coherent=coherent)


def outputs(result: object) -> tuple[torch.Tensor, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)  # type: ignore[return-value]


def allowed(one: Bounded) -> torch.Tensor:
    assert one.error is not None
    return FACTOR * ROUNDING.unit * (one.error + one.value.abs() + ROUNDING.underflow)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


V, X, Q = draw(6, 40), draw(2, 4, 6, 6), draw(2, 2, 8, 4)
IMAGES, LABELS = draw(3, 5), torch.tensor([1, 4, 0])

ACTIVATIONS = """relu gelu silu mish elu selu celu softplus softsign hardswish hardsigmoid logsigmoid
leaky_relu tanhshrink softshrink relu6 normalize"""
OPERATORS: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    **{name: (getattr(F, name), (V,)) for name in ACTIVATIONS.split()},
    "softmax": (lambda x: x.softmax(-1), (V,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (V,)),
    "logsumexp": (lambda x: x.logsumexp(1), (V,)),
    "layer_norm": (lambda x: F.layer_norm(x, (40,)), (V,)),
    "rms_norm": (lambda x: F.rms_norm(x, (40,)), (V,)),
    "group_norm": (lambda x: F.group_norm(x, 2), (X,)),
    "instance_norm": (F.instance_norm, (X,)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (X,)),
    "sum": (lambda x: x.sum(1), (V,)),
    "mean": (lambda x: x.mean(), (V,)),
    "std": (lambda x: x.std(1), (V,)),
    "var": (lambda x: x.var(), (V,)),
    "norm_1": (lambda x: x.norm(p=1, dim=1), (V,)),
    "norm_3": (lambda x: x.norm(p=3, dim=1), (V,)),
    "cumsum": (lambda x: x.cumsum(1), (V,)),
    "cumprod": (lambda x: x.cumprod(1), (V,)),
    "prod": (lambda x: x.prod(1), (V,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (V,)),
    "matmul": (lambda x: x @ x.T, (V,)),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), (V, V)),
    "linear": (lambda x, w, b: F.linear(x, w, b), (draw(3, 9), draw(5, 9), draw(5))),
    "baddbmm": (lambda q: torch.baddbmm(q[0] @ q[0].mT, q[0], q[0].mT, beta=0.5, alpha=-2.0), (Q,)),
    "bilinear": (F.bilinear, (draw(3, 4), draw(3, 5), draw(2, 4, 5))),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1, groups=2, dilation=2), (X, draw(6, 2, 2, 2))),
    "conv3d": (F.conv3d, (draw(1, 2, 5, 5, 5), draw(3, 2, 2, 2, 2))),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1),
        (X, draw(4, 3, 3, 3)),
    ),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3), (X,)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x[0], 2), (X,)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), (X,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 1, 1), (X,)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2.0, 2), (X,)),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), (Q,)),
    "causal_attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (Q,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.1), (IMAGES,)),
    "mse": (F.mse_loss, (V, V.flip(0))),
    "huber": (F.huber_loss, (V, V.flip(0))),
    "smooth_l1": (F.smooth_l1_loss, (V, V.flip(0))),
    "triplet": (F.triplet_margin_loss, (V, V.flip(0), V.roll(1))),
    "bce_with_logits": (lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), (V, V.flip(0))),
    "cosine": (F.cosine_similarity, (V, V.flip(0))),
    "cdist": (torch.cdist, (V, V.flip(0) + 1)),
    "bilinear_upsampling": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (X,)),
    "embedding": (lambda w: F.embedding(LABELS, w), (V,)),
    "scatter_add": (lambda x: torch.zeros_like(x).scatter_add(1, torch.zeros(6, 40).long(), x), (V,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_frameworks_own_rounding_is_allowed_and_the_bound_is_not_vague(name: str) -> None:
    function, tensors = OPERATORS[name]
    (one, *_), sketched = bounded(function, *tensors)
    (eager, *_) = outputs(function(*tensors))
    assert ((eager.double() - one.value).abs() <= allowed(one)).all()
    assert float((allowed(one) / one.value.abs().clamp(min=1e-30)).median()) < 0.01
    assert sketched == ()


@pytest.mark.parametrize("name", ["relu", "softmax", "matmul", "layer_norm", "sum", "conv2d", "attention"])
def test_rounding_the_result_to_half_precision_is_not_allowed(name: str) -> None:
    function, tensors = OPERATORS[name]
    (one, *_), _ = bounded(function, *tensors)
    rounded = one.value.half().double()
    assert ((rounded - one.value).abs() > allowed(one)).any()


def test_a_write_through_a_view_reaches_the_bound_of_its_base() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:3].mul_(1000.0)
        y.view(-1)[::2].add_(5.0)
        return y

    (one,), _ = bounded(function, V)
    assert one.error is not None
    assert float(one.error[1].mean()) > 100 * float(one.error[0].mean())
    assert float(one.error[0, ::2].min()) >= 5.0
    assert torch.equal(one.value, function(V.double()))


def test_bounds_of_dead_tensors_never_reach_new_ones() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            huge = x * 1e20
            del huge
            gc.collect(0)
            fresh = torch.zeros(6, 40)
        return fresh + x

    (one,), _ = bounded(function, V)
    assert one.error is not None
    assert torch.equal(one.error, V.double().abs() * 2 + ROUNDING.underflow)


def test_a_kink_inside_the_error_of_a_computed_value_counts() -> None:
    (one,), _ = bounded(lambda x: torch.relu((x + 1e6) - 1e6), V)
    assert one.error is not None
    assert float(one.error[V.abs() < 1].min()) > 1e5


def test_a_branch_on_a_computed_value_near_its_threshold_is_in_doubt() -> None:
    (one,), _ = bounded(lambda x: ((x + 1e8) > 1e8).to(x.dtype), V)
    assert (allowed(one) >= 1.0).any()
    (exact,), _ = bounded(lambda x: (x > 0).to(x.dtype), V)
    assert (allowed(exact) < 1e-5).all()


def test_an_unknown_operator_is_sampled_and_named() -> None:
    (one,), sketched = bounded(lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"), X)
    eager = F.interpolate(X, scale_factor=2.0, mode="bicubic")
    assert sketched == ("upsample_bicubic2d",)
    assert ((eager.double() - one.value).abs() <= allowed(one)).all()


def test_indices_remember_what_they_were_chosen_from() -> None:
    (value, index), _ = bounded(lambda x: x.max(dim=0), V)
    assert value.selection is None
    assert index.selection is not None
    assert index.selection.errors is None
    assert index.selection.values.shape == (40, 6)
    (best,), _ = bounded(lambda x: (x @ x.T).argmax(1, keepdim=True).squeeze(1).clone(), V)
    assert best.selection is not None
    assert best.selection.errors is not None


def test_modules_in_single_precision_inside_are_computed_in_double() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        weights = torch.ones(40, dtype=torch.float32)
        return (x.float().pow(2) @ weights).to(torch.float32)

    (one,), _ = bounded(function, V)
    assert one.value.dtype == torch.float64
    assert torch.allclose(one.value, V.double().pow(2).sum(1), rtol=1e-13)


def test_a_declared_rounding_of_products_widens_their_bound() -> None:
    (plain,), _ = run_with_bound(lambda t: (t["x"] @ t["x"].T,), {"x": V}, ROUNDING)
    (loose,), _ = run_with_bound(lambda t: (t["x"] @ t["x"].T,), {"x": V}, Rounding("f32", "tf32"))
    rounded = (V.view(torch.int32) & ~0x1FFF).view(torch.float32).double()
    error = (rounded @ rounded.T - plain.value).abs()
    assert (error <= allowed(loose)).all()
    assert (error > allowed(plain)).any()


@pytest.mark.parametrize("function", [lambda x: F.dropout(x), lambda x: torch.fft.rfft(x).abs()])
def test_random_and_complex_references_are_refused(function: Function) -> None:
    with pytest.raises(ProblemError):
        bounded(function, V)


def variance_in_order(x: torch.Tensor) -> torch.Tensor:
    """Plain loops in single precision, as an honest kernel may have them."""
    columns = x.shape[1]
    mean = torch.from_numpy(np.add.accumulate(x.numpy(), axis=1))[:, -1:] / columns
    squares = np.add.accumulate(((x - mean) ** 2).numpy(), axis=1)[:, -1]
    return torch.from_numpy(squares) / (columns - 1)


@pytest.mark.parametrize("columns", [301, 1801, 4096, 8192])
@pytest.mark.parametrize("pattern", ["selection", "sparse", "edges", "spikes"])
def test_roundings_that_all_push_one_way_are_honest(pattern: str, columns: int) -> None:
    """Zeros become equal terms when the mean is subtracted: what adding them loses does not cancel."""
    x = patterns.make(pattern, (40, columns), 1, torch.Generator().manual_seed(1))
    (one,), _ = bounded(lambda t: t.var(-1), x)
    error = (variance_in_order(x).double() - one.value).abs()
    assert (error <= allowed(one)).all()
    live = one.value > 0
    assert (allowed(one)[live] < 1e-3 * one.value[live]).all(), "and half precision is still seen"


def test_terms_that_differ_are_allowed_no_more_than_before() -> None:
    x = draw(40, 4096)
    (one,), _ = bounded(lambda t: t.sum(-1), x)
    assert (allowed(one) <= 1.5 * FACTOR * ROUNDING.unit * (32 + 3) * x.double().abs().sum(-1)).all()
