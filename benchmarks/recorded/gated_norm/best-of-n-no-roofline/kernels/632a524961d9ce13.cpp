/* cupilot 1
Gated group norm: the first launch finds a group's moments and writes, while the group is in the cache, all its channels
but the first, walking down the channels with the gate's input in registers and asking for the next group's lines; the
second launch writes the first ones.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    RECIP = 1 | 0
    AHEAD = 1 | 0
    STREAM = 0 | 1
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, batch, self.groups, width, length, self.eps)
    heads[batch, self.groups](x, skip, scale, shift, stats, out, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define CHUNK 32
#define SUMS 4
#define DEPTH 4

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef double dvec __attribute__((vector_size(8 * LANES)));

template <bool PART>
static inline __attribute__((always_inline)) vec load(const float* p, long rest) {
    vec v = {};
    if (PART)
        memcpy(&v, p, rest * sizeof(float));
    else
        memcpy(&v, p, sizeof v);
    return v;
}

/* Exact work for NaN, infinities, squares that overflow and a pivot outside of the data. */
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
    const float pivot = xs[0] + ks[0];
    dvec total = {}, total2 = {};
    long i = 0;
    /* a few terms of every lane in single precision, then doubles */
    for (; i + SUMS * DEPTH * LANES <= n; i += SUMS * DEPTH * LANES) {
        vec s[SUMS], q[SUMS];
#pragma GCC unroll 8
        for (int u = 0; u < SUMS; ++u) {
            vec d = (load<false>(xs + i + u * LANES, 0) + load<false>(ks + i + u * LANES, 0)) - pivot;
            s[u] = d;
            q[u] = d * d;
        }
#pragma GCC unroll 4
        for (int k = 1; k < DEPTH; ++k) {
            const long at = i + (long)k * SUMS * LANES;
#pragma GCC unroll 8
            for (int u = 0; u < SUMS; ++u) {
                vec d = (load<false>(xs + at + u * LANES, 0) + load<false>(ks + at + u * LANES, 0)) - pivot;
                s[u] += d;
                q[u] += d * d;
            }
        }
        const vec s0 = (s[0] + s[1]) + (s[2] + s[3]), q0 = (q[0] + q[1]) + (q[2] + q[3]);
        total += __builtin_convertvector(s0, dvec);
        total2 += __builtin_convertvector(q0, dvec);
    }
    for (; i + LANES <= n; i += LANES) {
        vec d = (load<false>(xs + i, 0) + load<false>(ks + i, 0)) - pivot;
        vec q = d * d;
        total += __builtin_convertvector(d, dvec);
        total2 += __builtin_convertvector(q, dvec);
    }
    double sum = 0, squares = 0;
    for (int k = 0; k < LANES; ++k) {
        sum += total[k];
        squares += total2[k];
    }
    for (; i < n; ++i) {
        float v = xs[i] + ks[i];
        double d = (double)v - pivot;
        sum += d;
        squares += d * d;
    }
    const double off = sum / n;
    *mean_out = pivot + off;
    *var_out = squares / n - off * off;
    if (!(squares < 1e300 && off * off <= 16.0 * *var_out) && !(squares == 0 && sum == 0))
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

/* 1 + exp(-t) for t between -89 and 80: infinite where the exponential overflows, NaN where t is. */
static inline __attribute__((always_inline)) vec one_plus_exp_minus(vec t) {
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

/* k + y / (1 + exp(-b)) */
static inline __attribute__((always_inline)) vec gate(vec k, vec y, vec b) {
    const vec none = {};
    const vec top = none + 80.0f;
#if RECIP && LANES == 16 && defined(__AVX512F__)
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)b, (__m512)(none - 88.72f), _CMP_NLE_UQ);
    const vec d = one_plus_exp_minus(at_least(none - 88.5f, at_most(top, b)));
    __m512 r = _mm512_rcp14_ps((__m512)d);
    const __m512 e = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    r = _mm512_maskz_fmadd_ps(some, r, e, r);
    return k + y * (vec)r;
#else
    return k + y / one_plus_exp_minus(at_least(none - 89.0f, at_most(top, b)));
#endif
}

template <bool PART, bool STREAMED>
static inline __attribute__((always_inline)) void store(float* p, vec v, long rest) {
    if (PART) {
        memcpy(p, &v, rest * sizeof(float));
        return;
    }
#if LANES == 16 && defined(__AVX512F__)
    if (STREAMED) {
        _mm512_stream_ps(p, (__m512)v);
        return;
    }
#elif LANES == 8 && defined(__AVX__)
    if (STREAMED) {
        _mm256_stream_ps(p, (__m256)v);
        return;
    }
#endif
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

template <int WIDE>
static inline __attribute__((always_inline)) void ask(const float* p) {
#pragma GCC unroll 8
    for (int u = 0; u * LANES < WIDE * LANES; u += (LANES == 8 && WIDE > 1) ? 2 : 1)
        _mm_prefetch((const char*)(p + u * LANES), _MM_HINT_T1);
}

/* A strip of WIDE vectors of columns: channel 0 only starts the chain, channels 1 ... count are written. The results
   wait in a small buffer, so that no load has to look past a store at the same place of another page. */
template <bool FOLD, bool PART, int WIDE, bool STREAMED>
static inline __attribute__((always_inline)) void strip(const float* __restrict__ x, const float* __restrict__ skip,
                                                        float* __restrict__ out, long length, long rest, float mean,
                                                        float rstd, const Channel* table, long count, long ahead) {
    vec before[WIDE], held[CHUNK * WIDE];
    if (AHEAD && ahead && !PART) {
        ask<WIDE>(x + ahead);
        ask<WIDE>(skip + ahead);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u)
        before[u] = normal<FOLD>(load<PART>(x + u * LANES, rest) + load<PART>(skip + u * LANES, rest), mean, rstd,
                                 table[0]);
    for (long c = 1; c <= count; ++c) {
        const float* xc = x + c * length;
        const float* kc = skip + c * length;
        if (AHEAD && ahead && !PART) {
            ask<WIDE>(xc + ahead);
            ask<WIDE>(kc + ahead);
        }
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u) {
            const vec k = load<PART>(kc + u * LANES, rest);
            const vec y = normal<FOLD>(load<PART>(xc + u * LANES, rest) + k, mean, rstd, table[c]);
            held[(c - 1) * WIDE + u] = gate(k, y, before[u]);
            before[u] = y;
        }
    }
    for (long c = 1; c <= count; ++c)
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u)
            store<PART, STREAMED>(out + c * length + u * LANES, held[(c - 1) * WIDE + u], rest);
}

template <bool FOLD, bool STREAMED>
static __attribute__((noinline)) void chain(const float* x, const float* skip, float* out, long length, float mean,
                                            float rstd, const Channel* table, long count, long ahead) {
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES)
        strip<FOLD, false, UNROLL, STREAMED>(x + i, skip + i, out + i, length, LANES, mean, rstd, table, count, ahead);
    for (; i + LANES <= length; i += LANES)
        strip<FOLD, false, 1, STREAMED>(x + i, skip + i, out + i, length, LANES, mean, rstd, table, count, ahead);
    if (i < length)
        strip<FOLD, true, 1, false>(x + i, skip + i, out + i, length, length - i, mean, rstd, table, count, 0);
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* out, long batch, long groups, long width, long length, double eps) {
    const long start = (b * groups + g) * width * length;
    const long ahead = b * groups + g + 1 < batch * groups ? width * length : 0;
    double mean, var;
    moments(x + start, skip + start, width * length, &mean, &var);
    const float m = (float)mean, rstd = (float)(1.0 / sqrt(var + eps));
    stats[(b * groups + g) * 2] = m;
    stats[(b * groups + g) * 2 + 1] = rstd;
    const bool streamed =
        STREAM && ((unsigned long)out & (4 * LANES - 1)) == 0 && (length & (LANES - 1)) == 0;
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
        if (!fold)
            chain<false, false>(x + here, skip + here, out + here, length, m, rstd, table, count, ahead);
        else if (streamed)
            chain<true, STREAM != 0>(x + here, skip + here, out + here, length, m, rstd, table, count, ahead);
        else
            chain<true, false>(x + here, skip + here, out + here, length, m, rstd, table, count, ahead);
    }
    if (STREAM) _mm_sfence();
}

template <bool FOLD, bool PART, int WIDE, bool STREAMED>
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
        o[u] = gate(kept, y, before);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) store<PART, STREAMED>(out + u * LANES, o[u], rest);
}

template <bool FOLD, bool STREAMED>
static __attribute__((noinline)) void head(const float* x, const float* k, const float* px, const float* pk,
                                           float* out, long length, const float* own_stats, const float* other_stats,
                                           const Channel c, const Channel p) {
    const float own[2] = {own_stats[0], own_stats[1]}, other[2] = {other_stats[0], other_stats[1]};
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES)
        head_strip<FOLD, false, UNROLL, STREAMED>(x + i, k + i, px + i, pk + i, out + i, LANES, own, other, c, p);
    for (; i + LANES <= length; i += LANES)
        head_strip<FOLD, false, 1, STREAMED>(x + i, k + i, px + i, pk + i, out + i, LANES, own, other, c, p);
    if (i < length)
        head_strip<FOLD, true, 1, false>(x + i, k + i, px + i, pk + i, out + i, length - i, own, other, c, p);
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
    const float *x0 = x + here, *k0 = skip + here, *x1 = x + there, *k1 = skip + there;
    float* to = out + here;
    if (!plain(mine.a) || !plain(last.a))
        head<false, false>(x0, k0, x1, k1, to, length, own, other, mine, last);
    else if (STREAM && ((unsigned long)to & (4 * LANES - 1)) == 0)
        head<true, STREAM != 0>(x0, k0, x1, k1, to, length, own, other, mine, last);
    else
        head<true, false>(x0, k0, x1, k1, to, length, own, other, mine, last);
    if (STREAM) _mm_sfence();
}
