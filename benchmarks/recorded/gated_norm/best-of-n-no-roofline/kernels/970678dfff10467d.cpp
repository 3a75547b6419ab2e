/* cupilot 1
Gated group norm: a block finds a group's moments and writes all its rows but the first, row by row with a line of gates;
the last row's gates wait in scratch for the second launch, which writes the first rows and needs no exponential.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    RECIP = 1 | 0
    STREAM = 1 | 0
    AHEAD = 1 | 0
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    gates = scratch((batch, self.groups, length), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, gates, out, batch, self.groups, width, length, self.eps)
    heads[batch, self.groups](x, skip, scale, shift, stats, gates, out, batch, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TILE 2048

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

/* Doubles, as many as a vector has lanes. */
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
#if RECIP && LANES == 16 && defined(__AVX512F__)
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)b, (__m512)(none - 88.72f), _CMP_NLE_UQ);
    const vec d = one_plus_exp_minus(at_least(none - 88.5f, at_most(top, b)));
    const __m512 r = _mm512_rcp14_ps((__m512)d);
    const __m512 e = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    return (vec)_mm512_maskz_fmadd_ps(some, r, e, r);
#else
    return 1.0f / one_plus_exp_minus(at_least(none - 89.0f, at_most(top, b)));
#endif
}

/* WIDE vectors of a group's sum and squares; what lies beyond the end counts as the pivot. */
template <bool PART, int WIDE>
static inline __attribute__((always_inline)) void gather(const float* x, const float* k, long rest, float pivot,
                                                         vec* s, vec* q) {
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        vec d = (load<PART>(x + u * LANES, rest) + load<PART>(k + u * LANES, rest)) - pivot;
        if (PART) {
            ivec lane;
            for (int j = 0; j < LANES; ++j) lane[j] = j;
            const vec none = {};
            d = lane < (int)rest ? d : none;
        }
        s[u] += d;
        q[u] += d * d;
    }
}

template <int WIDE>
static inline __attribute__((always_inline)) void flush(Doubles& sum, Doubles& squares, vec* s, vec* q) {
#pragma GCC unroll 8
    for (int h = WIDE / 2; h > 0; h /= 2) {
#pragma GCC unroll 8
        for (int u = 0; u < h; ++u) {
            s[u] += s[u + h];
            q[u] += q[u + h];
        }
    }
    add(sum, s[0]);
    add(squares, q[0]);
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

struct Channel {
    float mean, rstd, scale, shift, a;
};

template <bool FOLD>
static inline __attribute__((always_inline)) vec normal(vec v, const Channel& c) {
    vec d = v - c.mean;
    if (FOLD) return d * c.a + c.shift;
    return (d * c.rstd) * c.scale + c.shift;
}

static inline void moments(const float* x, const float* k, long n, double* mean_out, double* var_out) {
    const float pivot = x[0] + k[0];
    Doubles total = {}, total2 = {};
    long i = 0;
    for (; i + 32 * LANES <= n; i += 32 * LANES) {
        vec s[4] = {}, q[4] = {};
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) gather<false, 4>(x + i + j * 4 * LANES, k + i + j * 4 * LANES, 0, pivot, s, q);
        flush<4>(total, total2, s, q);
    }
    for (; i + LANES <= n; i += LANES) {
        vec s[1] = {}, q[1] = {};
        gather<false, 1>(x + i, k + i, 0, pivot, s, q);
        flush<1>(total, total2, s, q);
    }
    if (i < n) {
        vec s[1] = {}, q[1] = {};
        gather<true, 1>(x + i, k + i, n - i, pivot, s, q);
        flush<1>(total, total2, s, q);
    }
    const double sum = total_of(total), squares = total_of(total2);
    const double off = sum / n;
    *mean_out = pivot + off;
    *var_out = squares / n - off * off;
    if (!(squares < 1e300 && off * off <= 16.0 * *var_out) && !(squares == 0 && sum == 0))
        exact_moments(x, k, n, mean_out, var_out);
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

static inline Channel channel_of(float mean, float rstd, float scale, float shift) {
    const Channel c = {mean, rstd, scale, shift, rstd * scale};
    return c;
}

template <int WIDE>
static inline __attribute__((always_inline)) void ask(const float* p) {
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        if (LANES == 8 && (u & 1)) continue;
        _mm_prefetch((const char*)(p + u * LANES), _MM_HINT_T1);
    }
}

/* WIDE vectors of a row: a result where there are gates to take (WRITE), and always the gates that it gives. */
template <bool FOLD, bool WRITE, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void piece(const float* x, const float* k, float* out, const float* take,
                                                        float* give, long rest, const Channel& c, long ahead) {
    vec o[WIDE], g[WIDE];
    if (AHEAD && !PART) {
        ask<WIDE>(x + ahead);
        ask<WIDE>(k + ahead);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        if (WRITE) o[u] = kept + y * load<PART>(take + u * LANES, rest);
        g[u] = sigmoid(y);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        if (WRITE) store<PART, STREAMED>(out + u * LANES, o[u], rest);
        store<PART, false>(give + u * LANES, g[u], rest);
    }
}

template <bool FOLD, bool WRITE, bool STREAMED>
static __attribute__((noinline)) void row(const float* x, const float* k, float* out, const float* take, float* give,
                                          long n, const Channel c, long ahead) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        piece<FOLD, WRITE, false, STREAMED, UNROLL>(x + i, k + i, out + i, take + i, give + i, LANES, c, ahead);
    for (; i + LANES <= n; i += LANES)
        piece<FOLD, WRITE, false, STREAMED, 1>(x + i, k + i, out + i, take + i, give + i, LANES, c, ahead);
    if (i < n) piece<FOLD, WRITE, true, false, 1>(x + i, k + i, out + i, take + i, give + i, n - i, c, ahead);
}

static inline bool aligned(const float* p) {
    return ((unsigned long)p & (4 * LANES - 1)) == 0;
}

extern "C" void inner(long b, long g, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* gates, float* out, long batch, long groups, long width, long length,
                      double eps) {
    alignas(64) float line[TILE];
    const long number = b * groups + g, n = width * length, start = number * n;
    const long ahead = number + 1 < batch * groups ? n : 0;
    double mean, var;
    moments(x + start, skip + start, n, &mean, &var);
    const float m = (float)mean, rstd = (float)(1.0 / sqrt(var + eps));
    stats[number * 2] = m;
    stats[number * 2 + 1] = rstd;
    for (long t = 0; t < length; t += TILE) {
        const long cols = length - t < TILE ? length - t : TILE;
        for (long w = 0; w < width; ++w) {
            const Channel c = channel_of(m, rstd, scale[g * width + w], shift[g * width + w]);
            const long here = start + w * length + t;
            float* give = w + 1 < width ? line : gates + number * length + t;
            const float *x0 = x + here, *k0 = skip + here;
            float* to = out + here;
            if (w == 0) {
                if (plain(c.a))
                    row<true, false, false>(x0, k0, to, line, give, cols, c, ahead);
                else
                    row<false, false, false>(x0, k0, to, line, give, cols, c, ahead);
            } else if (!plain(c.a)) {
                row<false, true, false>(x0, k0, to, line, give, cols, c, ahead);
            } else if (STREAM && aligned(to)) {
                row<true, true, STREAM != 0>(x0, k0, to, line, give, cols, c, ahead);
            } else {
                row<true, true, false>(x0, k0, to, line, give, cols, c, ahead);
            }
        }
    }
    if (STREAM) _mm_sfence();
}

/* WIDE vectors of a group's first row, with the gates that the group before left. */
template <bool FOLD, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void head_piece(const float* x, const float* k, const float* take,
                                                             float* out, long rest, const Channel& c, long back,
                                                             long take_back) {
    vec o[WIDE];
    if (AHEAD && !PART) {
        ask<WIDE>(x - back);
        ask<WIDE>(k - back);
        ask<WIDE>(take - take_back);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        o[u] = kept + y * load<PART>(take + u * LANES, rest);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) store<PART, STREAMED>(out + u * LANES, o[u], rest);
}

template <bool FOLD, bool STREAMED>
static __attribute__((noinline)) void head(const float* x, const float* k, const float* take, float* out, long n,
                                           const Channel c, long back, long take_back) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        head_piece<FOLD, false, STREAMED, UNROLL>(x + i, k + i, take + i, out + i, LANES, c, back, take_back);
    for (; i + LANES <= n; i += LANES)
        head_piece<FOLD, false, STREAMED, 1>(x + i, k + i, take + i, out + i, LANES, c, back, take_back);
    if (i < n) head_piece<FOLD, true, false, 1>(x + i, k + i, take + i, out + i, n - i, c, 0, 0);
}

/* The number of the group whose gates a group takes. */
static inline long giver(long number, long groups) {
    return number % groups == 0 ? number + groups - 1 : number - 1;
}

extern "C" void heads(long last, long left, const float* x, const float* skip, const float* scale, const float* shift,
                      const float* stats, const float* gates, float* out, long batch, long groups, long width,
                      long length) {
    const long number = (batch - 1 - last) * groups + groups - 1 - left, g = number % groups;
    const long here = number * width * length, from = giver(number, groups) * length;
    const Channel c = channel_of(stats[number * 2], stats[number * 2 + 1], scale[g * width], shift[g * width]);
    const long back = number > 0 ? width * length : 0;
    const long take_back = number > 0 ? from - giver(number - 1, groups) * length : 0;
    const float *x0 = x + here, *k0 = skip + here, *take = gates + from;
    float* to = out + here;
    if (!plain(c.a))
        head<false, false>(x0, k0, take, to, length, c, back, take_back);
    else if (STREAM && aligned(to))
        head<true, STREAM != 0>(x0, k0, take, to, length, c, back, take_back);
    else
        head<true, false>(x0, k0, take, to, length, c, back, take_back);
    if (STREAM) _mm_sfence();
}
