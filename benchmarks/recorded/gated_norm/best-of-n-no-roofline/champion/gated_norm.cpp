/* cupilot 1
Gated group norm in one launch: a block goes through consecutive groups of a sample, moments from the cache and then rows
with the gates of the row before in a line, and asks for the next group meanwhile; a whole sample's first row comes last.
tune:
    LANES = 16
    UNROLL = 2
    RUNS = 8
    STREAM = 1
    AHEAD = 1
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    gated[batch, cdiv(self.groups, RUNS)](x, skip, scale, shift, out, batch, self.groups, width, length, self.eps)
strategy:
    fuse-passes
    vectorize
    One launch; a block takes a run of consecutive groups of one sample (run length a tunable) and handles each in two sweeps: moments from the second-level cache, then outputs row by row; the line of gates that a group's last row leaves in a local buffer is what the next group's first row takes.
    While the output sweep computes, it prefetches the same place of the group that follows in memory (also the next block's) into the second-level cache, so that the moments sweep is a pure cache-speed loop that never waits for memory; only the first group of the whole array is read without it.
    A block with all groups of a sample computes only the gates of its very first row at first and writes that row at the end, when the last channel's gates are in the line; other blocks find the moments and the gates of the channel before their run by an extra sweep.
    Moments: float differences to the group's first sum and their squares, four independent vectors over a short run, then doubles by register halves; a result that is not finite or a pivot far from the mean is redone in two exact passes in double.
    Rows: y = (v-mean)*a+shift with a = rstd*scale (factors apart where a is extreme), out = skip + y*line, line = sigmoid(y); rows longer than the line buffer go tile by tile with the gates at the start of a group recomputed from the row before.
    sigmoid: clamp by min and max that keep NaN, degree-five polynomial with the exponent's bias in the rounding constant, reciprocal estimate with one Newton step masked to zero on overflow, several vectors per iteration.
    Aligned full vectors of outputs are written by streaming stores (a tunable), tails with partial loads and stores through the same code.
proof:
    identity: 86139b1b3aac1a90
    problem: gated_norm e2ca134e89ac59c290d01bd3702ab1e8
    right on 41 inputs at 7 shapes
    over eager: 3.81x [3.67, 3.95]
    over compile: 3.23x [3.16, 3.31]
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define LINE 4096

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

/* WIDE vectors of a row: a result where there are gates to take (WRITE), and the gates that it gives (GATE). */
template <bool FOLD, bool WRITE, bool GATE, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void piece(const float* __restrict__ x, const float* __restrict__ k,
                                                        float* __restrict__ out, float* __restrict__ line, long rest,
                                                        const Channel& c, long ahead) {
    vec o[WIDE], g[WIDE];
    if (AHEAD && !PART) {
        ask<WIDE>(x + ahead);
        ask<WIDE>(k + ahead);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        if (WRITE) o[u] = kept + y * load<PART>(line + u * LANES, rest);
        if (GATE) g[u] = sigmoid(y);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        if (WRITE) store<PART, STREAMED>(out + u * LANES, o[u], rest);
        if (GATE) store<PART, false>(line + u * LANES, g[u], rest);
    }
}

template <bool FOLD, bool WRITE, bool GATE, bool STREAMED>
static __attribute__((noinline)) void row(const float* x, const float* k, float* out, float* line, long n,
                                          const Channel c, long ahead) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        piece<FOLD, WRITE, GATE, false, STREAMED, UNROLL>(x + i, k + i, out + i, line + i, LANES, c, ahead);
    for (; i + LANES <= n; i += LANES)
        piece<FOLD, WRITE, GATE, false, STREAMED, 1>(x + i, k + i, out + i, line + i, LANES, c, ahead);
    if (i < n) piece<FOLD, WRITE, GATE, true, false, 1>(x + i, k + i, out + i, line + i, n - i, c, ahead);
}

/* Only the gates of a row. */
static inline void gates(const float* x, const float* k, float* line, long n, const Channel& c, long ahead) {
    if (plain(c.a))
        row<true, false, true, false>(x, k, nullptr, line, n, c, ahead);
    else
        row<false, false, true, false>(x, k, nullptr, line, n, c, ahead);
}

template <bool GATE>
static inline void write(const float* x, const float* k, float* out, float* line, long n, const Channel& c,
                         long ahead) {
    if (!plain(c.a))
        row<false, true, GATE, false>(x, k, out, line, n, c, ahead);
    else if (STREAM && ((unsigned long)out & (4 * LANES - 1)) == 0)
        row<true, true, GATE, STREAM != 0>(x, k, out, line, n, c, ahead);
    else
        row<true, true, GATE, false>(x, k, out, line, n, c, ahead);
}

struct Stats {
    float mean, rstd;
};

static inline Stats stats_of(const float* x, const float* k, long n, double eps) {
    double mean, var;
    moments(x, k, n, &mean, &var);
    const Stats s = {(float)mean, (float)(1.0 / sqrt(var + eps))};
    return s;
}

extern "C" void gated(long b, long part, const float* x, const float* skip, const float* scale, const float* shift,
                      float* out, long batch, long groups, long width, long length, double eps) {
    alignas(64) float line[LINE];
    const long channels = groups * width, n = width * length, base = b * channels * length;
    const long begin = part * RUNS, end = begin + RUNS < groups ? begin + RUNS : groups;
    const bool whole = length <= LINE;
    /* the block has all groups: the very first row waits until the gates of the last one are in the line */
    const bool wrap = whole && begin == 0 && end == groups;
    Stats before = {0, 0}, first = {0, 0};
    if (!wrap) {
        const long last = base + (begin == 0 ? groups - 1 : begin - 1) * n;
        before = stats_of(x + last, skip + last, n, eps);
    }
    for (long g = begin; g < end; ++g) {
        const long start = base + g * n, ahead = b * groups + g + 1 < batch * groups ? n : 0;
        const Stats own = stats_of(x + start, skip + start, n, eps);
        if (g == begin) first = own;
        const bool passes = wrap || (whole && g + 1 < end);
        for (long t = 0; t < length; t += LINE) {
            const long cols = length - t < LINE ? length - t : LINE;
            if (!whole || (g == begin && !wrap)) {
                const long p = g == 0 ? channels - 1 : g * width - 1;
                const long there = base + p * length + t;
                const Channel c = channel_of(before.mean, before.rstd, scale[p], shift[p]);
                gates(x + there, skip + there, line, cols, c, 0);
            }
            for (long w = 0; w < width; ++w) {
                const long at = g * width + w, here = start + w * length + t;
                const Channel c = channel_of(own.mean, own.rstd, scale[at], shift[at]);
                if (wrap && at == 0)
                    gates(x + here, skip + here, line, cols, c, ahead);
                else if (passes || w + 1 < width)
                    write<true>(x + here, skip + here, out + here, line, cols, c, ahead);
                else
                    write<false>(x + here, skip + here, out + here, line, cols, c, ahead);
            }
        }
        before = own;
    }
    if (wrap) {
        const Channel c = channel_of(first.mean, first.rstd, scale[0], shift[0]);
        write<false>(x + base, skip + base, out + base, line, length, c, 0);
    }
    if (STREAM) _mm_sfence();
}
