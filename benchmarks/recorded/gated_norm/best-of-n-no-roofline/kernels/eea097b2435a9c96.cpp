/* cupilot 1
Gated group norm in one launch: a block goes through consecutive groups of a sample, row by row with the gates of the row
before in a line buffer, and adds up the moments of the next group while it writes the outputs of this one; a block that
has a whole sample writes its very first row last.
tune:
    LANES = 16 | 8
    UNROLL = 2 | 4 | 1
    RUNS = 8 | 4
    STREAM = 1 | 0
    AHEAD = 512 | 0 | 1024
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    gated[batch, cdiv(self.groups, RUNS)](x, skip, scale, shift, out, batch, self.groups, width, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define LINE 4096
#define SHORT 16

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

/* The moments of a group about a pivot. */
struct Moments {
    Doubles sum, squares;
    float pivot;
};

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

/* Asks for the lines of WIDE vectors. */
template <int WIDE, bool NEAR>
static inline __attribute__((always_inline)) void ask(const float* p) {
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        if (LANES == 8 && (u & 1)) continue;
        if (NEAR)
            _mm_prefetch((const char*)(p + u * LANES), _MM_HINT_T0);
        else
            _mm_prefetch((const char*)(p + u * LANES), _MM_HINT_T1);
    }
}

/* A row of the next group, where there is no row of outputs to hide it under. */
static __attribute__((noinline)) void gather_row(const float* x, const float* k, long n, Doubles* total,
                                                 Doubles* total2, float pivot) {
    Doubles sum = *total, squares = *total2;
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        vec s[4] = {}, q[4] = {};
        gather<false, 4>(x + i, k + i, 0, pivot, s, q);
        flush<4>(sum, squares, s, q);
    }
    for (; i + LANES <= n; i += LANES) {
        vec s[1] = {}, q[1] = {};
        gather<false, 1>(x + i, k + i, 0, pivot, s, q);
        flush<1>(sum, squares, s, q);
    }
    if (i < n) {
        vec s[1] = {}, q[1] = {};
        gather<true, 1>(x + i, k + i, n - i, pivot, s, q);
        flush<1>(sum, squares, s, q);
    }
    *total = sum;
    *total2 = squares;
}

/* A whole group, where there is no other work to hide it under. */
static __attribute__((noinline)) void sweep(const float* x, const float* k, long n, Moments* to) {
    const float pivot = x[0] + k[0];
    Doubles sum = {}, squares = {};
    long i = 0;
    for (; i + 16 * LANES <= n; i += 16 * LANES) {
        vec s[4] = {}, q[4] = {};
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) gather<false, 4>(x + i + j * 4 * LANES, k + i + j * 4 * LANES, 0, pivot, s, q);
        flush<4>(sum, squares, s, q);
    }
    for (; i + LANES <= n; i += LANES) {
        vec s[1] = {}, q[1] = {};
        gather<false, 1>(x + i, k + i, 0, pivot, s, q);
        flush<1>(sum, squares, s, q);
    }
    if (i < n) {
        vec s[1] = {}, q[1] = {};
        gather<true, 1>(x + i, k + i, n - i, pivot, s, q);
        flush<1>(sum, squares, s, q);
    }
    to->sum = sum;
    to->squares = squares;
    to->pivot = pivot;
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

struct Stats {
    float mean, rstd;
};

static inline Stats finish(const Moments& m, const float* x, const float* k, long n, double eps) {
    const double sum = total_of(m.sum), squares = total_of(m.squares);
    const double off = sum / n;
    double mean = m.pivot + off, var = squares / n - off * off;
    if (!(squares < 1e300 && off * off <= 16.0 * var) && !(squares == 0 && sum == 0))
        exact_moments(x, k, n, &mean, &var);
    const Stats s = {(float)mean, (float)(1.0 / sqrt(var + eps))};
    return s;
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

/* The gates that a row gives to the next one. */
template <bool FOLD>
static __attribute__((noinline)) void gates(const float* x, const float* k, float* line, long n, const Channel c) {
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        store<false, false>(line + i, sigmoid(normal<FOLD>(load<false>(x + i, 0) + load<false>(k + i, 0), c)), 0);
    if (i < n)
        store<true, false>(line + i,
                           sigmoid(normal<FOLD>(load<true>(x + i, n - i) + load<true>(k + i, n - i), c)), n - i);
}

struct Row {
    const float *x, *k, *nx, *nk;
    float *out, *line;
    long n;
};

template <bool FOLD, bool GATE, bool NEXT, bool PART, bool STREAMED, int WIDE>
static inline __attribute__((always_inline)) void piece(const float* __restrict__ x, const float* __restrict__ k,
                                                        const float* __restrict__ nx, const float* __restrict__ nk,
                                                        float* __restrict__ out, float* __restrict__ line, long rest,
                                                        const Channel& c, float pivot, vec* s, vec* q) {
    vec o[WIDE], g[WIDE];
    if (AHEAD && !PART) {
        /* loads of the next group run ahead of their use; without them, the next block's first group is asked for */
        ask<WIDE, NEXT>(nx + (NEXT ? AHEAD : 0));
        ask<WIDE, NEXT>(nk + (NEXT ? AHEAD : 0));
    }
    if (NEXT) gather<PART, WIDE>(nx, nk, rest, pivot, s, q);
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        const vec kept = load<PART>(k + u * LANES, rest);
        const vec y = normal<FOLD>(load<PART>(x + u * LANES, rest) + kept, c);
        o[u] = kept + y * load<PART>(line + u * LANES, rest);
        if (GATE) g[u] = sigmoid(y);
    }
#pragma GCC unroll 8
    for (int u = 0; u < WIDE; ++u) {
        store<PART, STREAMED>(out + u * LANES, o[u], rest);
        if (GATE) store<PART, false>(line + u * LANES, g[u], rest);
    }
}

/* One row of outputs; the same place of the next group is added to its moments. */
template <bool FOLD, bool GATE, bool NEXT, bool STREAMED>
static __attribute__((noinline)) void row(const Row r, const Channel c, Moments* next) {
    const float *x = r.x, *k = r.k, *nx = r.nx, *nk = r.nk;
    float *out = r.out, *line = r.line;
    const long n = r.n;
    const float pivot = next->pivot;
    Doubles sum = next->sum, squares = next->squares;
    long i = 0;
    while (i + UNROLL * LANES <= n) {
        const long stop = n - i < SHORT * UNROLL * LANES ? n : i + SHORT * UNROLL * LANES;
        vec s[UNROLL] = {}, q[UNROLL] = {};
        for (; i + UNROLL * LANES <= stop; i += UNROLL * LANES)
            piece<FOLD, GATE, NEXT, false, STREAMED, UNROLL>(x + i, k + i, nx + i, nk + i, out + i, line + i, LANES, c,
                                                             pivot, s, q);
        if (NEXT) flush<UNROLL>(sum, squares, s, q);
    }
    for (; i + LANES <= n; i += LANES) {
        vec s[1] = {}, q[1] = {};
        piece<FOLD, GATE, NEXT, false, STREAMED, 1>(x + i, k + i, nx + i, nk + i, out + i, line + i, LANES, c, pivot, s,
                                                    q);
        if (NEXT) flush<1>(sum, squares, s, q);
    }
    if (i < n) {
        vec s[1] = {}, q[1] = {};
        piece<FOLD, GATE, NEXT, true, false, 1>(x + i, k + i, nx + i, nk + i, out + i, line + i, n - i, c, pivot, s, q);
        if (NEXT) flush<1>(sum, squares, s, q);
    }
    if (NEXT) {
        next->sum = sum;
        next->squares = squares;
    }
}

template <bool FOLD, bool STREAMED>
static inline void any_row(bool gate, bool more, const Row& r, const Channel& c, Moments* next) {
    if (gate && more)
        row<FOLD, true, true, STREAMED>(r, c, next);
    else if (gate)
        row<FOLD, true, false, STREAMED>(r, c, next);
    else if (more)
        row<FOLD, false, true, STREAMED>(r, c, next);
    else
        row<FOLD, false, false, STREAMED>(r, c, next);
}

static inline bool plain(float a) {
    a = fabsf(a);
    return a > 1e-30f && a < 1e30f;
}

static inline Channel channel_of(const Stats& s, float scale, float shift) {
    const Channel c = {s.mean, s.rstd, scale, shift, s.rstd * scale};
    return c;
}

static inline void any_gates(const float* x, const float* k, float* line, long n, const Channel& c) {
    if (plain(c.a))
        gates<true>(x, k, line, n, c);
    else
        gates<false>(x, k, line, n, c);
}

static inline void write_row(bool gate, bool more, const Row& r, const Channel& c, Moments* next) {
    if (!plain(c.a))
        any_row<false, false>(gate, more, r, c, next);
    else if (STREAM && ((unsigned long)r.out & (4 * LANES - 1)) == 0)
        any_row<true, STREAM != 0>(gate, more, r, c, next);
    else
        any_row<true, false>(gate, more, r, c, next);
}

extern "C" void gated(long b, long part, const float* x, const float* skip, const float* scale, const float* shift,
                      float* out, long batch, long groups, long width, long length, double eps) {
    alignas(64) float line[LINE];
    const long channels = groups * width, n = width * length, base = b * channels * length;
    const long begin = part * RUNS, end = begin + RUNS < groups ? begin + RUNS : groups;
    const bool whole = length <= LINE;
    /* the block has all groups: the very first row waits until the gates of the last one are in the line */
    const bool wrap = whole && begin == 0 && end == groups;
    Moments next;
    Stats before = {0, 0};
    if (!wrap) {
        const long last = begin == 0 ? groups - 1 : begin - 1;
        sweep(x + base + last * n, skip + base + last * n, n, &next);
        before = finish(next, x + base + last * n, skip + base + last * n, n, eps);
    }
    sweep(x + base + begin * n, skip + base + begin * n, n, &next);
    Stats own = finish(next, x + base + begin * n, skip + base + begin * n, n, eps);
    const Stats first = own;
    for (long g = begin; g < end; ++g) {
        const bool more = g + 1 < end;
        const long start = base + g * n, following = b * groups + g + 1 < batch * groups ? n : 0;
        const Doubles zero = {};
        next.sum = zero;
        next.squares = zero;
        next.pivot = x[start + following] + skip[start + following];
        for (long t = 0; t < length; t += LINE) {
            const long cols = length - t < LINE ? length - t : LINE;
            if (!whole || (g == begin && !wrap)) {
                const long p = g == 0 ? channels - 1 : g * width - 1;
                const long there = base + p * length + t;
                any_gates(x + there, skip + there, line, cols, channel_of(before, scale[p], shift[p]));
            }
            for (long w = 0; w < width; ++w) {
                const long at = g * width + w, here = start + w * length + t;
                const Channel c = channel_of(own, scale[at], shift[at]);
                if (wrap && g == 0 && w == 0) {
                    any_gates(x + here, skip + here, line, cols, c);
                    if (more)
                        gather_row(x + here + n, skip + here + n, cols, &next.sum, &next.squares, next.pivot);
                    continue;
                }
                const Row r = {x + here,   skip + here, x + here + following, skip + here + following,
                               out + here, line,        cols};
                write_row(w + 1 < width || (whole && more) || wrap, more, r, c, &next);
            }
        }
        before = own;
        if (more) own = finish(next, x + start + n, skip + start + n, n, eps);
    }
    if (wrap) {
        const Row r = {x + base, skip + base, x + base, skip + base, out + base, line, length};
        write_row(false, false, r, channel_of(first, scale[0], shift[0]), &next);
    }
    if (STREAM) _mm_sfence();
}
