"""Everything becomes one number."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator


def _mean_over_all(term: str) -> str:
    """Sums of 1024 terms in one launch, their mean in a second; `term` is C++ of a[i] and b[i]."""
    return f"""
n = a.numel
parts = scratch((cdiv(n, 1024),), f32)
partial[cdiv(n, 1024)](a, b, parts, n)
total[1](parts, out, cdiv(n, 1024), n)
---
static float term(float a, float b) {{{term}}}

extern "C" void partial(long block, const float* a, const float* b, float* parts, long n) {{
    float sum = 0;
    for (long i = block * 1024; i < std::min(n, (block + 1) * 1024); i++) sum += term(a[i], b[i]);
    parts[block] = sum;
}}

extern "C" void total(long, const float* parts, float* out, long count, long n) {{
    double sum = 0;
    for (long i = 0; i < count; i++) sum += parts[i];
    *out = sum / n;
}}
"""


_CROSS_ENTROPY = """
rows, n = x.shape
parts = scratch((rows,), f32)
row_loss[rows](x, target, parts, n)
mean[1](parts, out, rows)
---
extern "C" void row_loss(long row, const float* x, const long* target, float* parts, long n) {
    x += row * n;
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = std::max(largest, x[i]);
    for (long i = 0; i < n; i++) sum += std::exp(x[i] - largest);
    parts[row] = std::log(sum) + (largest - x[target[row]]);
}

extern "C" void mean(long, const float* parts, float* out, long rows) {
    float sum = 0;
    for (long i = 0; i < rows; i++) sum += parts[i];
    *out = sum / rows;
}
"""

_TRIPLET = """
rows, n = a.shape
parts = scratch((rows,), f32)
row_loss[rows](a, p, q, parts, n)
mean[1](parts, out, rows)
---
extern "C" void row_loss(long row, const float* a, const float* p, const float* q, float* parts, long n) {
    a += row * n, p += row * n, q += row * n;
    float near = 0, far = 0;
    for (long i = 0; i < n; i++) {
        float dp = a[i] - p[i] + 1e-6f, dq = a[i] - q[i] + 1e-6f;
        near += dp * dp;
        far += dq * dq;
    }
    float loss = std::sqrt(near) - std::sqrt(far) + 1;
    parts[row] = loss > 0 || std::isnan(loss) ? loss : 0;
}

extern "C" void mean(long, const float* parts, float* out, long rows) {
    float sum = 0;
    for (long i = 0; i < rows; i++) sum += parts[i];
    *out = sum / rows;
}
"""


def _pair() -> list[torch.Tensor]:
    return [torch.randn(61, 501), torch.randn(61, 501)]


OPERATORS = (
    Operator("mse", lambda a, b: F.mse_loss(a, b), _pair,
             {"parts": _mean_over_all(" return (a - b) * (a - b); ")}),
    Operator("smooth_l1", lambda a, b: F.smooth_l1_loss(a, b), _pair, {"parts": _mean_over_all("""
    float distance = std::fabs(a - b);
    return distance < 1 ? 0.5f * distance * distance : distance - 0.5f;
""")}),
    Operator("bce_with_logits", lambda a, b: F.binary_cross_entropy_with_logits(a, b),
             lambda: [torch.randn(61, 501), torch.rand(61, 501)], {"parts": _mean_over_all("""
    return (a > 0 ? a : 0) - a * b + std::log1p(std::exp(-std::fabs(a)));
""")}),
    Operator("cross_entropy", lambda x, target: F.cross_entropy(x, target),
             lambda: [torch.randn(67, 501), torch.randint(0, 501, (67,))], {"two passes": _CROSS_ENTROPY}),
    Operator("triplet", lambda a, p, q: F.triplet_margin_loss(a, p, q),
             lambda: [torch.randn(61, 301), torch.randn(61, 301), torch.randn(61, 301)], {"rows": _TRIPLET}),
)  # fmt: skip
