"""Running sums and their relatives: element i depends on all elements up to i."""

from __future__ import annotations

import torch
from benchmarks.false_verdicts.operator import Operator


def _row_scan(body: str, helpers: str = "") -> str:
    return f"""
rows, n = x.shape
kernel[rows](x, out, n)
---
{helpers}
extern "C" void kernel(long row, const float* x, float* out, long n) {{
    x += row * n, out += row * n;
{body.strip(chr(10))}
}}
"""


_CUMSUM = {
    "sequential": _row_scan("""
    float sum = 0;
    for (long i = 0; i < n; i++) out[i] = sum += x[i];
"""),
    "blocked": _row_scan("""
    float before = 0;
    for (long begin = 0; begin < n; begin += 64) {
        float sum = 0;
        for (long i = begin; i < std::min(n, begin + 64); i++) {
            sum += x[i];
            out[i] = before + sum;
        }
        before += sum;
    }
"""),
    "doubling": """
rows, n = x.shape
other = scratch((rows, n), f32)
kernel[rows](x, other, out, n)
---
extern "C" void kernel(long row, const float* x, float* other, float* out, long n) {
    x += row * n, other += row * n, out += row * n;
    for (long i = 0; i < n; i++) out[i] = x[i];
    for (long reach = 1; reach < n; reach *= 2) {
        for (long i = 0; i < n; i++) other[i] = i >= reach ? out[i] + out[i - reach] : out[i];
        for (long i = 0; i < n; i++) out[i] = other[i];
    }
}
""",
}

_CUMSUM_COLUMNS = """
b, n, cols = x.shape
kernel[b, cols](x, out, n, cols)
---
extern "C" void kernel(long entry, long j, const float* x, float* out, long n, long cols) {
    float sum = 0;
    for (long i = 0; i < n; i++) out[(entry * n + i) * cols + j] = sum += x[(entry * n + i) * cols + j];
}
"""

_REVERSE = _row_scan("""
    double sum = 0;
    for (long i = n - 1; i >= 0; i--) out[i] = sum += x[i];
""")

_CUMMAX = _row_scan("""
    float largest = -INFINITY;
    for (long i = 0; i < n; i++) {
        if (x[i] > largest || std::isnan(x[i])) largest = x[i];
        out[i] = largest;
    }
""")

_LOGCUMSUMEXP = _row_scan("""
    float total = -INFINITY;
    for (long i = 0; i < n; i++) {
        float high = std::max(total, x[i]), low = std::min(total, x[i]);
        total = std::isinf(high) && high == low ? high : high + std::log1p(std::exp(low - high));
        if (std::isnan(x[i])) total = x[i];
        out[i] = total;
    }
""")

_MOVING_AVERAGE = _row_scan("""
    for (long i = 0; i < n; i++) {
        float sum = 0;
        for (long k = std::max(0l, i - 4); k <= i; k++) sum += x[k];
        out[i] = sum / 5;
    }
""")

_CUMPROD = _row_scan("""
    float product = 1;
    for (long i = 0; i < n; i++) out[i] = product *= x[i];
""")

_DIFF = """
rows, n = x.shape
kernel[rows](x, out, n)
---
extern "C" void kernel(long row, const float* x, float* out, long n) {
    for (long i = 0; i + 1 < n; i++) out[row * (n - 1) + i] = x[row * n + i + 1] - x[row * n + i];
}
"""


def _moving_average(x: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (4, 0))
    return padded.unfold(-1, 5, 1).mean(-1)


OPERATORS = (
    Operator("cumsum", lambda x: torch.cumsum(x, dim=-1), lambda: [torch.randn(67, 1201)], _CUMSUM),
    Operator("cumsum_middle", lambda x: torch.cumsum(x, dim=1), lambda: [torch.randn(5, 301, 43)],
             {"strided": _CUMSUM_COLUMNS}),
    Operator("cumsum_reverse", lambda x: torch.flip(torch.cumsum(torch.flip(x, [-1]), dim=-1), [-1]),
             lambda: [torch.randn(67, 1201)], {"backwards": _REVERSE}),
    Operator("cummax", lambda x: torch.cummax(x, dim=-1).values, lambda: [torch.randn(67, 1201)],
             {"sequential": _CUMMAX}),
    Operator("logcumsumexp", lambda x: torch.logcumsumexp(x, dim=-1), lambda: [torch.randn(67, 301)],
             {"sequential": _LOGCUMSUMEXP}),
    Operator("moving_average", _moving_average, lambda: [torch.randn(67, 1201)],
             {"windows": _MOVING_AVERAGE}),
    Operator("cumprod", lambda x: torch.cumprod(x, dim=-1), lambda: [1 + 0.1 * torch.rand(67, 201)],
             {"sequential": _CUMPROD}),
    Operator("diff", lambda x: torch.diff(x, dim=-1), lambda: [torch.randn(67, 1201)], {"neighbours": _DIFF}),
)  # fmt: skip
