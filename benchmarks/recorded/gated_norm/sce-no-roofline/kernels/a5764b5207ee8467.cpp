/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: chunk-wise shifted moments of every group in one
sweep, then runs of channels backwards, row by row, with the normalised channel before kept in the first-level cache.
tune:
    LANES = 16 | 8
    BLOCK = 2048 | 1024
    RUN = 16 | 32
    CHUNK = 4096 | 16384
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    coef = scratch((batch, channels, 4), f32)
    runs = cdiv(channels, RUN)
    moments[batch, self.groups](x, skip, scale, shift, coef, self.groups, width, length, self.eps)
    gate[batch, runs](x, skip, scale, shift, coef, out, batch, runs, channels, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define HALF (LANES / 2)
#define ACCS 4

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

extern "C" void moments(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                        float* coef, long groups, long width, long length, double eps) {
    long n = width * length, start = (b * groups + g) * n;
    x += start;
    skip += start;
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
        /* base is an element of the chunk, so (mean - base)^2 is at most the chunk's own sum of squared deviations:
           the subtraction loses no more than a factor of the chunk's length of a double's precision. */
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
    bool near = fabs(mean * inverse) <= 4.0; /* false for NaN */
    float* to = coef + (b * groups + g) * width * 4;
    scale += g * width;
    shift += g * width;
    for (long c = 0; c < width; ++c) {
        double product = inverse * (double)scale[c];
        double size = fabs(product);
        bool fold = near && size >= 1e-30 && size <= 1e30;
        float factor = fold ? (float)product : 0.0f; /* 0: subtract first */
        float offset = fold ? (float)((double)shift[c] - mean * (double)factor) : 0.0f;
        to[4 * c] = (float)mean;
        to[4 * c + 1] = (float)inverse;
        to[4 * c + 2] = factor;
        to[4 * c + 3] = offset;
    }
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

/* exp(v) / (1 + exp(v)) */
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

struct Line {
    const float* x;
    const float* skip;
    float mean, inverse, scale, shift, factor, offset;
};

template <bool FOLD>
inline __attribute__((always_inline)) vec normalised(const Line& line, vec v) {
    if (FOLD) return v * line.factor + line.offset;
    return ((v - line.mean) * line.inverse) * line.scale + line.shift;
}

template <bool PART>
inline __attribute__((always_inline)) void begin(const Line& line, float* before, long i, long count) {
    vec y = normalised<false>(line, load<PART>(line.x + i, count) + load<PART>(line.skip + i, count));
    store<false>(before + i, y, LANES);
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void next(const Line& line, float* before, float* to, long i, long count) {
    vec s = load<PART>(line.skip + i, count);
    vec y = normalised<FOLD>(line, load<PART>(line.x + i, count) + s);
    vec result = y * sigmoid(load<false>(before + i, LANES)) + s;
    store<false>(before + i, y, LANES);
    store<PART>(to + i, result, count);
}

template <bool FOLD>
inline __attribute__((always_inline)) void row(const Line line, float* before, float* to, long m) {
    long i = 0;
    for (; i + 2 * LANES <= m; i += 2 * LANES) {
        next<FOLD, false>(line, before, to, i, LANES);
        next<FOLD, false>(line, before, to, i + LANES, LANES);
    }
    for (; i + LANES <= m; i += LANES) next<FOLD, false>(line, before, to, i, LANES);
    if (i < m) next<FOLD, true>(line, before, to, i, m - i);
}

extern "C" void gate(long b, long block, const float* x, const float* skip, const float* scale, const float* shift,
                     const float* coef, float* out, long batch, long runs, long channels, long length) {
    /* backwards: what the launch before read last is still in the cache */
    b = batch - 1 - b;
    block = runs - 1 - block;
    long first = block * RUN;
    long last = first + RUN < channels ? first + RUN : channels;
    long p = first == 0 ? channels - 1 : first - 1;
    x += b * channels * length;
    skip += b * channels * length;
    out += b * channels * length;
    coef += b * channels * 4;

    float before[BLOCK + LANES] __attribute__((aligned(64)));
    for (long from = 0; from < length; from += BLOCK) {
        long m = length - from < BLOCK ? length - from : BLOCK;
        {
            const Line line = {x + p * length + from, skip + p * length + from, coef[4 * p], coef[4 * p + 1],
                               scale[p], shift[p], coef[4 * p + 2], coef[4 * p + 3]};
            long i = 0;
            for (; i + LANES <= m; i += LANES) begin<false>(line, before, i, LANES);
            if (i < m) begin<true>(line, before, i, m - i);
        }
        for (long k = first; k < last; ++k) {
            const Line line = {x + k * length + from, skip + k * length + from, coef[4 * k], coef[4 * k + 1],
                               scale[k], shift[k], coef[4 * k + 2], coef[4 * k + 3]};
            float* to = out + k * length + from;
            if (line.factor != 0.0f)
                row<true>(line, before, to, m);
            else
                row<false>(line, before, to, m);
        }
    }
}
