/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: one block finds a group's moments in one sweep and
writes all its channels but the first, line by line, prefetching the next group; a second launch writes the first ones.
tune:
    LANES = 16 | 8
    STRIP = 2048 | 1024 | 256
    AHEAD = 256 | 1024
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length, self.eps)
    border[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define HALF (LANES / 2)
#define ACCS 4
#define CHUNK 4096

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
    dvec all = (part[0] + part[1]) + (part[2] + part[3]);
    double t = 0;
    for (int k = 0; k < HALF; ++k) t += all[k];
    return t;
}

/* Between -104, below which the exponential is zero, and 30, above which e / (1 + e) is one; NaN stays. */
inline __attribute__((always_inline)) vec clamped(vec v) {
#if LANES == 16 && defined(__AVX512F__)
    __m512 t = _mm512_max_ps(_mm512_set1_ps(-104.0f), (__m512)v);
    return (vec)_mm512_min_ps(_mm512_set1_ps(30.0f), t);
#elif LANES == 8 && defined(__AVX__)
    __m256 t = _mm256_max_ps(_mm256_set1_ps(-104.0f), (__m256)v);
    return (vec)_mm256_min_ps(_mm256_set1_ps(30.0f), t);
#else
    const vec zero = {};
    const vec low = zero - 104.0f;
    const vec high = zero + 30.0f;
    v = v < low ? low : v;
    return v > high ? high : v;
#endif
}

/* p * 2^n for whole n from -150 to 43; z is n plus 1.5 * 2^23. */
inline __attribute__((always_inline)) vec scaled(vec p, vec n, vec z) {
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#elif LANES == 8 && defined(__AVX512VL__)
    return (vec)_mm256_scalef_ps((__m256)p, (__m256)n);
#else
    vec power = (vec)(((uvec)z << 23) + (191u << 23));
    vec e = p * power;
    return e * 0x1p-64f;
#endif
}

/* exp(v) / (1 + exp(v)): exact 0 at -infinity, 1 at infinity, small results keep their digits. */
inline __attribute__((always_inline)) vec sigmoid(vec v) {
    vec t = clamped(v);
    vec z = t * 1.44269504088896341f + 12582912.0f;
    vec n = z - 12582912.0f;
    vec r = t - n * 0.693147180559945309f;
    vec p = r * 0x1.6b7338p-10f + 0x1.12278ep-7f;
    p = p * r + 0x1.555716p-5f;
    p = p * r + 0x1.5554b0p-3f;
    p = p * r + 0x1.fffffep-2f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vec e = scaled(p, n, z);
    return e / (e + 1.0f);
}

/* One channel: where it lies and how it is normalised. */
struct Line {
    const float* x;
    const float* skip;
    float mean, inverse, scale, shift;
    float factor, offset;
    bool fold;
};

/* The folded form where it is as exact as subtracting the mean first; false for NaN. */
inline __attribute__((always_inline)) Line described(const float* x, const float* skip, double mean, double inverse,
                                                     float scale, float shift) {
    Line line;
    line.x = x;
    line.skip = skip;
    line.mean = (float)mean;
    line.inverse = (float)inverse;
    line.scale = scale;
    line.shift = shift;
    double product = inverse * (double)scale;
    double size = fabs(product);
    line.fold = fabs(mean * inverse) <= 4.0 && size >= 1e-30 && size <= 1e30;
    line.factor = (float)product;
    line.offset = (float)((double)shift - mean * (double)line.factor);
    return line;
}

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

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) vec normalised(const Line& line, vec s, long i, long count) {
    vec v = load<PART>(line.x + i, count) + s;
    if (FOLD) return v * line.factor + line.offset;
    return ((v - line.mean) * line.inverse) * line.scale + line.shift;
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void next(const Line& line, float* before, float* to, long i, long count) {
    vec s = load<PART>(line.skip + i, count);
    vec y = normalised<FOLD, PART>(line, s, i, count);
    vec result = y * sigmoid(load<false>(before + i, LANES)) + s;
    store<false>(before + i, y, LANES);
    store<PART>(to + i, result, count);
}

/* The first line of a strip: its y, no output. */
template <bool FOLD>
inline __attribute__((always_inline)) void open(const Line line, float* before, long m, long n) {
    long j = 0;
    for (; j + LANES <= m; j += LANES) {
        __builtin_prefetch(line.x + n + j, 0, 2);
        __builtin_prefetch(line.skip + n + j, 0, 2);
        vec y = normalised<FOLD, false>(line, load<false>(line.skip + j, LANES), j, LANES);
        store<false>(before + j, y, LANES);
    }
    if (j < m) {
        vec y = normalised<FOLD, true>(line, load<true>(line.skip + j, m - j), j, m - j);
        store<false>(before + j, y, LANES);
    }
}

/* Every further line: gated by the carried y, which its own y replaces. */
template <bool FOLD>
inline __attribute__((always_inline)) void row(const Line line, float* before, float* to, long m, long n) {
    long j = 0;
    for (; j + 2 * LANES <= m; j += 2 * LANES) {
#pragma GCC unroll 2
        for (int u = 0; u < 2; ++u) {
            long at = j + u * LANES;
            __builtin_prefetch(line.x + n + at, 0, 2);
            __builtin_prefetch(line.skip + n + at, 0, 2);
            __builtin_prefetch(to + at + AHEAD, 1, 3);
            next<FOLD, false>(line, before, to, at, LANES);
        }
    }
    for (; j + LANES <= m; j += LANES) next<FOLD, false>(line, before, to, j, LANES);
    if (j < m) next<FOLD, true>(line, before, to, j, m - j);
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* out, long groups, long width, long length, double eps) {
    long n = width * length, start = (b * groups + g) * n;
    x += start;
    skip += start;
    out += start;
    scale += g * width;
    shift += g * width;

    double count = 0, mean = 0, squares = 0;
    for (long from = 0; from < n; from += CHUNK) {
        long m = n - from < CHUNK ? n - from : CHUNK;
        const float* xs = x + from;
        const float* ss = skip + from;
        float origin = xs[0] + ss[0];
        double base = (double)origin;
        dvec part[ACCS] = {};
        dvec dev[ACCS] = {};
        long i = 0;
        for (; i + ACCS * HALF <= m; i += ACCS * HALF) {
#pragma GCC unroll 4
            for (int u = 0; u < ACCS; ++u) {
                dvec d = both(xs + i + u * HALF, ss + i + u * HALF) - base;
                part[u] += d;
                dev[u] += d * d;
            }
        }
        for (; i + HALF <= m; i += HALF) {
            dvec d = both(xs + i, ss + i) - base;
            part[0] += d;
            dev[0] += d * d;
        }
        double sum = total(part), found = total(dev);
        for (; i < m; ++i) {
            float v = xs[i] + ss[i];
            double d = (double)v - base;
            sum += d;
            found += d * d;
        }
        /* base is an element of the chunk: (its distance from the mean)^2 is at most the chunk's squared deviations */
        double off = sum / (double)m;
        double here = base + off;
        found -= sum * off;

        double all = count + (double)m;
        double delta = here - mean;
        double share = (double)m / all;
        mean += delta * share;
        squares += found + delta * delta * (count * share);
        count = all;
    }

    double inverse = 1.0 / sqrt(squares / (double)n + eps);
    stats[(b * groups + g) * 2] = (float)mean;
    stats[(b * groups + g) * 2 + 1] = (float)inverse;
    if (width == 1) return;

    float before[STRIP + LANES] __attribute__((aligned(64)));
    for (long from = 0; from < length; from += STRIP) {
        long m = length - from < STRIP ? length - from : STRIP;
        Line line = described(x + from, skip + from, mean, inverse, scale[0], shift[0]);
        if (line.fold)
            open<true>(line, before, m, n);
        else
            open<false>(line, before, m, n);
        for (long c = 1; c < width; ++c) {
            long at = c * length + from;
            line = described(x + at, skip + at, mean, inverse, scale[c], shift[c]);
            if (line.fold)
                row<true>(line, before, out + at, m, n);
            else
                row<false>(line, before, out + at, m, n);
        }
    }
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void gated(const Line& own, const Line& other, float* to, long i, long count) {
    vec before = normalised<FOLD, PART>(other, load<PART>(other.skip + i, count), i, count);
    vec s = load<PART>(own.skip + i, count);
    vec y = normalised<FOLD, PART>(own, s, i, count);
    vec result = y * sigmoid(before) + s;
    store<PART>(to + i, result, count);
}

template <bool FOLD>
inline __attribute__((always_inline)) void first(const Line own, const Line other, float* to, long length) {
    long i = 0;
    for (; i + LANES <= length; i += LANES) {
        __builtin_prefetch(to + i + AHEAD, 1, 3);
        gated<FOLD, false>(own, other, to, i, LANES);
    }
    if (i < length) gated<FOLD, true>(own, other, to, i, length - i);
}

extern "C" void border(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                       const float* stats, float* out, long groups, long width, long length) {
    long h = g == 0 ? groups - 1 : g - 1;
    long c = g * width, p = h * width + width - 1;
    long channels = groups * width;
    long here = (b * channels + c) * length, there = (b * channels + p) * length;
    const float* mine = stats + (b * groups + g) * 2;
    const float* theirs = stats + (b * groups + h) * 2;
    Line own = described(x + here, skip + here, (double)mine[0], (double)mine[1], scale[c], shift[c]);
    Line other = described(x + there, skip + there, (double)theirs[0], (double)theirs[1], scale[p], shift[p]);
    if (own.fold && other.fold)
        first<true>(own, other, out + here, length);
    else
        first<false>(own, other, out + here, length);
}
