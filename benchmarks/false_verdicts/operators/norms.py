"""Rows that are rescaled by something computed from the whole row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator

_SOFTMAX = {
    "three passes": """
rows, n = x.shape
kernel[rows](x, out, n)
---
extern "C" void kernel(long row, const float* x, float* out, long n) {
    x += row * n, out += row * n;
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = std::max(largest, x[i]);
    for (long i = 0; i < n; i++) sum += out[i] = std::exp(x[i] - largest);
    for (long i = 0; i < n; i++) out[i] *= 1 / sum;
}
""",
    "online": """
rows, n = x.shape
kernel[rows](x, out, n)
---
extern "C" void kernel(long row, const float* x, float* out, long n) {
    x += row * n, out += row * n;
    float largest = -INFINITY, sum = 0;
    for (long begin = 0; begin < n; begin += 32) {
        long end = std::min(n, begin + 32);
        float before = largest;
        for (long i = begin; i < end; i++) largest = std::max(largest, x[i]);
        if (largest == -INFINITY) continue;
        sum *= std::exp(before - largest);
        for (long i = begin; i < end; i++) sum += std::exp(x[i] - largest);
    }
    for (long i = 0; i < n; i++) out[i] = std::exp(x[i] - largest) / sum;
}
""",
}

_MASKED_SOFTMAX = """
rows, n = x.shape
kernel[rows](x, mask, out, n)
---
extern "C" void kernel(long row, const float* x, const bool* mask, float* out, long n) {
    x += row * n, mask += row * n, out += row * n;
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++)
        if (!mask[i]) largest = std::max(largest, x[i]);
    for (long i = 0; i < n; i++)
        sum += out[i] = mask[i] ? std::exp(-INFINITY - largest) : std::exp(x[i] - largest);
    for (long i = 0; i < n; i++) out[i] /= sum;
}
"""

_LOG_SOFTMAX_DIM1 = """
b, n, cols = x.shape
kernel[b, cols](x, out, n, cols)
---
extern "C" void kernel(long entry, long j, const float* x, float* out, long n, long cols) {
    x += entry * n * cols + j, out += entry * n * cols + j;
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = std::max(largest, x[i * cols]);
    for (long i = 0; i < n; i++) sum += std::exp(x[i * cols] - largest);
    float log_sum = std::log(sum);
    for (long i = 0; i < n; i++) out[i * cols] = (x[i * cols] - largest) - log_sum;
}
"""

_LAYER_NORM = {
    "two passes": """
rows, n = x.shape
kernel[rows](x, weight, bias, out, n)
---
extern "C" void kernel(long row, const float* x, const float* weight, const float* bias, float* out, long n) {
    x += row * n, out += row * n;
    float sum = 0, squares = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    float mean = sum / n;
    for (long i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    float scale = 1 / std::sqrt(squares / n + 1e-5f);
    for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}
""",
    "chunks merged": """
rows, n = x.shape
kernel[rows](x, weight, bias, out, n)
---
extern "C" void kernel(long row, const float* x, const float* weight, const float* bias, float* out, long n) {
    x += row * n, out += row * n;
    float mean = 0, squares = 0;
    for (long begin = 0; begin < n; begin += 128) {
        long size = std::min(n - begin, 128l);
        float sum = 0, around = 0;
        for (long i = begin; i < begin + size; i++) sum += x[i];
        float centre = sum / size, delta = centre - mean;
        for (long i = begin; i < begin + size; i++) around += (x[i] - centre) * (x[i] - centre);
        squares += around + delta * delta * begin * size / (begin + size);
        mean += delta * size / (begin + size);
    }
    float scale = 1 / std::sqrt(squares / n + 1e-5f);
    for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}
""",
}

_GROUP_NORM = """
b, c, size = x.shape
kernel[b, 4](x, out, c // 4 * size)
---
extern "C" void kernel(long image, long group, const float* x, float* out, long n) {
    x += (image * 4 + group) * n, out += (image * 4 + group) * n;
    double sum = 0, squares = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    double mean = sum / n;
    for (long i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / std::sqrt(squares / n + 1e-5);
    for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * scale;
}
"""

_L2_NORMALISE = """
rows, n = x.shape
kernel[rows](x, out, n)
---
extern "C" void kernel(long row, const float* x, float* out, long n) {
    x += row * n, out += row * n;
    float squares = 0;
    for (long i = 0; i < n; i++) squares = std::fma(x[i], x[i], squares);
    float norm = std::max(std::sqrt(squares), 1e-12f);
    for (long i = 0; i < n; i++) out[i] = x[i] / norm;
}
"""

_RMS_NORM = """
rows, n = x.shape
kernel[rows](x, weight, out, n)
---
extern "C" void kernel(long row, const float* x, const float* weight, float* out, long n) {
    x += row * n, out += row * n;
    float lane[8] = {};
    for (long i = 0; i < n; i++) lane[i % 8] += x[i] * x[i];
    float squares = 0;
    for (int l = 0; l < 8; l++) squares += lane[l];
    float scale = 1 / std::sqrt(squares / n + 1e-6f);
    for (long i = 0; i < n; i++) out[i] = x[i] * scale * weight[i];
}
"""

_MIN_MAX_SCALE = """
rows, n = x.shape
kernel[rows](x, out, n)
---
extern "C" void kernel(long row, const float* x, float* out, long n) {
    x += row * n, out += row * n;
    float low = x[0], high = x[0];
    for (long i = 1; i < n; i++) {
        if (x[i] < low || std::isnan(x[i])) low = x[i];
        if (x[i] > high || std::isnan(x[i])) high = x[i];
    }
    for (long i = 0; i < n; i++) out[i] = (x[i] - low) / (high - low + 1e-3f);
}
"""


def _min_max_scale(x: torch.Tensor) -> torch.Tensor:
    low = torch.amin(x, dim=-1, keepdim=True)
    return (x - low) / (torch.amax(x, dim=-1, keepdim=True) - low + 1e-3)


OPERATORS = (
    Operator("softmax", lambda x: torch.softmax(x, dim=-1), lambda: [torch.randn(67, 1501)], _SOFTMAX),
    Operator("masked_softmax", lambda x, mask: torch.softmax(x.masked_fill(mask, float("-inf")), dim=-1),
             lambda: [torch.randn(67, 701), torch.rand(67, 701) < 0.3], {"three passes": _MASKED_SOFTMAX}),
    Operator("log_softmax_middle", lambda x: torch.log_softmax(x, dim=1), lambda: [torch.randn(5, 301, 43)],
             {"strided": _LOG_SOFTMAX_DIM1}),
    Operator("layer_norm", lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias),
             lambda: [torch.randn(67, 1301), torch.randn(1301), torch.randn(1301)], _LAYER_NORM),
    Operator("group_norm", lambda x: F.group_norm(x, 4), lambda: [torch.randn(5, 24, 331)],
             {"double": _GROUP_NORM}),
    Operator("l2_normalise", lambda x: F.normalize(x, dim=-1), lambda: [torch.randn(67, 1501)],
             {"sequential": _L2_NORMALISE}),
    Operator("rms_norm", lambda x, weight:
             x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True) + 1e-6) * weight,
             lambda: [torch.randn(67, 1301), torch.randn(1301)], {"lanes": _RMS_NORM}),
    Operator("min_max_scale", _min_max_scale, lambda: [torch.randn(67, 1501)],
             {"sequential": _MIN_MAX_SCALE}),
)  # fmt: skip
