"""What kinds of operators there are, and what one element of a pointwise one costs at least.

Costs are instructions that no formulation of the operator avoids, in three classes. An operator that is not
in these tables is unknown: counting gives it, and what it reads, nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Operation(StrEnum):
    """Classes of operations that run at different speeds."""

    CONTRACTION = "contraction"  # of products and convolutions; a multiply-add counts two
    ARITHMETIC = "arithmetic"  # add, multiply, divide, square root
    COMPARE = "compare"  # maximum, minimum, comparisons, selections
    SPECIAL = "special"  # exp, log, tanh, erf, ...


@dataclass(frozen=True)
class Cost:
    """Per element."""

    arithmetic: float = 0
    compare: float = 0
    special: float = 0


_FREE = Cost()
_ADD = Cost(arithmetic=1)
_COMPARE = Cost(compare=1)
_SPECIAL = Cost(special=1)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _each(names: str, cost: Cost) -> dict[str, Cost]:
    return dict.fromkeys(names.split(), cost)


POINTWISE = {
    **_each("neg abs cast clone sign positive logical_not bitwise_not copysign where masked_fill", _FREE),
    **_each("isnan isinf isfinite", _FREE),
    **_each("add sub rsub mul div sqrt rsqrt reciprocal square lerp pow", _ADD),
    **_each("addcmul addcdiv softsign", Cost(arithmetic=2)),
    **_each("relu relu6 clamp clamp_min clamp_max hardtanh threshold softshrink hardshrink", _COMPARE),
    **_each("maximum minimum fmax fmin floor ceil round trunc fmod remainder", _COMPARE),
    **_each("eq ne lt le gt ge logical_and logical_or logical_xor", _COMPARE),
    **_each("bitwise_and bitwise_or bitwise_xor", _COMPARE),
    **_each("leaky_relu prelu _prelu_kernel hardsigmoid hardswish", Cost(arithmetic=1, compare=1)),
    **_each("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh", _SPECIAL),
    **_each("asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid log_sigmoid_forward logit", _SPECIAL),
    **_each("softplus elu celu selu xlogy logaddexp hypot", _SPECIAL),
    **_each("gelu silu mish", Cost(arithmetic=1, special=1)),
}
# Only one of these branches may be read for an element; which one is decided by data.
SELECTIONS = {"where": ("self", "other"), "masked_fill": ("self", "value")}

REDUCTION_COSTS = {
    **_each("sum mean nansum prod norm", _ADD),
    **_each("amax amin argmax argmin max min any all aminmax median nanmedian mode count_nonzero", _COMPARE),
    **_each("var std var_mean std_mean", Cost(arithmetic=3)),
    "logsumexp": Cost(arithmetic=1, special=1),
}
SCANS = {
    **_each("cumsum cumprod", _ADD),
    **_each("cummax cummin", _COMPARE),
    "logcumsumexp": _SPECIAL,
}
LOSSES = {
    **_each("mse_loss smooth_l1_loss huber_loss", Cost(arithmetic=3)),
    **_each("soft_margin_loss binary_cross_entropy", Cost(arithmetic=2, special=1)),
}
SORTS = frozenset({"sort", "topk", "kthvalue", "argsort"})
SOFTMAXES = frozenset({"softmax", "log_softmax"})
PRODUCTS = frozenset({"mm", "bmm", "mv", "dot"})
MAX_POOLS = frozenset({"max_pool1d", "max_pool2d", "max_pool3d"})
AVERAGE_POOLS = frozenset({"avg_pool1d", "avg_pool2d", "avg_pool3d"})
ADAPTIVE_POOLS = frozenset({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"})
POOLS = MAX_POOLS | AVERAGE_POOLS
FLIPS = frozenset({"flip", "roll"})
SPLITS = frozenset({"split", "split_with_sizes", "unbind", "chunk"})
VIEWS = frozenset({"view", "permute", "unsqueeze", "squeeze", "expand", "select", "slice"}) | FLIPS | SPLITS

# Finite for every finite input of ordinary size; what is missing here is tried out.
DEFINED_EVERYWHERE = SOFTMAXES | SORTS | PRODUCTS | POOLS | ADAPTIVE_POOLS | VIEWS
DEFINED_EVERYWHERE |= _names(
    "add sub rsub mul neg abs relu relu6 clamp clamp_min clamp_max hardtanh leaky_relu"
)
DEFINED_EVERYWHERE |= _names("tanh sigmoid gelu silu mish selu elu softplus softsign hardsigmoid hardswish")
DEFINED_EVERYWHERE |= _names("maximum minimum sum mean amax amin max min argmax argmin cumsum convolution")
DEFINED_EVERYWHERE |= _names("layer_norm group_norm batch_norm triu tril diag_embed cat stack nll_loss")
DEFINED_EVERYWHERE |= _names("mse_loss smooth_l1_loss huber_loss")

# Linear in each input: a linear reduction that follows may be done first, on less data.
LINEAR_REDUCTIONS = frozenset({"sum", "mean", "convolution"}) | PRODUCTS | AVERAGE_POOLS | ADAPTIVE_POOLS
SCALAR_AFFINE = frozenset({"add", "sub", "rsub", "mul", "div"})
LINEAR = SCALAR_AFFINE | VIEWS | {"neg", "cast", "clone", "cat", "stack", "constant_pad_nd", "triu", "tril"}
