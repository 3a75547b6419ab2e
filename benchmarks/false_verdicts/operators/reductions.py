"""Rows that become one number, or a few."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator, per_row

_PAIRWISE = """
static float pairwise(const float* x, long n) {
    if (n <= 8) {
        float sum = 0;
        for (long i = 0; i < n; i++) sum += x[i];
        return sum;
    }
    long half = n / 2;
    return pairwise(x, half) + pairwise(x + half, n - half);
}
"""

_LANES = """
static float in_lanes(const float* x, long n) {
    float lane[16] = {};
    long i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++) lane[l] += x[i + l];
    float sum = 0;
    for (int l = 0; l < 16; l++) sum += lane[l];
    for (; i < n; i++) sum += x[i];
    return sum;
}
"""

_SUM = {
    "sequential": per_row("""
    float sum = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    return sum;
"""),
    "pairwise": per_row(" return pairwise(x, n); ", helpers=_PAIRWISE),
    "lanes": per_row(" return in_lanes(x, n); ", helpers=_LANES),
    "compensated": per_row("""
    float sum = 0, lost = 0;
    for (long i = 0; i < n; i++) {
        float term = x[i] - lost, next = sum + term;
        lost = std::isfinite(next) ? (next - sum) - term : 0;
        sum = next;
    }
    return sum;
"""),
    "two launches": """
rows, n = x.shape
parts = scratch((rows, 8), f32)
partial[rows, 8](x, parts, n)
total[rows](parts, out)
---
extern "C" void partial(long row, long part, const float* x, float* parts, long n) {
    float sum = 0;
    for (long i = part; i < n; i += 8) sum += x[row * n + i];
    parts[row * 8 + part] = sum;
}

extern "C" void total(long row, const float* parts, float* out) {
    float sum = 0;
    for (int part = 0; part < 8; part++) sum += parts[row * 8 + part];
    out[row] = sum;
}
""",
}

_VARIANCE = {
    "two passes": per_row("""
    float sum = 0, squares = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    float mean = sum / n;
    for (long i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return squares / (n - 1);
"""),
    "welford": per_row("""
    float mean = 0, squares = 0;
    for (long i = 0; i < n; i++) {
        float delta = x[i] - mean;
        mean += delta / (i + 1);
        squares += delta * (x[i] - mean);
    }
    return squares / (n - 1);
"""),
    "double moments": per_row("""
    double sum = 0, squares = 0;
    for (long i = 0; i < n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    return (squares - sum * sum / n) / (n - 1);
"""),
}

_STD_COLUMNS = """
n, cols = x.shape
kernel[cdiv(cols, 32)](x, out, n, cols)
---
extern "C" void kernel(long strip, const float* x, float* out, long n, long cols) {
    for (long j = strip * 32; j < std::min(cols, strip * 32 + 32); j++) {
        float sum = 0, squares = 0;
        for (long i = 0; i < n; i++) sum += x[i * cols + j];
        float mean = sum / n;
        for (long i = 0; i < n; i++) squares += (x[i * cols + j] - mean) * (x[i * cols + j] - mean);
        out[j] = std::sqrt(squares / n);
    }
}
"""

_LOGSUMEXP = {
    "two passes": per_row("""
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = std::max(largest, x[i]);
    if (std::isinf(largest)) largest = 0;
    for (long i = 0; i < n; i++) sum += std::exp(x[i] - largest);
    return largest + std::log(sum);
"""),
    "online": per_row("""
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) {
        if (x[i] > largest) {
            sum = std::isinf(x[i]) ? 1 : sum * std::exp(largest - x[i]) + 1;
            largest = x[i];
        } else if (!std::isinf(x[i])) {
            sum += std::exp(x[i] - largest);
        }
    }
    return sum == 0 ? -INFINITY : largest + std::log(sum);
"""),
}

_COSINE = {
    "three sums": per_row("""
    float ab = 0, aa = 0, bb = 0;
    for (long i = 0; i < n; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return ab / (std::max(std::sqrt(aa), 1e-8f) * std::max(std::sqrt(bb), 1e-8f));
""", "a, b"),
    "blocked": per_row("""
    float ab = 0, aa = 0, bb = 0;
    for (long begin = 0; begin < n; begin += 64) {
        float x = 0, y = 0, z = 0;
        for (long i = begin; i < std::min(n, begin + 64); i++) {
            x = std::fma(a[i], b[i], x);
            y = std::fma(a[i], a[i], y);
            z = std::fma(b[i], b[i], z);
        }
        ab += x, aa += y, bb += z;
    }
    return ab / std::max(std::sqrt(aa), 1e-8f) / std::max(std::sqrt(bb), 1e-8f);
""", "a, b"),
}  # fmt: skip

_ARGMIN = """
n, cols = x.shape
kernel[cols](x, out, n, cols)
---
extern "C" void kernel(long j, const float* x, long* out, long n, long cols) {
    long best = 0;
    for (long i = 1; i < n; i++) {
        float value = x[i * cols + j], champion = x[best * cols + j];
        if (value < champion || (std::isnan(value) && !std::isnan(champion))) best = i;
    }
    out[j] = best;
}
"""

_ARGMIN_HALVES = """
n, cols = x.shape
kernel[cols](x, out, n, cols)
---
extern "C" void kernel(long j, const float* x, long* out, long n, long cols) {
    long best[2] = {0, n / 2};
    for (long side = 0; side < 2; side++)
        for (long i = side * (n / 2); i < (side ? n : n / 2); i++)
            if (!(x[i * cols + j] >= x[best[side] * cols + j])
                && !std::isnan(x[best[side] * cols + j])) best[side] = i;
    float left = x[best[0] * cols + j], right = x[best[1] * cols + j];
    out[j] = best[right < left || (std::isnan(right) && !std::isnan(left))];
}
"""

_MAX_WITH_INDEX = """
rows, n = x.shape
kernel[rows](x, out0, out1, n)
---
extern "C" void kernel(long row, const float* x, float* value, long* place, long n) {
    x += row * n;
    long best = 0;
    for (long i = 0; i < n; i++)
        if (x[i] > x[best] || (std::isnan(x[i]) && !std::isnan(x[best]))) best = i;
    value[row] = x[best];
    place[row] = best;
}
"""

_TOP3 = """
rows, n = x.shape
kernel[rows](x, out0, out1, n)
---
// NaN counts as the largest, as it does in the framework.
static bool beats(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

extern "C" void kernel(long row, const float* x, float* value, long* place, long n) {
    x += row * n;
    long best[3], found = 0;
    for (long i = 0; i < n; i++) {
        long at = found;
        while (at > 0 && beats(x[i], x[best[at - 1]])) at--;
        if (at >= 3) continue;
        found = std::min(found + 1, 3l);
        for (long k = found - 1; k > at; k--) best[k] = best[k - 1];
        best[at] = i;
    }
    for (long k = 0; k < 3; k++) value[row * 3 + k] = x[best[k]], place[row * 3 + k] = best[k];
}
"""

_DISTANCES = """
rows, n = a.shape
others, n = b.shape
kernel[rows, others](a, b, out, others, n)
---
extern "C" void kernel(long i, long j, const float* a, const float* b, float* out, long others, long n) {
    float sum = 0;
    for (long k = 0; k < n; k++) sum += (a[i * n + k] - b[j * n + k]) * (a[i * n + k] - b[j * n + k]);
    out[i * others + j] = std::sqrt(sum);
}
"""

_AMAX = {
    "sequential": per_row("""
    float largest = -INFINITY;
    for (long i = 0; i < n; i++)
        if (x[i] > largest || std::isnan(x[i])) largest = x[i];
    return largest;
"""),
    "tree": per_row(" return largest(x, n); ", helpers="""
static float largest(const float* x, long n) {
    if (n == 1) return x[0];
    float a = largest(x, n / 2), b = largest(x + n / 2, n - n / 2);
    return a > b || std::isnan(a) ? a : b;
}
"""),
}  # fmt: skip

OPERATORS = (
    Operator("sum", lambda x: torch.sum(x, dim=-1), lambda: [torch.randn(67, 3001)], _SUM),
    Operator("variance", lambda x: torch.var(x, dim=-1), lambda: [torch.randn(67, 1801)], _VARIANCE),
    Operator("std_columns", lambda x: torch.std(x, dim=0, correction=0), lambda: [torch.randn(1201, 67)],
             {"two passes": _STD_COLUMNS}),
    Operator("logsumexp", lambda x: torch.logsumexp(x, dim=-1), lambda: [torch.randn(67, 1801)], _LOGSUMEXP),
    Operator("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=-1),
             lambda: [torch.randn(67, 1501), torch.randn(67, 1501)], _COSINE),
    Operator("argmin", lambda x: torch.argmin(x, dim=0), lambda: [torch.randn(1201, 67)],
             {"sequential": _ARGMIN, "halves": _ARGMIN_HALVES}),
    Operator("max_with_index", lambda x: torch.max(x, dim=-1), lambda: [torch.randn(67, 1501)],
             {"sequential": _MAX_WITH_INDEX}),
    Operator("top3", lambda x: torch.topk(x, 3, dim=-1), lambda: [torch.randn(67, 601)],
             {"insertion": _TOP3}),
    Operator("amax", lambda x: torch.amax(x, dim=-1), lambda: [torch.randn(67, 1501)], _AMAX),
    Operator("distances", lambda a, b: torch.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)),
             lambda: [torch.randn(61, 40), torch.randn(53, 40)], {"direct": _DISTANCES}),
)  # fmt: skip
