/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: one block finds a group's moments in one sweep and
writes all its channels but the first, prefetching the next group; a second launch writes every group's first channel.
tune:
    LANES = 16
    BLOCK = 2048
    AHEAD = 256
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length, self.eps)
    border[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length)
strategy:
    fuse-passes
    prefetch
    vectorize
    First launch, one block per (batch, group), does moments and output of all the group's channels but the first, while the group's x and skip (128 KiB) are in the second-level cache; mean and rstd also go to scratch.
    Moments take one sweep in chunks: with the chunk's first element as shift, sums of differences and of their squares in double, four vector accumulators each; M2 = S2 - S1*S1/m loses at most a factor of the chunk's length of a double's precision; chunks are merged with count, mean and M2.
    With every vector of a row the output sweep prefetches the lines one group further on in x and skip into the second-level cache for the next block, and out for writing a fixed distance ahead in the row.
    The output sweep goes channel by channel over long tiles of a row; y of the tile stays in a local array in the first-level cache (channel 0 fills it without output), and is computed once per element.
    Where |mean| is at most four deviations and rstd * scale lies in [1e-30, 1e30], y is one multiply-add (x + skip) * factor + offset, the offset computed in double from the rounded factor; every other channel, NaN included, uses ((v - mean) * rstd) * scale + shift. Both are instances of one template.
    The sigmoid is e / (1 + e), e = exp(v) with v clamped to [-104, 30] by NaN-keeping vector max and min, a multiple of ln 2 taken off by rounding with 1.5 * 2^23, a polynomial of degree 6 in Horner form, and scalef where AVX-512 has it (else exponent bits in two steps).
    Second launch, one block per (batch, group), writes each group's first channel from its own x and skip and y of the last channel of the group before (the last group for group 0), subtracting the mean first, with both groups' moments from scratch; groups of one channel are wholly done here.
proof:
    identity: 257c9ec37bb4d41f
    problem: gated_norm e2ca134e89ac59c290d01bd3702ab1e8
    right on 41 inputs at 7 shapes
    over eager: 2.64x [2.57, 2.72]
    over compile: 2.25x [2.20, 2.30]
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

template <bool PART>
inline __attribute__((always_inline)) void begin(const Line& line, float* before, long i, long count) {
    vec y = normalised<PART>(line, load<PART>(line.skip + i, count), i, count);
    store<false>(before + i, y, LANES);
}

template <bool FOLD, bool PART>
inline __attribute__((always_inline)) void next(const Line& line, float factor, float offset, float* before, float* to,
                                                long i, long count) {
    vec s = load<PART>(line.skip + i, count);
    vec y;
    if (FOLD)
        y = (load<PART>(line.x + i, count) + s) * factor + offset;
    else
        y = normalised<PART>(line, s, i, count);
    vec result = y * sigmoid(load<false>(before + i, LANES)) + s;
    store<false>(before + i, y, LANES);
    store<PART>(to + i, result, count);
}

template <bool FOLD>
inline __attribute__((always_inline)) void row(const Line& line, float factor, float offset, float* before, float* to,
                                               long m, long n) {
    long j = 0;
    for (; j + LANES <= m; j += LANES) {
        __builtin_prefetch(line.x + n + j, 0, 2);
        __builtin_prefetch(line.skip + n + j, 0, 2);
        __builtin_prefetch(to + j + AHEAD, 1, 3);
        next<FOLD, false>(line, factor, offset, before, to, j, LANES);
    }
    if (j < m) next<FOLD, true>(line, factor, offset, before, to, j, m - j);
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

    float centre = (float)mean;
    double exact = 1.0 / sqrt(squares / (double)n + eps);
    float inverse = (float)exact;
    stats[(b * groups + g) * 2] = centre;
    stats[(b * groups + g) * 2 + 1] = inverse;
    if (width == 1) return;

    /* false for NaN */
    bool near = fabs(mean * exact) <= 4.0;

    float before[BLOCK + LANES] __attribute__((aligned(64)));
    for (long from = 0; from < length; from += BLOCK) {
        long m = length - from < BLOCK ? length - from : BLOCK;
        Line line = {x + from, skip + from, centre, inverse, scale[0], shift[0]};
        long j = 0;
        for (; j + LANES <= m; j += LANES) {
            __builtin_prefetch(line.x + n + j, 0, 2);
            __builtin_prefetch(line.skip + n + j, 0, 2);
            begin<false>(line, before, j, LANES);
        }
        if (j < m) begin<true>(line, before, j, m - j);
        for (long c = 1; c < width; ++c) {
            line = {x + c * length + from, skip + c * length + from, centre, inverse, scale[c], shift[c]};
            float* to = out + c * length + from;
            double product = exact * (double)scale[c];
            double size = fabs(product);
            if (near && size >= 1e-30 && size <= 1e30) {
                float factor = (float)product;
                float offset = (float)((double)shift[c] - mean * (double)factor);
                row<true>(line, factor, offset, before, to, m, n);
            } else {
                row<false>(line, 0.0f, 0.0f, before, to, m, n);
            }
        }
    }
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
    for (; i + LANES <= length; i += LANES) gated<false>(own, other, to, i, LANES);
    if (i < length) gated<true>(own, other, to, i, length - i);
}
