"""What elementwise operators compute, spelled out in a few primitive operations.

NaN goes where the framework lets it go: clamps and rectifiers keep it, comparisons are false with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from cupilot.author.axes import UnsupportedError
from cupilot.author.program import Builder
from cupilot.problem.graph import Attribute

Attributes = Mapping[str, Attribute]


class Arithmetic:
    """Short names for the nodes that a builder makes."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.zero, self.one = build.number(0), build.number(1)

    def num(self, value: float) -> int:
        return self.build.number(value)

    def do(self, op: str, *args: int) -> int:
        return self.build.apply(op, *args)

    def add(self, a: int, b: int) -> int:
        return self.do("add", a, b)

    def sub(self, a: int, b: int) -> int:
        return self.do("sub", a, b)

    def mul(self, a: int, b: int) -> int:
        return self.do("mul", a, b)

    def div(self, a: int, b: int) -> int:
        return self.do("div", a, b)

    def scaled(self, a: int, factor: float) -> int:
        return self.mul(a, self.num(factor))

    def select(self, mask: int, a: int, b: int) -> int:
        return self.do("select", mask, a, b)

    def real(self, a: int) -> int:
        """A truth value as a number; numbers stay."""
        return self.select(a, self.one, self.zero) if self.is_mask(a) else a

    def mask(self, a: int) -> int:
        return a if self.is_mask(a) else self.do("ne", a, self.zero)

    def is_mask(self, a: int) -> bool:
        node = self.build.nodes[a]
        if node.op == "select":
            return self.is_mask(node.args[1])
        loaded = node.op in ("load", "pick") and self.build.tensors[node.name] == "bool"
        return node.op in _MASKS or loaded

    def at_least(self, x: int, low: float) -> int:
        return self.select(self.do("lt", x, self.num(low)), self.num(low), x)

    def at_most(self, x: int, high: float) -> int:
        return self.select(self.do("gt", x, self.num(high)), self.num(high), x)

    def sigmoid(self, x: int) -> int:
        """Without overflow: the exponential of what is negative."""
        e = self.do("exp", self.do("neg", self.do("abs", x)))
        top = self.select(self.do("lt", x, self.zero), e, self.one)
        return self.div(top, self.add(self.one, e))

    def softplus(self, x: int, beta: float = 1.0, threshold: float = 20.0) -> int:
        t = self.scaled(x, beta)
        soft = self.do("log1p", self.do("exp", t))
        if beta != 1.0:
            soft = self.div(soft, self.num(beta))
        return self.select(self.do("gt", t, self.num(threshold)), x, soft)

    def power(self, x: int, exponent: float) -> int:
        """Small whole and half exponents as products and roots."""
        match exponent:
            case 0.0:
                return self.one
            case 0.5:
                return self.do("sqrt", x)
            case -0.5:
                return self.do("rsqrt", x)
            case 1.5:
                return self.mul(x, self.do("sqrt", x))
        if exponent != int(exponent) or abs(exponent) > 8:
            return self.do("pow", x, self.num(exponent))
        result, square, rest = None, x, abs(int(exponent))
        while rest:
            if rest & 1:
                result = square if result is None else self.mul(result, square)
            rest >>= 1
            if rest:
                square = self.mul(square, square)
        assert result is not None
        return self.div(self.one, result) if exponent < 0 else result


_MASKS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not"})


def _get(attributes: Attributes, key: str, default: float) -> float:
    value = attributes.get(key, default)
    if not isinstance(value, bool | int | float):
        raise UnsupportedError(f"{key} is no number")
    return float(value)


def _add(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    return m.add(m.real(a), m.scaled(m.real(b), _get(at, "alpha", 1)))


def _sub(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    return m.sub(m.real(a), m.scaled(m.real(b), _get(at, "alpha", 1)))


def _rsub(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    return _sub(m, b, a, at)


def _div(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    quotient = m.div(m.real(a), m.real(b))
    match at.get("rounding_mode"):
        case None:
            return quotient
        case "floor":
            return m.do("floor", quotient)
        case _:
            return m.do("trunc", quotient)


def _plain(op: str) -> Callable[[Arithmetic, int, int, Attributes], int]:
    return lambda m, a, b, at: m.do(op, m.real(a), m.real(b))


def _xlogy(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    product = m.mul(a, m.do("log", b))
    return m.select(m.do("ne", b, b), b, m.select(m.do("eq", a, m.zero), m.zero, product))


def _prelu(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    return m.select(m.do("gt", a, m.zero), a, m.mul(a, b))


def _logic(op: str) -> Callable[[Arithmetic, int, int, Attributes], int]:
    return lambda m, a, b, at: m.do(op, m.mask(a), m.mask(b))


def _floor_divide(m: Arithmetic, a: int, b: int, at: Attributes) -> int:
    return m.do("floor", m.div(a, b))


Binary = Callable[[Arithmetic, int, int, Attributes], int]
BINARY: Mapping[str, Binary] = {
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "div": _div,
    "mul": _plain("mul"),
    "true_divide": _plain("div"),
    "maximum": _plain("maximum"),
    "minimum": _plain("minimum"),
    "atan2": _plain("atan2"),
    "xlogy": _xlogy,
    "_prelu_kernel": _prelu,
    "bitwise_and": _logic("and"),
    "bitwise_or": _logic("or"),
    "bitwise_xor": _logic("xor"),
    "logical_and": _logic("and"),
    "logical_or": _logic("or"),
    "logical_xor": _logic("xor"),
}
COMPARISONS: Mapping[str, Binary] = {op: _plain(op) for op in ("lt", "le", "gt", "ge", "eq", "ne")}

# -- one operand ---------------------------------------------------------------------------------------------

Unary = Callable[[Arithmetic, int, Attributes], int]


def unary(m: Arithmetic, op: str, x: int, at: Attributes) -> int:
    if op not in UNARY:
        raise UnsupportedError(f"no entry for {op}")
    return UNARY[op](m, x, at)


def _clamp(m: Arithmetic, x: int, at: Attributes) -> int:
    low, high = at.get("min", at.get("min_val")), at.get("max", at.get("max_val"))
    if isinstance(low, int | float):
        x = m.at_least(x, float(low))
    return m.at_most(x, float(high)) if isinstance(high, int | float) else x


def _relu(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.at_least(x, 0)


def _leaky(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.select(m.do("gt", x, m.zero), x, m.scaled(x, _get(at, "negative_slope", 0.01)))


def _silu(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.mul(x, m.sigmoid(x))


def _gelu(m: Arithmetic, x: int, at: Attributes) -> int:
    half = m.scaled(x, 0.5)
    if at.get("approximate") == "tanh":
        cube = m.mul(m.mul(x, x), x)
        inner = m.scaled(m.add(x, m.scaled(cube, 0.044715)), math.sqrt(2 / math.pi))
        return m.mul(half, m.add(m.one, m.do("tanh", inner)))
    return m.mul(half, m.add(m.one, m.do("erf", m.scaled(x, math.sqrt(0.5)))))


def _elu(m: Arithmetic, x: int, at: Attributes) -> int:
    alpha, scale, inside = (_get(at, key, 1.0) for key in ("alpha", "scale", "input_scale"))
    low = m.scaled(m.do("expm1", m.scaled(x, inside)), alpha * scale)
    return m.select(m.do("gt", x, m.zero), m.scaled(x, scale), low)


def _celu(m: Arithmetic, x: int, at: Attributes) -> int:
    alpha = _get(at, "alpha", 1.0)
    low = m.scaled(m.do("expm1", m.div(x, m.num(alpha))), alpha)
    return m.select(m.do("gt", x, m.zero), x, low)


def _softplus(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.softplus(x, _get(at, "beta", 1), _get(at, "threshold", 20))


def _log_sigmoid(m: Arithmetic, x: int, at: Attributes) -> int:
    soft = m.do("log1p", m.do("exp", m.do("neg", m.do("abs", x))))
    return m.sub(m.at_most(x, 0), soft)


def _mish(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.mul(x, m.do("tanh", m.softplus(x)))


def _hard_sigmoid(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.div(m.at_most(m.at_least(m.add(x, m.num(3)), 0), 6), m.num(6))


def _hard_swish(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.div(m.mul(x, m.at_most(m.at_least(m.add(x, m.num(3)), 0), 6)), m.num(6))


def _hard_shrink(m: Arithmetic, x: int, at: Attributes) -> int:
    inside = m.do("le", m.do("abs", x), m.num(_get(at, "lambd", 0.5)))
    return m.select(inside, m.zero, x)


def _soft_shrink(m: Arithmetic, x: int, at: Attributes) -> int:
    bound = _get(at, "lambd", 0.5)
    above, below = m.do("gt", x, m.num(bound)), m.do("lt", x, m.num(-bound))
    middle = m.scaled(x, 0.0)  # zero, and NaN stays NaN
    return m.select(above, m.sub(x, m.num(bound)), m.select(below, m.add(x, m.num(bound)), middle))


def _threshold(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.select(m.do("le", x, m.num(_get(at, "threshold", 0))), m.num(_get(at, "value", 0)), x)


def _cast(m: Arithmetic, x: int, at: Attributes) -> int:
    target = at.get("dtype")
    if target == "bool":
        return m.mask(x)
    if target not in ("f32", "f64", "f16"):
        raise UnsupportedError(f"a cast to {target}")
    return m.real(x)


def _pow(m: Arithmetic, x: int, at: Attributes) -> int:
    return m.power(x, _get(at, "exponent", 1))


def _sign(m: Arithmetic, x: int, at: Attributes) -> int:
    below = m.select(m.do("lt", x, m.zero), m.num(-1), m.zero)
    return m.select(m.do("gt", x, m.zero), m.one, m.select(m.do("ne", x, x), m.zero, below))


def _primitive(op: str) -> Unary:
    return lambda m, x, at: m.do(op, m.real(x))


def _logarithm(base: float, m: Arithmetic, x: int, at: Attributes) -> int:
    return m.scaled(m.do("log", x), 1 / math.log(base))


UNARY: Mapping[str, Unary] = {
    **{op: _primitive(op) for op in ("neg", "abs", "exp", "log", "expm1", "log1p", "tanh", "erf", "sqrt")},
    **{op: _primitive(op) for op in ("rsqrt", "sin", "cos", "floor", "ceil", "trunc", "round", "atan")},
    "relu": _relu,
    "leaky_relu": _leaky,
    "sigmoid": lambda m, x, at: m.sigmoid(x),
    "silu": _silu,
    "gelu": _gelu,
    "elu": _elu,
    "celu": _celu,
    "softplus": _softplus,
    "log_sigmoid_forward": _log_sigmoid,
    "mish": _mish,
    "hardtanh": _clamp,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "hardsigmoid": _hard_sigmoid,
    "hardswish": _hard_swish,
    "hardshrink": _hard_shrink,
    "softshrink": _soft_shrink,
    "threshold": _threshold,
    "cast": _cast,
    "pow": _pow,
    "sign": _sign,
    "sgn": _sign,
    "reciprocal": lambda m, x, at: m.div(m.one, x),
    "exp2": lambda m, x, at: m.do("pow", m.num(2), x),
    "log2": partial(_logarithm, 2.0),
    "log10": partial(_logarithm, 10.0),
    "isnan": lambda m, x, at: m.do("ne", x, x),
    "bitwise_not": lambda m, x, at: m.do("not", m.mask(x)),
    "logical_not": lambda m, x, at: m.do("not", m.mask(x)),
}
