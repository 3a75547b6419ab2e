/* cupilot 1
Gated group norm: the first launch finds a group's moments and writes, while the group is in the cache, all its channels
but the first, walking down the channels with the gate's input in registers; the second launch writes the first ones.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    SUMS = 4 | 2
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length, self.eps)
    heads[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define HALF (LANES / 2)
#define CHUNK 32

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef float hvec __attribute__((vector_size(4 * HALF)));
typedef double dvec __attribute__((vector_size(8 * HALF)));

static inline __attribute__((always_inline)) dvec sum_at(const float* x, const float* k, double pivot) {
    hvec a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, k, sizeof b);
    hvec v = a + b;
    return __builtin_convertvector(v, dvec) - pivot;
}

/* Exact work for NaN, infinities and a pivot far outside of the data. */
static __attribute__((noinline)) void exact_moments(const float* x, const float* skip, long n, double* mean_out,
                                                    double* var_out) {
    double sum = 0, squares = 0;
    for (long i = 0; i < n; ++i) {
        float v = x[i] + skip[i];
        sum += v;
    }
    double mean = sum / n;
    for (long i = 0; i < n; ++i) {
        float v = x[i] + skip[i];
        double d = v - mean;
        squares += d * d;
    }
    *mean_out = mean;
    *var_out = squares / n;
}

static inline void moments(const float* xs, const float* ks, long n, double* mean_out, double* var_out) {
    const float first = xs[0] + ks[0];
    const double pivot = first;
    dvec s[SUMS] = {}, q[SUMS] = {};
    long i = 0;
    for (; i + SUMS * HALF <= n; i += SUMS * HALF) {
#pragma GCC unroll 8
        for (int u = 0; u < SUMS; ++u) {
            dvec d = sum_at(xs + i + u * HALF, ks + i + u * HALF, pivot);
            s[u] += d;
            q[u] += d * d;
        }
    }
    for (; i + HALF <= n; i += HALF) {
        dvec d = sum_at(xs + i, ks + i, pivot);
        s[0] += d;
        q[0] += d * d;
    }
    for (int u = 1; u < SUMS; ++u) {
        s[0] += s[u];
        q[0] += q[u];
    }
    double sum = 0, squares = 0;
    for (int k = 0; k < HALF; ++k) {
        sum += s[0][k];
        squares += q[0][k];
    }
    for (; i < n; ++i) {
        float v = xs[i] + ks[i];
        double d = v - pivot;
        sum += d;
        squares += d * d;
    }
    const double off = sum / n;
    *mean_out = pivot + off;
    *var_out = squares / n - off * off;
    if (!(squares < 1e300 && off * off <= 1e6 * *var_out) && !(squares == 0 && sum == 0))
        exact_moments(xs, ks, n, mean_out, var_out);
}

/* The smaller / the larger of a limit and t; NaN where t is. */
static inline __attribute__((always_inline)) vec at_most(vec limit, vec t) {
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)limit, (__m512)t);
#elif LANES == 8 && defined(__AVX__)
    return (vec)_mm256_min_ps((__m256)limit, (__m256)t);
#else
    return t > limit ? limit : t;
#endif
}

static inline __attribute__((always_inline)) vec at_least(vec limit, vec t) {
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)limit, (__m512)t);
#elif LANES == 8 && defined(__AVX__)
    return (vec)_mm256_max_ps((__m256)limit, (__m256)t);
#else
    return t < limit ? limit : t;
#endif
}

/* 1 + exp(-b): infinite where the exponential overflows, NaN where b is. */
static inline __attribute__((always_inline)) vec one_plus_exp_minus(vec b) {
    const vec none = {};
    const vec t = at_least(none - 89.0f, at_most(none + 80.0f, b));
    /* rounds to a whole number whose low bits are already biased as an exponent that is smaller by one */
    const float magic = 12582912.0f + 126.0f;
    vec z = t * -1.44269504088896341f + magic;
    uvec bits;
    memcpy(&bits, &z, sizeof bits);
    vec k = z - magic;
    vec r = t + k * 0.693359375f;
    r = r - k * 2.12194440e-4f;
    /* twice exp(-r), as the power of two is half as large: 2^128 has no bits */
    vec p = r * (-2 * 0x1.0F9F9Cp-7f) + 2 * 0x1.573A1Ap-5f;
    p = p * r - 2 * 0x1.555A80p-3f;
    p = p * r + 2 * 0x1.FFFDC6p-2f;
    p = p * r - 2 * 0x1.FFFFF6p-1f;
    p = p * r + 2.0f;
    bits = bits << 23;
    vec s;
    memcpy(&s, &bits, sizeof s);
    return p * s + 1.0f;
}

template <bool PART>
static inline __attribute__((always_inline)) vec load(const float* p, long rest) {
    vec v = {};
    if (PART)
        memcpy(&v, p, rest * sizeof(float));
    else
        memcpy(&v, p, sizeof v);
    return v;
}

template <bool PART>
static inline __attribute__((always_inline)) void store(float* p, vec v, long rest) {
    if (PART)
        memcpy(p, &v, rest * sizeof(float));
    else
        memcpy(p, &v, sizeof v);
}

struct Channel {
    float a, scale, shift;
};

template <bool FOLD>
static inline __attribute__((always_inline)) vec normal(vec v, float mean, float rstd, const Channel& c) {
    vec d = v - mean;
    if (FOLD) return d * c.a + c.shift;
    return (d * rstd) * c.scale + c.shift;
}

/* A strip of WIDE vectors of columns: channel 0 only starts the chain, channels 1 ... count are written. The results
   wait in a small buffer, so that no load has to look past a store at the same place of another page. */
template <bool FOLD, bool PART, int WIDE>
static inline __attribute__((always_inline)) void strip(const float* __restrict__ x, const float* __restrict__ skip,
                                                        float* __restrict__ out, long length, long rest, float mean,
                                                        float rstd, const Channel* table, long count) {
    vec before[WIDE], held[CHUNK * WIDE];
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u)
        before[u] = normal<FOLD>(load<PART>(x + u * LANES, rest) + load<PART>(skip + u * LANES, rest), mean, rstd,
                                 table[0]);
    for (long c = 1; c <= count; ++c) {
        const float* xc = x + c * length;
        const float* kc = skip + c * length;
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u) {
            const vec k = load<PART>(kc + u * LANES, rest);
            const vec y = normal<FOLD>(load<PART>(xc + u * LANES, rest) + k, mean, rstd, table[c]);
            held[(c - 1) * WIDE + u] = k + y / one_plus_exp_minus(before[u]);
            before[u] = y;
        }
    }
    for (long c = 1; c <= count; ++c)
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u) store<PART>(out + c * length + u * LANES, held[(c - 1) * WIDE + u], rest);
}

template <bool FOLD>
static __attribute__((noinline)) void chain(const float* x, const float* skip, float* out, long length, float mean,
                                            float rstd, const Channel* table, long count) {
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES)
        strip<FOLD, false, UNROLL>(x + i, skip + i, out + i, length, LANES, mean, rstd, table, count);
    for (; i + LANES <= length; i += LANES)
        strip<FOLD, false, 1>(x + i, skip + i, out + i, length, LANES, mean, rstd, table, count);
    if (i < length) strip<FOLD, true, 1>(x + i, skip + i, out + i, length, length - i, mean, rstd, table, count);
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* out, long groups, long width, long length, double eps) {
    const long start = (b * groups + g) * width * length;
    double mean, var;
    moments(x + start, skip + start, width * length, &mean, &var);
    const float m = (float)mean, rstd = (float)(1.0 / sqrt(var + eps));
    stats[(b * groups + g) * 2] = m;
    stats[(b * groups + g) * 2 + 1] = rstd;
    for (long lo = 0; lo + 1 < width; lo += CHUNK) {
        const long count = width - 1 - lo < CHUNK ? width - 1 - lo : CHUNK;
        Channel table[CHUNK + 1];
        bool fold = true;
        for (long c = 0; c <= count; ++c) {
            const long at = g * width + lo + c;
            table[c].scale = scale[at];
            table[c].shift = shift[at];
            table[c].a = rstd * scale[at];
            fold = fold && plain(table[c].a);
        }
        const long here = start + lo * length;
        if (fold)
            chain<true>(x + here, skip + here, out + here, length, m, rstd, table, count);
        else
            chain<false>(x + here, skip + here, out + here, length, m, rstd, table, count);
    }
}

template <bool FOLD, bool PART, int WIDE>
static inline __attribute__((always_inline)) void head_strip(const float* __restrict__ x, const float* __restrict__ k,
                                                             const float* __restrict__ px,
                                                             const float* __restrict__ pk, float* __restrict__ out,
                                                             long rest, const float* own, const float* other,
                                                             const Channel& c, const Channel& p) {
    vec o[WIDE];
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec before = normal<FOLD>(load<PART>(px + u * LANES, rest) + load<PART>(pk + u * LANES, rest), other[0],
                                        other[1], p);
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, own[0], own[1], c);
        o[u] = kept + y / one_plus_exp_minus(before);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) store<PART>(out + u * LANES, o[u], rest);
}

template <bool FOLD>
static __attribute__((noinline)) void head(const float* x, const float* k, const float* px, const float* pk,
                                           float* out, long length, const float* own_stats, const float* other_stats,
                                           const Channel c, const Channel p) {
    const float own[2] = {own_stats[0], own_stats[1]}, other[2] = {other_stats[0], other_stats[1]};
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES)
        head_strip<FOLD, false, UNROLL>(x + i, k + i, px + i, pk + i, out + i, LANES, own, other, c, p);
    for (; i + LANES <= length; i += LANES)
        head_strip<FOLD, false, 1>(x + i, k + i, px + i, pk + i, out + i, LANES, own, other, c, p);
    if (i < length)
        head_strip<FOLD, true, 1>(x + i, k + i, px + i, pk + i, out + i, length - i, own, other, c, p);
}

extern "C" void heads(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      const float* stats, float* out, long groups, long width, long length) {
    const long channels = groups * width, c = g * width;
    const long p = c == 0 ? channels - 1 : c - 1;
    const float* own = stats + (b * groups + g) * 2;
    const float* other = stats + (b * groups + p / width) * 2;
    const Channel mine = {own[1] * scale[c], scale[c], shift[c]};
    const Channel last = {other[1] * scale[p], scale[p], shift[p]};
    const long here = (b * channels + c) * length, there = (b * channels + p) * length;
    if (plain(mine.a) && plain(last.a))
        head<true>(x + here, skip + here, x + there, skip + there, out + here, length, own, other, mine, last);
    else
        head<false>(x + here, skip + here, x + there, skip + there, out + here, length, own, other, mine, last);
}
