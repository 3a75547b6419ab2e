"""Entries for operators that reduce: sums and extrema, softmaxes, norms, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cupilot.author.axes import Dims, Group, UnsupportedError
from cupilot.author.lowering import Lowering, Tensor, entry, number
from cupilot.problem.graph import Node

_NO_TARGET = -100.0


@entry("sum", "mean", "amax", "amin", "prod")
def _plain(low: Lowering, node: Node) -> None:
    x = low.operand(node, "self")
    op = {"amax": "max", "amin": "min"}.get(node.op, node.op)
    over = low.over(x, node.integers("dims"))
    low.give(low.build.reduce(op, low.math.real(x.node), over), low.reduced(x, node))


@entry("argmax", "argmin")
def _place(low: Lowering, node: Node) -> None:
    x = low.operand(node, "self")
    over = low.over(x, node.integers("dims") or range(len(x.dims)))
    low.give(low.build.reduce(node.op, low.math.real(x.node), over), low.reduced(x, node))


@entry("max", "min")
def _extremum(low: Lowering, node: Node) -> None:
    """What, and where."""
    x = low.operand(node, "self")
    over, dims, real = low.over(x, node.integers("dims")), low.reduced(x, node), low.math.real(x.node)
    value, place = (low.build.reduce(op, real, over) for op in (node.op, f"arg{node.op}"))
    low.give_all(Tensor(value, dims), Tensor(place, dims))


@entry("norm")
def _norm(low: Lowering, node: Node) -> None:
    m, x, order = low.math, low.operand(node, "self"), number(node, "ord", 2.0)
    over, dims = low.over(x, node.integers("dims")), low.reduced(x, node)
    size = m.do("abs", x.node)
    if order == 1:
        result = low.build.reduce("sum", size, over)
    elif order == 2:
        result = m.do("sqrt", low.build.reduce("sum", m.mul(x.node, x.node), over))
    elif order == math.inf:
        result = low.build.reduce("max", size, over)
    elif order == -math.inf:
        result = low.build.reduce("min", size, over)
    elif order == 0:
        result = low.build.reduce("sum", m.real(m.do("ne", x.node, m.zero)), over)
    else:
        result = m.do("pow", low.build.reduce("sum", m.power(size, order), over), m.num(1 / order))
    low.give(result, dims)


def _moments(low: Lowering, x: int, over: Group, correction: float = 0.0) -> tuple[int, int, int]:
    """The deviations from the mean, the mean, the variance."""
    m, build = low.math, low.build
    mean = build.reduce("mean", x, over)
    away = m.sub(x, mean)
    square = m.mul(away, away)
    if correction == 0:
        return away, mean, build.reduce("mean", square, over)
    free = m.sub(build.extent(over), m.num(correction))
    return away, mean, m.div(build.reduce("sum", square, over), m.do("maximum", free, m.zero))


@entry("var", "std", "var_mean", "std_mean")
def _variance(low: Lowering, node: Node) -> None:
    x = low.operand(node, "self")
    over, dims = low.over(x, node.integers("dims")), low.reduced(x, node)
    _, mean, spread = _moments(low, x.node, over, number(node, "correction", 1))
    if node.op.startswith("std"):
        spread = low.math.do("sqrt", spread)
    low.give_all(Tensor(spread, dims), Tensor(mean, dims))


def _softmax_parts(low: Lowering, x: int, over: Group) -> tuple[int, int, int]:
    """x less its maximum, the exponentials, their sum."""
    m = low.math
    shifted = m.sub(x, low.build.reduce("max", x, over))
    e = m.do("exp", shifted)
    return shifted, e, low.build.reduce("sum", e, over)


@entry("softmax", "log_softmax")
def _softmax(low: Lowering, node: Node) -> None:
    m, x = low.math, low.operand(node, "self")
    shifted, e, total = _softmax_parts(low, x.node, low.over(x, [node.integer("dim")]))
    low.give(m.div(e, total) if node.op == "softmax" else m.sub(shifted, m.do("log", total)), x.dims)


@entry("logsumexp")
def _log_sum_exp(low: Lowering, node: Node) -> None:
    m, x = low.math, low.operand(node, "self")
    over = low.over(x, node.integers("dims"))
    peak = low.build.reduce("max", x.node, over)
    peak = m.select(m.do("eq", m.do("abs", peak), m.num(math.inf)), m.zero, peak)
    total = low.build.reduce("sum", m.do("exp", m.sub(x.node, peak)), over)
    low.give(m.add(m.do("log", total), peak), low.reduced(x, node))


# -- norms -------------------------------------------------------------------------------------------------


def _scaled(low: Lowering, node: Node, value: int, dims: Dims, at: Sequence[int]) -> None:
    """Weight and bias lie along the dimensions `at`."""
    for role, op in (("weight", "mul"), ("bias", "add")):
        if node.input(role):
            given = low.operand(node, role)
            for mine, theirs in zip((dims[d] for d in at), given.dims, strict=True):
                low.build.axes.unite(mine, theirs)
            value = low.math.do(op, value, given.node)
    low.give(value, dims)


def _normalised(low: Lowering, away: int, variance: int, eps: float) -> int:
    m = low.math
    return m.mul(away, m.do("rsqrt", m.add(variance, m.num(eps))))


@entry("layer_norm")
def _layer_norm(low: Lowering, node: Node) -> None:
    x, dims = low.operand(node, "input"), node.integers("dims")
    away, _, variance = _moments(low, x.node, low.over(x, dims))
    _scaled(low, node, _normalised(low, away, variance, number(node, "eps")), x.dims, dims)


@entry("group_norm")
def _group_norm(low: Lowering, node: Node) -> None:
    x, groups = low.operand(node, "input"), node.integer("group")
    outer, inner = low.build.axes.split(x.dims[1], groups)
    for axis in low.build.axes.resolve(outer):
        low.build.axes.constants[axis] = low.build.axes.extents[axis]
    over = (*inner, *low.over(x, range(2, len(x.dims))))
    away, _, variance = _moments(low, x.node, over)
    dims = (x.dims[0], (*outer, *inner), *x.dims[2:])
    _scaled(low, node, _normalised(low, away, variance, number(node, "eps")), dims, [1])


@entry("batch_norm")
def _batch_norm(low: Lowering, node: Node) -> None:
    m, x = low.math, low.operand(node, "input")
    if node.attributes.get("training"):
        over = low.over(x, [d for d in range(len(x.dims)) if d != 1])
        away, _, variance = _moments(low, x.node, over)
    else:
        mean, var = low.operand(node, "running_mean"), low.operand(node, "running_var")
        for given in (mean, var):
            low.build.axes.unite(x.dims[1], given.dims[0])
        away, variance = m.sub(x.node, mean.node), var.node
    _scaled(low, node, _normalised(low, away, variance, number(node, "eps")), x.dims, [1])


# -- losses ------------------------------------------------------------------------------------------------


@entry("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy")
def _distance(low: Lowering, node: Node) -> None:
    x, y = low.operand(node, "self"), low.operand(node, "target")
    dims = low.together(x, y)
    if low.optional(node, "weight") is not None:
        raise UnsupportedError("a weighted loss")
    low.settle_loss(node, _each(low, node, x.node, y.node), dims)


def _each(low: Lowering, node: Node, x: int, y: int) -> int:
    m = low.math
    away = m.sub(x, y)
    size = m.do("abs", away)
    half_square = m.scaled(m.mul(away, away), 0.5)
    match node.op:
        case "mse_loss":
            return m.mul(away, away)
        case "l1_loss":
            return size
        case "smooth_l1_loss":
            beta = number(node, "beta", 1.0)
            if beta == 0:
                return size
            near = m.do("lt", size, m.num(beta))
            return m.select(near, m.div(half_square, m.num(beta)), m.sub(size, m.num(beta / 2)))
        case "huber_loss":
            delta = number(node, "delta", 1.0)
            far = m.scaled(m.sub(size, m.num(delta / 2)), delta)
            return m.select(m.do("le", size, m.num(delta)), half_square, far)
        case "soft_margin_loss":
            return m.do("log1p", m.do("exp", m.mul(m.do("neg", y), x)))
        case _:  # binary cross entropy: logarithms end at -100
            log_x = m.at_least(m.do("log", x), -100)
            log_not = m.at_least(m.do("log1p", m.do("neg", x)), -100)
            return m.sub(m.mul(m.sub(y, m.one), log_not), m.mul(y, log_x))


@entry("nll_loss", "nll_loss2d")
def _nll_loss(low: Lowering, node: Node) -> None:
    m, x, target = low.math, low.operand(node, "self"), low.operand(node, "target")
    none = number(node, "ignore_index", _NO_TARGET)
    rest = tuple(g for d, g in enumerate(x.dims) if d != (0 if len(x.dims) == 1 else 1))
    dims = tuple(low.build.axes.unite(a, b) for a, b in zip(rest, target.dims, strict=True))
    over = low.over(x, [0 if len(x.dims) == 1 else 1])
    wanted = m.do("ne", target.node, m.num(none))
    each = m.do("neg", low.build.pick(x.node, target.node, over, none))
    weight = m.one
    if node.input("weight"):
        given = low.operand(node, "weight")
        low.build.axes.unite(low.over(x, [0 if len(x.dims) == 1 else 1]), given.dims[0])
        weight = low.build.pick(given.node, target.node, over, none)
    each = m.select(wanted, m.mul(each, weight), m.zero)
    everything = tuple(axis for group in dims for axis in group)
    if node.integer("reduction", 1) == 1:
        count = low.build.reduce("sum", m.select(wanted, weight, m.zero), everything)
        low.give(m.div(low.build.reduce("sum", each, everything), count), ())
    else:
        low.settle_loss(node, each, dims)


# -- elementwise, with operands of their own -----------------------------------------------------------------


@entry("where", "masked_fill")
def _where(low: Lowering, node: Node) -> None:
    roles = ("condition", "self", "other") if node.op == "where" else ("mask", "value", "self")
    mask, one, two = (low.operand(node, role) for role in roles)
    m = low.math
    result = m.select(m.mask(mask.node), m.real(one.node), m.real(two.node))
    low.give(result, low.together(mask, one, two))


@entry("addcmul", "addcdiv")
def _add_product(low: Lowering, node: Node) -> None:
    m = low.math
    x, a, b = (low.operand(node, role) for role in ("self", "tensor1", "tensor2"))
    term = m.do("mul" if node.op == "addcmul" else "div", a.node, b.node)
    low.give(m.add(x.node, m.scaled(term, number(node, "value", 1))), low.together(x, a, b))


@entry("lerp")
def _lerp(low: Lowering, node: Node) -> None:
    m = low.math
    x, end, weight = (low.operand(node, role) for role in ("self", "end", "weight"))
    result = m.add(x.node, m.mul(weight.node, m.sub(end.node, x.node)))
    low.give(result, low.together(x, end, weight))


@entry("pow")
def _power(low: Lowering, node: Node) -> None:
    m, x, exponent = low.math, low.operand(node, "self"), low.operand(node, "exponent")
    known = low.build.value_of(exponent.node)
    result = m.power(x.node, known) if known is not None else m.do("pow", x.node, exponent.node)
    low.give(result, low.together(x, exponent))


@entry("clamp", "clamp_min", "clamp_max")
def _clamp(low: Lowering, node: Node) -> None:
    """Bounds that are tensors, too; NaN stays, and the upper bound wins."""
    m, x = low.math, low.operand(node, "self")
    value, dims = x.node, low.together(x)
    for role, op in (("min", "maximum"), ("max", "minimum")):
        bound = low.optional(node, role)
        if bound is None:
            continue
        dims = low.together(Tensor(value, dims), bound)
        known = low.build.value_of(bound.node)
        if known is None:
            value = m.do(op, value, bound.node)
        else:
            value = (m.at_least if role == "min" else m.at_most)(value, known)
    low.give(value, dims)


@entry("fill", "ones_like", "zeros_like", "full_like")
def _fill(low: Lowering, node: Node) -> None:
    default = {"ones_like": 1.0, "zeros_like": 0.0}.get(node.op)
    value = number(node, "fill_value", number(node, "value", 0.0)) if default is None else default
    low.give(low.build.number(value), tuple(map(low.build.axes.new, node.outputs[0].shape)))


@entry("empty", "empty_like")
def _empty(low: Lowering, node: Node) -> None:
    low.give(low.math.zero, tuple(map(low.build.axes.new, node.outputs[0].shape)))
