"""Functions of one element, and of a few elements at the same place."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator, elementwise

# e^v to 1 ulp over the whole range, by range reduction and a polynomial; the scaling is split for denormals.
_POLYNOMIAL_EXP = """
static inline float exp_of(float v) {
    v = v < -104.0f ? -104.0f : v;
    v = v > 89.0f ? 89.0f : v;
    float n = std::nearbyint(v * 1.44269504f);
    float r = std::fma(n, -0.693359375f, v);
    r = std::fma(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int whole = v == v ? (int)n : 0, half = whole / 2, rest = whole - half;
    int first = (half + 127) << 23, second = (rest + 127) << 23;
    float a, b;
    memcpy(&a, &first, 4);
    memcpy(&b, &second, 4);
    return p * a * b;
}
"""

_INTRINSIC_SWISH = """
n = x.numel
kernel[cdiv(n, 1024)](x, out, n)
---
#include <immintrin.h>
extern "C" void kernel(long block, const float* x, float* out, long n) {
    long i = block * 1024, end = std::min(n, i + 1024);
    const __m128 three = _mm_set1_ps(3), six = _mm_set1_ps(6), zero = _mm_setzero_ps();
    for (; i + 4 <= end; i += 4) {
        __m128 v = _mm_loadu_ps(x + i);
        __m128 gate = _mm_min_ps(six, _mm_max_ps(zero, _mm_add_ps(v, three)));  // NaN is the second operand
        _mm_storeu_ps(out + i, _mm_div_ps(_mm_mul_ps(v, gate), six));
    }
    for (; i < end; i++) {
        float gate = x[i] + 3 < 0 ? 0 : x[i] + 3 > 6 ? 6 : x[i] + 3;
        out[i] = x[i] * gate / 6;
    }
}
"""

_SWIGLU = """
n = a.numel
kernel[cdiv(n, 500)](a, b, out, n)
---
extern "C" void kernel(long block, const float* a, const float* b, float* out, long n) {
    for (long i = block * 500; i < std::min(n, (block + 1) * 500); i++)
        out[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
}
"""

_SCALE_SHIFT = """
n, c, h, w = x.shape
kernel[n, c](x, scale, shift, out, c, h * w)
---
extern "C" void kernel(long image, long channel, const float* x, const float* scale, const float* shift,
                       float* out, long c, long size) {
    long begin = (image * c + channel) * size;
    for (long i = begin; i < begin + size; i++) out[i] = x[i] * scale[channel] + shift[channel];
}
"""

OPERATORS = (
    Operator(
        "gelu", lambda x: F.gelu(x), lambda: [torch.randn(61, 1531)],
        {
            "error function": elementwise("0.5f * v * (1.0f + std::erf(v * 0.70710678f))"),
            "complement": elementwise("0.5f * v * std::erfc(-0.70710678f * v)"),
        },
    ),
    Operator(
        "sigmoid", lambda x: torch.sigmoid(x), lambda: [torch.randn(61, 1531)],
        {
            "direct": elementwise("1.0f / (1.0f + std::exp(-v))"),
            "own exp": elementwise("1.0f / (1.0f + exp_of(-v))", _POLYNOMIAL_EXP),
        },
    ),
    Operator(
        "softplus", lambda x: F.softplus(x), lambda: [torch.randn(61, 1531)],
        {"stable": elementwise("(v > 0 ? v : 0.0f) + std::log1p(std::exp(-std::fabs(v)))")},
    ),
    Operator(
        "mish", lambda x: F.mish(x), lambda: [torch.randn(61, 1531)],
        {
            "definition": elementwise("v * std::tanh(v > 20 ? v : std::log1p(std::exp(v)))"),
            "rational": elementwise(  # tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2)
                "v > 20 ? v : v * mish_gate(std::exp(v))",
                "static inline float mish_gate(float e) { return e * (e + 2) / (e * (e + 2) + 2); }",
            ),
        },
    ),
    Operator(
        "log_sigmoid", lambda x: F.logsigmoid(x), lambda: [torch.randn(61, 1531)],
        {
            "stable": elementwise("(v < 0 ? v : 0.0f) - std::log1p(std::exp(-std::fabs(v)))"),
            "double": elementwise("v < -700 ? v : -std::log1p(std::exp(-(double)v))"),
        },
    ),
    Operator(
        "hardswish", lambda x: F.hardswish(x), lambda: [3 * torch.randn(61, 1531)],
        {
            "clamp": elementwise("v * (v + 3 < 0 ? 0.0f : v + 3 > 6 ? 6.0f : v + 3) / 6"),
            "intrinsics": _INTRINSIC_SWISH,
        },
    ),
    Operator(
        "elu", lambda x: F.elu(x), lambda: [torch.randn(61, 1531)],
        {"expm1": elementwise("v > 0 ? v : std::expm1(v)")},
    ),
    Operator(
        "swiglu", lambda a, b: F.silu(a) * b, lambda: [torch.randn(61, 1531), torch.randn(61, 1531)],
        {"direct": _SWIGLU},
    ),
    Operator(
        "scale_shift", lambda x, scale, shift: x * scale[:, None, None] + shift[:, None, None],
        lambda: [torch.randn(4, 24, 30, 35), torch.randn(24), torch.randn(24)],
        {"planes": _SCALE_SHIFT},
    ),
)  # fmt: skip
