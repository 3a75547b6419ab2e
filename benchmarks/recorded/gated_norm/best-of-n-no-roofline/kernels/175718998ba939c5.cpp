/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in two launches over (batch, group): one vector
sweep for the moments around a pivot, then, last group first as that is still in the caches, all rows of the group.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    RECIP = 1 | 0
    STREAM = 0 | 1
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    moments[batch, self.groups](x, skip, stats, self.groups, width, length, self.eps)
    gated[batch, self.groups](x, skip, scale, shift, stats, out, batch, self.groups, width, channels, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));
typedef double dvec __attribute__((vector_size(8 * LANES)));

#define DEPTH 4
#define SUMS 4

static inline __attribute__((always_inline)) vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) vec load_part(const float* p, long n) {
    vec v = {};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

/* Exact work where one sweep in single precision does not suffice: huge values, an outlier as pivot, NaN, infinities. */
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

extern "C" void moments(long b, long g, const float* x, const float* skip, float* stats, long groups, long width,
                        long length, double eps) {
    const long n = width * length;
    const float* xs = x + (b * groups + g) * n;
    const float* ks = skip + (b * groups + g) * n;
    const float pivot = xs[0] + ks[0];
    dvec total = {}, total2 = {};
    long i = 0;
    for (; i + SUMS * DEPTH * LANES <= n; i += SUMS * DEPTH * LANES) {
        vec s[SUMS], q[SUMS];
#pragma GCC unroll 8
        for (int u = 0; u < SUMS; ++u) {
            vec d = (load(xs + i + u * LANES) + load(ks + i + u * LANES)) - pivot;
            s[u] = d;
            q[u] = d * d;
        }
#pragma GCC unroll 4
        for (int k = 1; k < DEPTH; ++k) {
            const long at = i + (long)k * SUMS * LANES;
#pragma GCC unroll 8
            for (int u = 0; u < SUMS; ++u) {
                vec d = (load(xs + at + u * LANES) + load(ks + at + u * LANES)) - pivot;
                s[u] += d;
                q[u] += d * d;
            }
        }
#pragma GCC unroll 8
        for (int h = SUMS / 2; h > 0; h /= 2) {
#pragma GCC unroll 8
            for (int u = 0; u < h; ++u) {
                s[u] += s[u + h];
                q[u] += q[u + h];
            }
        }
        total += __builtin_convertvector(s[0], dvec);
        total2 += __builtin_convertvector(q[0], dvec);
    }
    for (; i + LANES <= n; i += LANES) {
        vec d = (load(xs + i) + load(ks + i)) - pivot;
        vec q = d * d;
        total += __builtin_convertvector(d, dvec);
        total2 += __builtin_convertvector(q, dvec);
    }
    if (i < n) {
        const int rest = (int)(n - i);
        ivec lane;
        for (int k = 0; k < LANES; ++k) lane[k] = k;
        vec d = (load_part(xs + i, rest) + load_part(ks + i, rest)) - pivot;
        vec none = {};
        d = lane < rest ? d : none;
        vec q = d * d;
        total += __builtin_convertvector(d, dvec);
        total2 += __builtin_convertvector(q, dvec);
    }
    double sum = 0, squares = 0;
    for (int k = 0; k < LANES; ++k) {
        sum += total[k];
        squares += total2[k];
    }
    const double off = sum / n;
    double var = squares / n - off * off;
    double mean = pivot + off;
    if (!(squares < 1e300 && off * off <= 16.0 * var) && !(squares == 0 && sum == 0))
        exact_moments(xs, ks, n, &mean, &var);
    float* to = stats + (b * groups + g) * 2;
    to[0] = (float)mean;
    to[1] = (float)(1.0 / sqrt(var + eps));
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

/* 1 + exp(t) for t between -80 and 89: infinite where the exponential overflows, NaN where t is. */
static inline __attribute__((always_inline)) vec one_plus_exp(vec t) {
    /* rounds to a whole number whose low bits are already biased as an exponent that is smaller by one */
    const float magic = 12582912.0f + 126.0f;
    vec z = t * 1.44269504088896341f + magic;
    uvec bits;
    memcpy(&bits, &z, sizeof bits);
    vec k = z - magic;
    vec r = t - k * 0.693359375f;
    r = r + k * 2.12194440e-4f;
    /* twice the exponential of r, as the power of two is half as large: 2^128 has no bits */
    vec p = r * (2 * 0x1.0F9F9Cp-7f) + 2 * 0x1.573A1Ap-5f;
    p = p * r + 2 * 0x1.555A80p-3f;
    p = p * r + 2 * 0x1.FFFDC6p-2f;
    p = p * r + 2 * 0x1.FFFFF6p-1f;
    p = p * r + 2.0f;
    bits = bits << 23;
    vec s;
    memcpy(&s, &bits, sizeof s);
    return p * s + 1.0f;
}

/* k + y / (1 + exp(t)) */
static inline __attribute__((always_inline)) vec gate(vec k, vec y, vec t) {
    const vec none = {};
    const vec bottom = none - 80.0f;
#if RECIP && LANES == 16 && defined(__AVX512F__)
    const vec top = none + 88.5f;
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)t, (__m512)(none + 88.72f), _CMP_NGE_UQ);
    const vec d = one_plus_exp(at_least(bottom, at_most(top, t)));
    __m512 r = _mm512_rcp14_ps((__m512)d);
    const __m512 e = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    r = _mm512_maskz_fmadd_ps(some, r, e, r);
    return k + y * (vec)r;
#else
    const vec top = none + 89.0f;
    return k + y / one_plus_exp(at_least(bottom, at_most(top, t)));
#endif
}

struct Line {
    float mean, rstd, scale, shift, a;
};

/* The normalised value, or (for a line with scale, shift and a negated) its negative. */
template <bool FOLD>
static inline __attribute__((always_inline)) vec normal(vec v, const Line& l) {
    vec d = v - l.mean;
    if (FOLD) return d * l.a + l.shift;
    return (d * l.rstd) * l.scale + l.shift;
}

template <bool FOLD>
static inline __attribute__((always_inline)) vec result(vec x, vec k, vec px, vec pk, const Line& own,
                                                        const Line& minus) {
    vec y = normal<FOLD>(x + k, own);
    vec t = normal<FOLD>(px + pk, minus);
    return gate(k, y, t);
}

template <bool STREAMED>
static inline __attribute__((always_inline)) void store(float* to, vec v) {
    if (!STREAMED) {
        memcpy(to, &v, sizeof v);
        return;
    }
#if LANES == 16 && defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)v);
#elif LANES == 8 && defined(__AVX__)
    _mm256_stream_ps(to, (__m256)v);
#else
    memcpy(to, &v, sizeof v);
#endif
}

template <bool FOLD, bool STREAMED>
static __attribute__((noinline)) void row(const float* __restrict__ x, const float* __restrict__ k,
                                          const float* __restrict__ px, const float* __restrict__ pk,
                                          float* __restrict__ out, long length, const Line own, const Line minus) {
    long i = 0;
    for (; i + UNROLL * LANES <= length; i += UNROLL * LANES) {
        vec o[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            const long at = i + u * LANES;
            o[u] = result<FOLD>(load(x + at), load(k + at), load(px + at), load(pk + at), own, minus);
        }
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) store<STREAMED>(out + i + u * LANES, o[u]);
    }
    for (; i < length; i += LANES) {
        const long rest = length - i < LANES ? length - i : LANES;
        vec o = result<FOLD>(load_part(x + i, rest), load_part(k + i, rest), load_part(px + i, rest),
                             load_part(pk + i, rest), own, minus);
        memcpy(out + i, &o, rest * sizeof(float));
    }
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

extern "C" void gated(long back, long left, const float* x, const float* skip, const float* scale, const float* shift,
                      const float* stats, float* out, long batch, long groups, long width, long channels,
                      long length) {
    const long b = batch - 1 - back, g = groups - 1 - left;
    const float* st = stats + b * groups * 2;
    const long first = g * width;
    long p = first == 0 ? channels - 1 : first - 1;
    const long pg = p / width;
    Line minus = {st[pg * 2], st[pg * 2 + 1], -scale[p], -shift[p], -(st[pg * 2 + 1] * scale[p])};
    for (long c = first; c < first + width; ++c) {
        const Line own = {st[g * 2], st[g * 2 + 1], scale[c], shift[c], st[g * 2 + 1] * scale[c]};
        const long here = (b * channels + c) * length, there = (b * channels + p) * length;
        const float *x0 = x + here, *k0 = skip + here, *x1 = x + there, *k1 = skip + there;
        float* to = out + here;
        const bool streamed = STREAM && ((unsigned long)to & (4 * LANES - 1)) == 0;
        if (plain(own.a) && plain(minus.a)) {
            if (streamed)
                row<true, STREAM != 0>(x0, k0, x1, k1, to, length, own, minus);
            else
                row<true, false>(x0, k0, x1, k1, to, length, own, minus);
        } else {
            row<false, false>(x0, k0, x1, k1, to, length, own, minus);
        }
        minus = own;
        minus.scale = -own.scale;
        minus.shift = -own.shift;
        minus.a = -own.a;
        p = c;
    }
    if (STREAM) _mm_sfence();
}
