/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: one block finds a group's moments in one sweep and
writes all its channels but the first, line by line, prefetching the next group; a second launch writes the first ones.
tune:
    LANES = 16 | 8
    STRIP = 2048 | 512
    AHEAD = 256 | 1024 | 64
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

/* How a channel is normalised. */
struct Rule {
    float mean, inverse, scale, shift, factor, offset;
};

inline __attribute__((always_inline)) Rule rule(double mean, double inverse, float scale, float shift) {
    float factor = (float)(inverse * (double)scale);
    float offset = (float)((double)shift - mean * (double)factor);
    return {(float)mean, (float)inverse, scale, shift, factor, offset};
}

/* Is the folded form as exact as subtracting the mean first? false for NaN */
inline __attribute__((always_inline)) bool folds(double mean, double inverse, float scale) {
    double size = fabs(inverse * (double)scale);
    return fabs(mean * inverse) <= 4.0 && size >= 1e-30 && size <= 1e30;
}

template <bool FOLD>
inline __attribute__((always_inline)) vec normalised(vec v, Rule by) {
    if (FOLD) return v * by.factor + by.offset;
    return ((v - by.mean) * by.inverse) * by.scale + by.shift;
}

/* The first line of a strip: its y, no output. */
template <bool FOLD>
inline __attribute__((always_inline)) void open(const float* x, const float* skip, Rule by, float* before, long m,
                                                long n) {
    long j = 0;
    for (; j + LANES <= m; j += LANES) {
        __builtin_prefetch(x + n + j, 0, 2);
        __builtin_prefetch(skip + n + j, 0, 2);
        vec y = normalised<FOLD>(load<false>(x + j, LANES) + load<false>(skip + j, LANES), by);
        store<false>(before + j, y, LANES);
    }
    if (j < m) {
        vec y = normalised<FOLD>(load<true>(x + j, m - j) + load<true>(skip + j, m - j), by);
        store<false>(before + j, y, LANES);
    }
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void next(const float* x, const float* skip, Rule by, float* before, float* to,
                                                long count) {
    vec s = load<PART>(skip, count);
    vec y = normalised<FOLD>(load<PART>(x, count) + s, by);
    vec result = y * sigmoid(load<false>(before, LANES)) + s;
    store<false>(before, y, LANES);
    store<PART>(to, result, count);
}

/* Every further line: gated by the carried y, which its own y replaces. */
template <bool FOLD>
inline __attribute__((always_inline)) void row(const float* x, const float* skip, Rule by, float* before, float* to,
                                               long m, long n) {
    long j = 0;
    for (; j + LANES <= m; j += LANES) {
        __builtin_prefetch(x + n + j, 0, 2);
        __builtin_prefetch(skip + n + j, 0, 2);
        __builtin_prefetch(to + j + AHEAD, 1, 3);
        next<FOLD, false>(x + j, skip + j, by, before + j, to + j, LANES);
    }
    if (j < m) next<FOLD, true>(x + j, skip + j, by, before + j, to + j, m - j);
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
        Rule by = rule(mean, inverse, scale[0], shift[0]);
        if (folds(mean, inverse, scale[0]))
            open<true>(x + from, skip + from, by, before, m, n);
        else
            open<false>(x + from, skip + from, by, before, m, n);
        for (long c = 1; c < width; ++c) {
            long at = c * length + from;
            by = rule(mean, inverse, scale[c], shift[c]);
            if (folds(mean, inverse, scale[c]))
                row<true>(x + at, skip + at, by, before, out + at, m, n);
            else
                row<false>(x + at, skip + at, by, before, out + at, m, n);
        }
    }
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void gated(const float* x, const float* skip, Rule by, const float* px,
                                                 const float* pskip, Rule pby, float* to, long count) {
    vec before = normalised<FOLD>(load<PART>(px, count) + load<PART>(pskip, count), pby);
    vec s = load<PART>(skip, count);
    vec y = normalised<FOLD>(load<PART>(x, count) + s, by);
    vec result = y * sigmoid(before) + s;
    store<PART>(to, result, count);
}

template <bool FOLD>
inline __attribute__((always_inline)) void first(const float* x, const float* skip, Rule by, const float* px,
                                                 const float* pskip, Rule pby, float* to, long length, long n) {
    long i = 0;
    for (; i + LANES <= length; i += LANES) {
        /* the next block's two channels: the last of this group, the first of the next one */
        __builtin_prefetch(x + n - length + i, 0, 2);
        __builtin_prefetch(skip + n - length + i, 0, 2);
        __builtin_prefetch(x + n + i, 0, 2);
        __builtin_prefetch(skip + n + i, 0, 2);
        gated<FOLD, false>(x + i, skip + i, by, px + i, pskip + i, pby, to + i, LANES);
    }
    if (i < length) gated<FOLD, true>(x + i, skip + i, by, px + i, pskip + i, pby, to + i, length - i);
}

extern "C" void border(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                       const float* stats, float* out, long groups, long width, long length) {
    long h = g == 0 ? groups - 1 : g - 1;
    long c = g * width, p = h * width + width - 1;
    long channels = groups * width;
    long here = (b * channels + c) * length, there = (b * channels + p) * length;
    long n = width * length;
    double mean = stats[(b * groups + g) * 2], inverse = stats[(b * groups + g) * 2 + 1];
    double pmean = stats[(b * groups + h) * 2], pinverse = stats[(b * groups + h) * 2 + 1];
    Rule by = rule(mean, inverse, scale[c], shift[c]);
    Rule pby = rule(pmean, pinverse, scale[p], shift[p]);
    if (folds(mean, inverse, scale[c]) && folds(pmean, pinverse, scale[p]))
        first<true>(x + here, skip + here, by, x + there, skip + there, pby, out + here, length, n);
    else
        first<false>(x + here, skip + here, by, x + there, skip + there, pby, out + here, length, n);
}
