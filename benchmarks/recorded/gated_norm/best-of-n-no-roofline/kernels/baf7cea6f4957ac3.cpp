/* cupilot 1
Gated group norm: a block finds a group's moments, then writes all rows but the first while the group is in the cache,
the gates of the row before in a line buffer, and asks for the next group; a second launch writes the first rows, last
group first, and asks for the two rows of each array that its next block needs.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    TILE = 2048 | 1024
    STREAM = 1 | 0
    AHEAD = 1 | 0
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, out, batch, self.groups, width, length, self.eps)
    heads[batch, self.groups](x, skip, scale, shift, stats, out, batch, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define SUMS 4
#define DEPTH 8

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

/* Doubles, as many as a vector has lanes, in registers of the same size. */
#if LANES == 16 && defined(__AVX512F__)
struct Doubles {
    __m512d low, high;
};
static inline __attribute__((always_inline)) void add(Doubles& to, vec v) {
    to.low = _mm512_add_pd(to.low, _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)));
    to.high = _mm512_add_pd(
        to.high, _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)v), 1))));
}
#elif LANES == 8 && defined(__AVX__)
struct Doubles {
    __m256d low, high;
};
static inline __attribute__((always_inline)) void add(Doubles& to, vec v) {
    to.low = _mm256_add_pd(to.low, _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)));
    to.high = _mm256_add_pd(to.high, _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1)));
}
#else
struct Doubles {
    double low[LANES / 2], high[LANES / 2];
};
static inline __attribute__((always_inline)) void add(Doubles& to, vec v) {
    for (int k = 0; k < LANES / 2; ++k) {
        to.low[k] += v[k];
        to.high[k] += v[k + LANES / 2];
    }
}
#endif

static inline double total_of(const Doubles& d) {
    double each[LANES], sum = 0;
    memcpy(each, &d.low, sizeof d.low);
    memcpy(each + LANES / 2, &d.high, sizeof d.high);
    for (int k = 0; k < LANES; ++k) sum += each[k];
    return sum;
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
    Doubles total = {}, total2 = {};
    long i = 0;
    for (; i + SUMS * DEPTH * LANES <= n; i += SUMS * DEPTH * LANES) {
        vec s[SUMS], q[SUMS];
#pragma GCC unroll 8
        for (int u = 0; u < SUMS; ++u) {
            vec d = (load<false>(xs + i + u * LANES, 0) + load<false>(ks + i + u * LANES, 0)) - pivot;
            s[u] = d;
            q[u] = d * d;
        }
#pragma GCC unroll 8
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
        add(total, s0);
        add(total2, q0);
    }
    for (; i < n; i += LANES) {
        vec d;
        if (i + LANES <= n) {
            d = (load<false>(xs + i, 0) + load<false>(ks + i, 0)) - pivot;
        } else {
            const int rest = (int)(n - i);
            ivec lane;
            for (int k = 0; k < LANES; ++k) lane[k] = k;
            const vec none = {};
            d = (load<true>(xs + i, rest) + load<true>(ks + i, rest)) - pivot;
            d = lane < rest ? d : none;
        }
        vec q = d * d;
        add(total, d);
        add(total2, q);
    }
    const double sum = total_of(total), squares = total_of(total2);
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

/* 1 / (1 + exp(-b)) */
static inline __attribute__((always_inline)) vec sigmoid(vec b) {
    const vec none = {};
    const vec top = none + 80.0f;
#if LANES == 16 && defined(__AVX512F__)
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)b, (__m512)(none - 88.72f), _CMP_NLE_UQ);
    const vec d = one_plus_exp_minus(at_least(none - 88.5f, at_most(top, b)));
    const __m512 r = _mm512_rcp14_ps((__m512)d);
    const __m512 e = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    return (vec)_mm512_maskz_fmadd_ps(some, r, e, r);
#else
    return 1.0f / one_plus_exp_minus(at_least(none - 89.0f, at_most(top, b)));
#endif
}

struct Channel {
    float mean, rstd, scale, shift, a;
};

template <bool FOLD>
static inline __attribute__((always_inline)) vec normal(vec v, const Channel& c) {
    vec d = v - c.mean;
    if (FOLD) return d * c.a + c.shift;
    return (d * c.rstd) * c.scale + c.shift;
}

enum { FIRST, MIDDLE, LAST };

/* WIDE vectors of a row: the first row only leaves its gates in the line, the last one only takes those it finds. */
template <bool FOLD, int KIND, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void piece(const float* __restrict__ x, const float* __restrict__ k,
                                                        float* __restrict__ out, float* __restrict__ line, long rest,
                                                        const Channel& c, long ahead) {
    vec o[WIDE], g[WIDE];
    if (AHEAD && !PART) {
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u) {
            if (LANES == 8 && (u & 1)) continue;
            _mm_prefetch((const char*)(x + ahead + u * LANES), _MM_HINT_T1);
            _mm_prefetch((const char*)(k + ahead + u * LANES), _MM_HINT_T1);
        }
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        if (KIND != FIRST) o[u] = kept + y * load<PART>(line + u * LANES, rest);
        if (KIND != LAST) g[u] = sigmoid(y);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        if (KIND != FIRST) store<PART, STREAMED>(out + u * LANES, o[u], rest);
        if (KIND != LAST) store<PART, false>(line + u * LANES, g[u], rest);
    }
}

template <bool FOLD, int KIND, bool STREAMED>
static __attribute__((noinline)) void row(const float* x, const float* k, float* out, float* line, long n,
                                          const Channel c, long ahead) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        piece<FOLD, KIND, false, STREAMED, UNROLL>(x + i, k + i, out + i, line + i, LANES, c, ahead);
    for (; i + LANES <= n; i += LANES)
        piece<FOLD, KIND, false, STREAMED, 1>(x + i, k + i, out + i, line + i, LANES, c, ahead);
    if (i < n) piece<FOLD, KIND, true, false, 1>(x + i, k + i, out + i, line + i, n - i, c, ahead);
}

template <int KIND>
static inline void any_row(bool fold, const float* x, const float* k, float* out, float* line, long n,
                           const Channel& c, long ahead) {
    const bool streamed = STREAM && KIND != FIRST && ((unsigned long)out & (4 * LANES - 1)) == 0;
    if (!fold)
        row<false, KIND, false>(x, k, out, line, n, c, ahead);
    else if (streamed)
        row<true, KIND, STREAM && KIND != FIRST>(x, k, out, line, n, c, ahead);
    else
        row<true, KIND, false>(x, k, out, line, n, c, ahead);
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

static inline Channel channel_of(float mean, float rstd, float scale, float shift) {
    const Channel c = {mean, rstd, scale, shift, rstd * scale};
    return c;
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* out, long batch, long groups, long width, long length, double eps) {
    alignas(64) float line[TILE];
    const long n = width * length, start = (b * groups + g) * n;
    const long ahead = b * groups + g + 1 < batch * groups ? n : 0;
    double mean, var;
    moments(x + start, skip + start, n, &mean, &var);
    const float m = (float)mean, rstd = (float)(1.0 / sqrt(var + eps));
    stats[(b * groups + g) * 2] = m;
    stats[(b * groups + g) * 2 + 1] = rstd;
    if (width < 2) return;
    for (long t = 0; t < length; t += TILE) {
        const long cols = length - t < TILE ? length - t : TILE;
        for (long w = 0; w < width; ++w) {
            const Channel c = channel_of(m, rstd, scale[g * width + w], shift[g * width + w]);
            const bool fold = plain(c.a);
            const long here = start + w * length + t;
            if (w == 0)
                any_row<FIRST>(fold, x + here, skip + here, out + here, line, cols, c, ahead);
            else if (w + 1 < width)
                any_row<MIDDLE>(fold, x + here, skip + here, out + here, line, cols, c, ahead);
            else
                any_row<LAST>(fold, x + here, skip + here, out + here, line, cols, c, ahead);
        }
    }
    if (STREAM) _mm_sfence();
}

/* WIDE vectors of a group's first row, gated by a row of another group. */
template <bool FOLD, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void head_piece(const float* __restrict__ x, const float* __restrict__ k,
                                                             const float* __restrict__ px,
                                                             const float* __restrict__ pk, float* __restrict__ out,
                                                             long rest, const Channel& c, const Channel& p, long ahead,
                                                             long pahead) {
    vec o[WIDE];
    if (AHEAD && !PART) {
#pragma GCC unroll 8
        for (int u = 0; u < WIDE; ++u) {
            if (LANES == 8 && (u & 1)) continue;
            _mm_prefetch((const char*)(x - ahead + u * LANES), _MM_HINT_T1);
            _mm_prefetch((const char*)(k - ahead + u * LANES), _MM_HINT_T1);
            _mm_prefetch((const char*)(px - pahead + u * LANES), _MM_HINT_T1);
            _mm_prefetch((const char*)(pk - pahead + u * LANES), _MM_HINT_T1);
        }
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec before = normal<FOLD>(load<PART>(px + u * LANES, rest) + load<PART>(pk + u * LANES, rest), p);
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        o[u] = kept + y * sigmoid(before);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) store<PART, STREAMED>(out + u * LANES, o[u], rest);
}

template <bool FOLD, bool STREAMED>
static __attribute__((noinline)) void head(const float* x, const float* k, const float* px, const float* pk,
                                           float* out, long n, const Channel c, const Channel p, long ahead, long pahead) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        head_piece<FOLD, false, STREAMED, UNROLL>(x + i, k + i, px + i, pk + i, out + i, LANES, c, p, ahead,
                                                  pahead);
    for (; i + LANES <= n; i += LANES)
        head_piece<FOLD, false, STREAMED, 1>(x + i, k + i, px + i, pk + i, out + i, LANES, c, p, ahead,
                                                  pahead);
    if (i < n) head_piece<FOLD, true, false, 1>(x + i, k + i, px + i, pk + i, out + i, n - i, c, p, 0, 0);
}

extern "C" void heads(long back, long left, const float* x, const float* skip, const float* scale, const float* shift,
                      const float* stats, float* out, long batch, long groups, long width, long length) {
    const long b = batch - 1 - back, g = groups - 1 - left;
    const long channels = groups * width, c = g * width;
    const long p = c == 0 ? channels - 1 : c - 1;
    const float* own = stats + (b * groups + g) * 2;
    const float* other = stats + (b * groups + p / width) * 2;
    const Channel mine = channel_of(own[0], own[1], scale[c], shift[c]);
    const Channel last = channel_of(other[0], other[1], scale[p], shift[p]);
    const long here = (b * channels + c) * length, there = (b * channels + p) * length;
    const float *x0 = x + here, *k0 = skip + here, *x1 = x + there, *k1 = skip + there;
    float* to = out + here;
    /* the next block has the group before this one: how far its two rows lie before those of this block */
    long ahead = 0, pahead = 0;
    if (b > 0 || g > 0) {
        const long nb = g > 0 ? b : b - 1, nc = (g > 0 ? g - 1 : groups - 1) * width;
        const long np = nc == 0 ? channels - 1 : nc - 1;
        ahead = here - (nb * channels + nc) * length;
        pahead = there - (nb * channels + np) * length;
    }
    if (!plain(mine.a) || !plain(last.a))
        head<false, false>(x0, k0, x1, k1, to, length, mine, last, ahead, pahead);
    else if (STREAM && ((unsigned long)to & (4 * LANES - 1)) == 0)
        head<true, STREAM != 0>(x0, k0, x1, k1, to, length, mine, last, ahead, pahead);
    else
        head<true, false>(x0, k0, x1, k1, to, length, mine, last, ahead, pahead);
    if (STREAM) _mm_sfence();
}
