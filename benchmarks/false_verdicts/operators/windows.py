"""Convolutions, pooling, interpolation: every output looks at a window of the input."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from benchmarks.false_verdicts.operator import Operator

_CONV1D = {
    "direct": """
b, c, n = x.shape
o, c, taps = weight.shape
kernel[b, o](x, weight, out, c, n, o, taps, out.shape[2])
---
extern "C" void kernel(long entry, long to, const float* x, const float* weight, float* out, long c, long n,
                       long o, long taps, long length) {
    x += entry * c * n, weight += to * c * taps, out += (entry * o + to) * length;
    for (long i = 0; i < length; i++) {
        float sum = 0;
        for (long from = 0; from < c; from++)
            for (long t = 0; t < taps; t++) {
                long at = i + t - 2;
                if (at < 0 || at >= n) continue;
                sum += x[from * n + at] * weight[from * taps + t];
            }
        out[i] = sum;
    }
}
""",
    "by taps": """
b, c, n = x.shape
o, c, taps = weight.shape
kernel[b, o](x, weight, out, c, n, o, taps, out.shape[2])
---
extern "C" void kernel(long entry, long to, const float* x, const float* weight, float* out, long c, long n,
                       long o, long taps, long length) {
    out += (entry * o + to) * length;
    for (long i = 0; i < length; i++) out[i] = 0;
    for (long t = 0; t < taps; t++)
        for (long from = 0; from < c; from++) {
            float w = weight[(to * c + from) * taps + t];
            long shift = t - 2;
            for (long i = std::max(0l, -shift); i < std::min(length, n - shift); i++)
                out[i] += w * x[(entry * c + from) * n + i + shift];
        }
}
""",
}

_CONV3D = """
b, c, d, h, w = x.shape
o, c, taps = weight.shape
kernel[b, o, d - 2](x, weight, out, c, d, h, w, o)
---
extern "C" void kernel(long entry, long to, long z, const float* x, const float* weight, float* out, long c,
                       long d, long h, long w, long o) {  // for windows of 3 x 3 x 3
    for (long y = 0; y < h - 2; y++)
        for (long i = 0; i < w - 2; i++) {
            float sum = 0;
            for (long from = 0; from < c; from++)
                for (long t = 0; t < 27; t++) {
                    long dz = t / 9, dy = t / 3 % 3, dx = t % 3;
                    sum += x[(((entry * c + from) * d + z + dz) * h + y + dy) * w + i + dx] *
                           weight[(to * c + from) * 27 + t];
                }
            out[(((entry * o + to) * (d - 2) + z) * (h - 2) + y) * (w - 2) + i] = sum;
        }
}
"""

_CONV_TRANSPOSE1D = """
b, c, n = x.shape
c, o, taps = weight.shape
kernel[b, o](x, weight, out, c, n, o, taps)
---
extern "C" void kernel(long entry, long to, const float* x, const float* weight, float* out, long c, long n,
                       long o, long taps) {
    long length = (n - 1) * 2 + taps;
    out += (entry * o + to) * length;
    for (long i = 0; i < length; i++) out[i] = 0;
    for (long from = 0; from < c; from++)
        for (long i = 0; i < n; i++)
            for (long t = 0; t < taps; t++)
                out[i * 2 + t] += x[(entry * c + from) * n + i] * weight[(from * o + to) * taps + t];
}
"""

_AVG_POOL3D = """
planes, d, h, w = x.shape
kernel[planes](x, out, d, h, w)
---
extern "C" void kernel(long plane, const float* x, float* out, long d, long h, long w) {
    x += plane * d * h * w, out += plane * (d / 2) * (h / 2) * (w / 2);
    for (long z = 0; z < d / 2; z++)
        for (long y = 0; y < h / 2; y++)
            for (long i = 0; i < w / 2; i++) {
                float sum = 0;
                for (long t = 0; t < 8; t++)
                    sum += x[((2 * z + t / 4) * h + 2 * y + t / 2 % 2) * w + 2 * i + t % 2];
                out[(z * (h / 2) + y) * (w / 2) + i] = sum / 8;
            }
}
"""

_MAX_POOL1D = """
rows, n = x.shape
kernel[rows](x, out, n, out.shape[1])
---
extern "C" void kernel(long row, const float* x, float* out, long n, long length) {
    for (long i = 0; i < length; i++) {
        float largest = -INFINITY;
        for (long k = std::max(0l, i * 2 - 1); k < std::min(n, i * 2 + 3); k++) {
            float value = x[row * n + k];
            if (value > largest || std::isnan(value)) largest = value;
        }
        out[row * length + i] = largest;
    }
}
"""

_NEAREST = """
planes, h, w = x.shape
kernel[planes, 2 * h](x, out, h, w)
---
extern "C" void kernel(long plane, long y, const float* x, float* out, long h, long w) {
    for (long i = 0; i < 3 * w; i++)
        out[(plane * 2 * h + y) * 3 * w + i] = x[(plane * h + y / 2) * w + i / 3];
}
"""

_BILINEAR = """
planes, h, w = x.shape
kernel[planes, 2 * h](x, out, h, w)
---
extern "C" void kernel(long plane, long y, const float* x, float* out, long h, long w) {
    x += plane * h * w, out += (plane * 2 * h + y) * 2 * w;
    float v = std::max(0.0f, (y + 0.5f) / 2 - 0.5f);
    long top = v, bottom = std::min(top + 1, h - 1);
    for (long i = 0; i < 2 * w; i++) {
        float u = std::max(0.0f, (i + 0.5f) / 2 - 0.5f);
        long left = u, right = std::min(left + 1, w - 1);
        float a = u - left, b = v - top;
        float upper = (1 - a) * x[top * w + left] + a * x[top * w + right];
        float lower = (1 - a) * x[bottom * w + left] + a * x[bottom * w + right];
        out[i] = (1 - b) * upper + b * lower;
    }
}
"""

_DEPTHWISE = """
b, c, h, w = x.shape
kernel[b, c](x, weight, out, c, h, w)
---
extern "C" void kernel(long image, long channel, const float* x, const float* weight, float* out, long c,
                       long h, long w) {
    x += (image * c + channel) * h * w, out += (image * c + channel) * h * w;
    for (long y = 0; y < h; y++)
        for (long i = 0; i < w; i++) {
            float sum = 0;
            for (long r = std::max(0l, 1 - y); r < std::min(3l, h + 1 - y); r++)
                for (long s = std::max(0l, 1 - i); s < std::min(3l, w + 1 - i); s++)
                    sum += x[(y + r - 1) * w + i + s - 1] * weight[channel * 9 + r * 3 + s];
            out[y * w + i] = sum;
        }
}
"""


def _enlarge(x: torch.Tensor, mode: str) -> torch.Tensor:
    factor = (2.0, 3.0) if mode == "nearest" else (2.0, 2.0)
    return F.interpolate(x[None], scale_factor=factor, mode=mode)[0]


OPERATORS = (
    Operator("conv1d", lambda x, weight: F.conv1d(x, weight, padding=2),
             lambda: [torch.randn(3, 12, 151), torch.randn(9, 12, 5)], _CONV1D),
    Operator("conv3d", lambda x, weight: F.conv3d(x, weight.view(-1, x.shape[1], 3, 3, 3)),
             lambda: [torch.randn(2, 5, 7, 11, 13), torch.randn(6, 5, 27)], {"direct": _CONV3D}),
    Operator("conv_transpose1d", lambda x, weight: F.conv_transpose1d(x, weight, stride=2),
             lambda: [torch.randn(3, 12, 71), torch.randn(12, 9, 5)], {"scatter": _CONV_TRANSPOSE1D}),
    Operator("depthwise",
             lambda x, weight: F.conv2d(x, weight.view(-1, 1, 3, 3), padding=1, groups=x.shape[1]),
             lambda: [torch.randn(3, 11, 19, 23), torch.randn(11, 9)], {"direct": _DEPTHWISE}),
    Operator("avg_pool3d", lambda x: F.avg_pool3d(x, 2), lambda: [torch.randn(9, 10, 14, 18)],
             {"direct": _AVG_POOL3D}),
    Operator("max_pool1d", lambda x: F.max_pool1d(x, 4, stride=2, padding=1), lambda: [torch.randn(67, 601)],
             {"direct": _MAX_POOL1D}),
    Operator("nearest", lambda x: _enlarge(x, "nearest"), lambda: [torch.randn(9, 31, 37)],
             {"copy": _NEAREST}),
    Operator("bilinear", lambda x: _enlarge(x, "bilinear"), lambda: [torch.randn(9, 31, 37)],
             {"direct": _BILINEAR}),
)  # fmt: skip
