/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: every group's moments and all its channels but the
first in one block, while the group is in the second-level cache; then the first channel of every group.
tune:
    LANES = 16 | 8
    TILE = 4 | 8 | 2
    UNROLL = 4 | 2
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length, self.eps)
    border[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length)
*/
#include <math.h>
#include <string.h>

#define HALF (LANES / 2)

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef float hvec __attribute__((vector_size(4 * HALF)));
typedef double dvec __attribute__((vector_size(8 * HALF)));

inline __attribute__((always_inline)) dvec both(const float* x, const float* skip) {
    hvec v, s;
    memcpy(&v, x, sizeof v);
    memcpy(&s, skip, sizeof s);
    v = v + s;
    return __builtin_convertvector(v, dvec);
}

inline __attribute__((always_inline)) double total(const dvec* part) {
    dvec all = part[0];
    for (int u = 1; u < UNROLL; ++u) all += part[u];
    double t = 0;
    for (int k = 0; k < HALF; ++k) t += all[k];
    return t;
}

/* 1 / (1 + exp(-v)), with the exponential of -|v|: it never overflows, and small results keep their digits. */
inline __attribute__((always_inline)) vec sigmoid(vec v) {
    const vec zero = {};
    const vec one = zero + 1.0f;
    const vec low = zero - 104.0f;
    vec t = (vec)((uvec)v | 0x80000000u);
    t = t < low ? low : t;
    vec z = t * 1.44269504088896341f + 12582912.0f;
    vec n = z - 12582912.0f;
    vec r = t - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 0x1.6b7338p-10f + 0x1.12278ep-7f;
    p = p * r + 0x1.555716p-5f;
    p = p * r + 0x1.5554b0p-3f;
    p = p * r + 0x1.fffffep-2f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vec power = (vec)(((uvec)z << 23) + (191u << 23));
    vec e = p * power;
    e = e * 0x1p-64f;
    vec top = v >= zero ? one : e;
    return top / (e + 1.0f);
}

struct Line {
    const float* x;
    const float* skip;
    float mean, inverse, scale, shift;
};

template <bool PART>
inline __attribute__((always_inline)) vec load(const float* from, long count) {
    vec v = {};
    if (PART)
        memcpy(&v, from, 4 * count);
    else
        memcpy(&v, from, sizeof v);
    return v;
}

template <bool PART>
inline __attribute__((always_inline)) void store(float* to, vec v, long count) {
    if (PART)
        memcpy(to, &v, 4 * count);
    else
        memcpy(to, &v, sizeof v);
}

template <bool PART>
inline __attribute__((always_inline)) vec normalised(const Line& line, vec s, long i, long count) {
    vec v = load<PART>(line.x + i, count) + s;
    return ((v - line.mean) * line.inverse) * line.scale + line.shift;
}

/* N vectors of all channels of a group but the first. */
template <int N, bool PART>
inline __attribute__((always_inline)) void column(const float* x, const float* skip, const float* scale,
                                                  const float* shift, float* out, float mean, float inverse,
                                                  long width, long length, long i, long count) {
    vec before[N];
    Line line = {x, skip, mean, inverse, scale[0], shift[0]};
#pragma GCC unroll 8
    for (int u = 0; u < N; ++u)
        before[u] = normalised<PART>(line, load<PART>(skip + i + u * LANES, count), i + u * LANES, count);
    for (long c = 1; c < width; ++c) {
        line = {x + c * length, skip + c * length, mean, inverse, scale[c], shift[c]};
        float* to = out + c * length;
#pragma GCC unroll 8
        for (int u = 0; u < N; ++u) {
            long at = i + u * LANES;
            vec s = load<PART>(line.skip + at, count);
            vec y = normalised<PART>(line, s, at, count);
            vec result = y * sigmoid(before[u]) + s;
            before[u] = y;
            store<PART>(to + at, result, count);
        }
    }
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* out, long groups, long width, long length, double eps) {
    long n = width * length, start = (b * groups + g) * n;
    x += start;
    skip += start;
    out += start;
    scale += g * width;
    shift += g * width;

    dvec part[UNROLL] = {};
    long i = 0;
    for (; i + UNROLL * HALF <= n; i += UNROLL * HALF) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) part[u] += both(x + i + u * HALF, skip + i + u * HALF);
    }
    for (; i + HALF <= n; i += HALF) part[0] += both(x + i, skip + i);
    double sum = total(part);
    for (; i < n; ++i) {
        float v = x[i] + skip[i];
        sum += (double)v;
    }
    double mean = sum / (double)n;

    dvec dev[UNROLL] = {};
    i = 0;
    for (; i + UNROLL * HALF <= n; i += UNROLL * HALF) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            dvec d = both(x + i + u * HALF, skip + i + u * HALF) - mean;
            dev[u] += d * d;
        }
    }
    for (; i + HALF <= n; i += HALF) {
        dvec d = both(x + i, skip + i) - mean;
        dev[0] += d * d;
    }
    double squares = total(dev);
    for (; i < n; ++i) {
        float v = x[i] + skip[i];
        double d = (double)v - mean;
        squares += d * d;
    }

    float centre = (float)mean;
    float inverse = (float)(1.0 / sqrt(squares / (double)n + eps));
    stats[(b * groups + g) * 2] = centre;
    stats[(b * groups + g) * 2 + 1] = inverse;
    if (width == 1) return;

    long j = 0;
    for (; j + TILE * LANES <= length; j += TILE * LANES)
        column<TILE, false>(x, skip, scale, shift, out, centre, inverse, width, length, j, LANES);
    for (; j + LANES <= length; j += LANES)
        column<1, false>(x, skip, scale, shift, out, centre, inverse, width, length, j, LANES);
    if (j < length) column<1, true>(x, skip, scale, shift, out, centre, inverse, width, length, j, length - j);
}

template <bool PART>
inline __attribute__((always_inline)) void gated(const Line& own, const Line& other, float* to, long i, long count) {
    vec before = normalised<PART>(other, load<PART>(other.skip + i, count), i, count);
    vec s = load<PART>(own.skip + i, count);
    vec y = normalised<PART>(own, s, i, count);
    vec result = y * sigmoid(before) + s;
    store<PART>(to + i, result, count);
}

extern "C" void border(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                       const float* stats, float* out, long groups, long width, long length) {
    long h = g == 0 ? groups - 1 : g - 1;
    long c = g * width, p = h * width + width - 1;
    long channels = groups * width;
    long here = (b * channels + c) * length, there = (b * channels + p) * length;
    const float* mine = stats + (b * groups + g) * 2;
    const float* theirs = stats + (b * groups + h) * 2;
    Line own = {x + here, skip + here, mine[0], mine[1], scale[c], shift[c]};
    Line other = {x + there, skip + there, theirs[0], theirs[1], scale[p], shift[p]};
    float* to = out + here;
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) gated<false>(own, other, to, i + u * LANES, LANES);
    }
    for (; i + LANES <= length; i += LANES) gated<false>(own, other, to, i, LANES);
    if (i < length) gated<true>(own, other, to, i, length - i);
}
