"""Matrix products and their relatives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator

_MATMUL = {
    "dot products": """
m, k = a.shape
k, n = b.shape
kernel[m](a, b, out, n, k)
---
extern "C" void kernel(long i, const float* a, const float* b, float* out, long n, long k) {
    for (long j = 0; j < n; j++) {
        float sum = 0;
        for (long l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
        out[i * n + j] = sum;
    }
}
""",
    "tiles": """
m, k = a.shape
k, n = b.shape
kernel[cdiv(m, 16), cdiv(n, 16)](a, b, out, m, n, k)
---
extern "C" void kernel(long bi, long bj, const float* a, const float* b, float* out, long m, long n, long k) {
    long rows = std::min(m - bi * 16, 16l), cols = std::min(n - bj * 16, 16l);
    float tile[16][16] = {};
    for (long begin = 0; begin < k; begin += 32) {
        float part[16][16] = {};
        for (long l = begin; l < std::min(k, begin + 32); l++)
            for (long i = 0; i < rows; i++)
                for (long j = 0; j < cols; j++)
                    part[i][j] += a[(bi * 16 + i) * k + l] * b[l * n + bj * 16 + j];
        for (long i = 0; i < 16; i++)
            for (long j = 0; j < 16; j++) tile[i][j] += part[i][j];
    }
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < cols; j++) out[(bi * 16 + i) * n + bj * 16 + j] = tile[i][j];
}
""",
    "split k": """
m, k = a.shape
k, n = b.shape
parts = scratch((4, m, n), f32)
multiply[4, m](a, b, parts, m, n, k)
add[m](parts, out, m, n)
---
extern "C" void multiply(long part, long i, const float* a, const float* b, float* parts, long m, long n,
                         long k) {
    float* to = parts + (part * m + i) * n;
    for (long j = 0; j < n; j++) to[j] = 0;
    for (long l = part; l < k; l += 4)
        for (long j = 0; j < n; j++) to[j] += a[i * k + l] * b[l * n + j];
}

extern "C" void add(long i, const float* parts, float* out, long m, long n) {
    for (long j = 0; j < n; j++) {
        float sum = 0;
        for (long part = 0; part < 4; part++) sum += parts[(part * m + i) * n + j];
        out[i * n + j] = sum;
    }
}
""",
    "intrinsics": """
m, k = a.shape
k, n = b.shape
kernel[m](a, b, out, n, k)
---
#include <immintrin.h>
extern "C" void kernel(long i, const float* a, const float* b, float* out, long n, long k) {
    long j = 0;
    for (; j + 4 <= n; j += 4) {
        __m128 sum = _mm_setzero_ps();
        for (long l = 0; l < k; l++)
            sum = _mm_add_ps(sum, _mm_mul_ps(_mm_set1_ps(a[i * k + l]), _mm_loadu_ps(b + l * n + j)));
        _mm_storeu_ps(out + i * n + j, sum);
    }
    for (; j < n; j++) {
        float sum = 0;
        for (long l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
        out[i * n + j] = sum;
    }
}
""",
}

_LINEAR = """
m, k = x.shape
n, k = weight.shape
kernel[m](x, weight, bias, out, n, k)
---
extern "C" void kernel(long i, const float* x, const float* weight, const float* bias, float* out, long n,
                       long k) {
    for (long j = 0; j < n; j++) {
        float lane[8] = {};
        for (long l = 0; l < k; l++) lane[l % 8] += x[i * k + l] * weight[j * k + l];
        float sum = bias[j];
        for (int l = 0; l < 8; l++) sum += lane[l];
        out[i * n + j] = sum > 0 || std::isnan(sum) ? sum : 0;
    }
}
"""

_EINSUM = """
b, m, k = x.shape
b, n, k = y.shape
kernel[b, m](x, y, out, m, n, k)
---
extern "C" void kernel(long entry, long i, const float* x, const float* y, float* out, long m, long n,
                       long k) {
    const float* row = x + (entry * m + i) * k;
    for (long j = 0; j < n; j++) {
        float sum = 0;
        for (long l = k - 1; l >= 0; l--) sum = std::fma(row[l], y[(entry * n + j) * k + l], sum);
        out[(entry * m + i) * n + j] = sum;
    }
}
"""

_OUTER = """
m = a.numel
n = b.numel
kernel[m](a, b, out, n)
---
extern "C" void kernel(long i, const float* a, const float* b, float* out, long n) {
    for (long j = 0; j < n; j++) out[i * n + j] = a[i] * b[j];
}
"""

_MATVEC = {
    "lanes": """
m, k = a.shape
kernel[m](a, x, out, k)
---
extern "C" void kernel(long i, const float* a, const float* x, float* out, long k) {
    float even = 0, odd = 0;
    for (long l = 0; l < k; l++) (l % 2 ? odd : even) += a[i * k + l] * x[l];
    out[i] = even + odd;
}
""",
    "double": """
m, k = a.shape
kernel[m](a, x, out, k)
---
extern "C" void kernel(long i, const float* a, const float* x, float* out, long k) {
    double sum = 0;
    for (long l = 0; l < k; l++) sum += (double)a[i * k + l] * x[l];
    out[i] = sum;
}
""",
}

_QUADRATIC_FORM = """
m, k = x.shape
kernel[m](x, a, out, k)
---
extern "C" void kernel(long row, const float* x, const float* a, float* out, long k) {
    x += row * k;
    float form = 0;
    for (long i = 0; i < k; i++) {
        float sum = 0;
        for (long j = 0; j < k; j++) sum += a[i * k + j] * x[j];
        form += x[i] * sum;
    }
    out[row] = form;
}
"""

_ATTENTION = """
t, d = q.shape
kernel[t](q, k, v, out, t, d)
---
extern "C" void kernel(long i, const float* q, const float* k, const float* v, float* out, long t, long d) {
    q += i * d, out += i * d;
    float largest = -INFINITY, weights = 0, scale = 1 / std::sqrt((float)d);
    for (long c = 0; c < d; c++) out[c] = 0;
    for (long j = 0; j < t; j++) {
        float score = 0;
        for (long c = 0; c < d; c++) score += q[c] * k[j * d + c];
        score *= scale;
        float next = std::max(largest, score);
        float decay = next == largest ? 1 : std::exp(largest - next);
        float weight = score == -INFINITY ? 0 : std::exp(score - next);
        weights = weights * decay + weight;
        for (long c = 0; c < d; c++) out[c] = out[c] * decay + weight * v[j * d + c];
        largest = next;
    }
    for (long c = 0; c < d; c++) out[c] /= weights;
}
"""


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1) @ v


OPERATORS = (
    Operator("matmul", lambda a, b: a @ b, lambda: [torch.randn(97, 301), torch.randn(301, 83)], _MATMUL),
    Operator("linear_relu", lambda x, weight, bias: torch.relu(F.linear(x, weight, bias)),
             lambda: [torch.randn(61, 203), torch.randn(83, 203), torch.randn(83)], {"lanes": _LINEAR}),
    Operator("einsum", lambda x, y: torch.einsum("bik,bjk->bij", x, y),
             lambda: [torch.randn(7, 41, 57), torch.randn(7, 37, 57)], {"backwards": _EINSUM}),
    Operator("outer", lambda a, b: torch.outer(a, b), lambda: [torch.randn(301), torch.randn(203)],
             {"rows": _OUTER}),
    Operator("matvec", lambda a, x: a @ x, lambda: [torch.randn(97, 1501), torch.randn(1501)], _MATVEC),
    Operator("quadratic_form", lambda x, a: ((x @ a.T) * x).sum(-1),
             lambda: [torch.randn(61, 83), torch.randn(83, 83)], {"nested": _QUADRATIC_FORM}),
    Operator("attention", _attention, lambda: [torch.randn(73, 24), torch.randn(73, 24), torch.randn(73, 24)],
             {"online": _ATTENTION}),
)  # fmt: skip
