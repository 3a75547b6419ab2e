"""Elements moved to other places, by a table or by a rule."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator

_EMBEDDING = """
n = index.numel
words, d = table.shape
kernel[n](index, table, out, d)
---
extern "C" void kernel(long i, const long* index, const float* table, float* out, long d) {
    for (long c = 0; c < d; c++) out[i * d + c] = table[index[i] * d + c];
}
"""

_BAG = """
bags, n = index.shape
words, d = table.shape
kernel[bags](index, table, out, n, d)
---
extern "C" void kernel(long bag, const long* index, const float* table, float* out, long n, long d) {
    for (long c = 0; c < d; c++) {
        float sum = 0;
        for (long i = 0; i < n; i++) sum += table[index[bag * n + i] * d + c];
        out[bag * d + c] = sum / n;
    }
}
"""

_GATHER = """
rows, n = x.shape
rows, k = index.shape
kernel[rows](x, index, out, n, k)
---
extern "C" void kernel(long row, const float* x, const long* index, float* out, long n, long k) {
    for (long i = 0; i < k; i++) out[row * k + i] = x[row * n + index[row * k + i]];
}
"""

_ROPE = """
t, heads, d = x.shape
kernel[t, heads](x, angle, out, heads, d)
---
extern "C" void kernel(long t, long head, const float* x, const float* angle, float* out, long heads,
                       long d) {
    x += (t * heads + head) * d, out += (t * heads + head) * d, angle += t * (d / 2);
    for (long i = 0; i < d / 2; i++) {
        float c = std::cos(angle[i]), s = std::sin(angle[i]);
        out[i] = x[i] * c - x[d / 2 + i] * s;
        out[d / 2 + i] = x[d / 2 + i] * c + x[i] * s;
    }
}
"""

_TRANSPOSE = """
b, m, n = x.shape
kernel[b, cdiv(m, 8), cdiv(n, 8)](x, out, m, n)
---
extern "C" void kernel(long entry, long bi, long bj, const float* x, float* out, long m, long n) {
    for (long i = bi * 8; i < std::min(m, bi * 8 + 8); i++)
        for (long j = bj * 8; j < std::min(n, bj * 8 + 8); j++)
            out[(entry * n + j) * m + i] = x[(entry * m + i) * n + j];
}
"""

_PIXEL_SHUFFLE = """
b, c, h, w = x.shape
kernel[b, c // 4](x, out, c // 4, h, w)
---
extern "C" void kernel(long image, long to, const float* x, float* out, long planes, long h, long w) {
    for (long y = 0; y < 2 * h; y++)
        for (long i = 0; i < 2 * w; i++) {
            long from = to * 4 + y % 2 * 2 + i % 2;
            out[((image * planes + to) * 2 * h + y) * 2 * w + i] =
                x[((image * planes * 4 + from) * h + y / 2) * w + i / 2];
        }
}
"""

_SELECT = """
rows, n = x.shape
kernel[rows](x, y, condition, out, n)
---
extern "C" void kernel(long row, const float* x, const float* y, const bool* condition, float* out, long n) {
    for (long i = row * n; i < row * n + n; i++) out[i] = condition[i] ? x[i] : 2 * y[i];
}
"""


def _rope(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    cos, sin = torch.cos(angle)[:, None, :], torch.sin(angle)[:, None, :]
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


OPERATORS = (
    Operator("embedding", lambda index, table: F.embedding(index, table),
             lambda: [torch.randint(0, 301, (97, 5)), torch.randn(301, 43)], {"rows": _EMBEDDING}),
    Operator("embedding_mean", lambda index, table: F.embedding(index, table).mean(1),
             lambda: [torch.randint(0, 301, (61, 23)), torch.randn(301, 43)], {"rows": _BAG}),
    Operator("gather", lambda x, index: torch.gather(x, 1, index),
             lambda: [torch.randn(67, 501), torch.randint(0, 501, (67, 103))], {"rows": _GATHER}),
    Operator("rope", _rope, lambda: [torch.randn(61, 5, 32), 100 * torch.rand(61, 16)], {"halves": _ROPE}),
    Operator("transpose", lambda x: x.transpose(1, 2).contiguous(), lambda: [torch.randn(3, 67, 91)],
             {"tiles": _TRANSPOSE}),
    Operator("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), lambda: [torch.randn(3, 12, 17, 19)],
             {"rule": _PIXEL_SHUFFLE}),
    Operator("select", lambda x, y, condition: torch.where(condition, x, 2 * y),
             lambda: [torch.randn(61, 301), torch.randn(61, 301), torch.rand(61, 301) < 0.5],
             {"choice": _SELECT}),
)  # fmt: skip
