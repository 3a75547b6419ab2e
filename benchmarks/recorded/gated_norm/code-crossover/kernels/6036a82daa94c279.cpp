/* cupilot 1
Residual sum, group normalisation and gate in one launch, as a pipeline over the groups of a sample: the loop that writes a
group from the cache, row by row, also takes the moments of the group after it; the last one asks for the next sample's first.
tune:
    LANES = 16 | 8
    UNROLL = 4 | 2
    LINE = 2048
    AHEAD = 512 | 1024 | 2048 | 0
    NEXT = 1 | 0
launch:
    batch, channels, length = x.shape
    gated_norm[batch](x, skip, scale, shift, out, batch, self.groups, channels, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));

#define INLINE inline __attribute__((always_inline))

#define NONE 0    /* what a loop does with the group after the one it writes: nothing, */
#define FETCH 1   /* ask for its lines, */
#define MOMENTS 2 /* or take its moments */

INLINE vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vec load_part(const float* p, long left) {
    vec v = {};
    memcpy(&v, p, left * sizeof(float));
    return v;
}

INLINE void stream(float* p, vec v) {
#if LANES == 16 && defined(__AVX512F__)
    __m512 w;
    memcpy(&w, &v, sizeof w);
    _mm512_stream_ps(p, w);
#elif defined(__AVX__)
    for (int j = 0; j < LANES / 8; ++j) {
        __m256 w;
        memcpy(&w, (const char*)&v + 32 * j, sizeof w);
        _mm256_stream_ps(p + 8 * j, w);
    }
#else
    memcpy(p, &v, sizeof v);
#endif
}

INLINE float total(vec v) {
#if LANES == 16 && defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#else
    float t[LANES];
    memcpy(t, &v, sizeof v);
#pragma GCC unroll 8
    for (int w = LANES / 2; w > 0; w /= 2)
#pragma GCC unroll 8
        for (int j = 0; j < w; ++j) t[j] += t[j + w];
    return t[0];
#endif
}

/* 1 / (1 + exp(-t)), the reciprocal by an approximation and a Newton step; 0 where the exponential would overflow, NaN for NaN.
   With sixteen lanes exp(-t) is 2^floor(m) * 2^(k/16) * 2^r, m a multiple of 1/16 with k sixteenths, |r| <= 1/32, and the middle
   factor from a table in a register; otherwise it is 2^n * 2^r with |r| <= 1/2. */
INLINE vec sigmoid(vec t) {
    vec zero = {};
    vec high = zero + 87.0f;
    vec u = t > high ? high : t;
#if LANES == 16 && defined(__AVX512F__)
    const __m512 table = _mm512_setr_ps(1.0f, 1.0442737824274138f, 1.0905077326652577f, 1.1387886347566916f,
                                        1.1892071150027211f, 1.2418578120734840f, 1.2968395546510096f,
                                        1.3542555469368927f, 1.4142135623730951f, 1.4768261459394993f,
                                        1.5422108254079408f, 1.6104903319492543f, 1.6817928305074290f,
                                        1.7562521603732995f, 1.8340080864093424f, 1.9152065613971474f);
    vec shifted = u * -1.44269504088896341f + 786432.0f;
    vec m = shifted - 786432.0f;
    vec r = u * -1.44269504088896341f - m;
    __m512 factor = _mm512_scalef_ps(_mm512_permutexvar_ps(_mm512_castps_si512((__m512)shifted), table), (__m512)m);
    vec p = r * 0.055504108664821580f + 0.24022650695910072f;
    p = p * r + 0.69314718055994531f;
    p = p * r + 1.0f;
    __m512 d = _mm512_fmadd_ps(factor, (__m512)p, _mm512_set1_ps(1.0f));
    __m512 guess = _mm512_rcp14_ps(d);
    __m512 step = _mm512_fnmadd_ps(d, guess, _mm512_set1_ps(2.0f));
    __mmask16 keep = _mm512_cmp_ps_mask((__m512)t, _mm512_set1_ps(-88.7f), _CMP_NLT_UQ);
    return (vec)_mm512_maskz_mul_ps(keep, guess, step);
#else
    vec shifted = u * -1.44269504088896341f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = u * -1.44269504088896341f - n;
    vec p = r * 1.535336188319500e-4f + 1.339887440266574e-3f;
    p = p * r + 9.618437357674640e-3f;
    p = p * r + 5.550332471162809e-2f;
    p = p * r + 2.402264791363012e-1f;
    p = p * r + 6.931472028550421e-1f;
    p = p * r + 1.0f;
    uvec bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4B400000u + 126u) << 23; /* half of 2^n, so that n = 128 is still finite */
    vec half;
    memcpy(&half, &bits, sizeof half);
    vec d = (p * half) * 2.0f + 1.0f;
#if LANES == 8 && defined(__AVX512VL__)
    vec guess = (vec)_mm256_rcp14_ps((__m256)d);
    vec result = guess * (2.0f - d * guess);
#else
    vec result = 1.0f / d;
#endif
    vec low = zero - 88.72f;
    return t < low ? zero : result;
#endif
}

/* Mean and squared deviations of x + skip over count <= LINE elements, around their own mean, in double precision. */
__attribute__((noinline)) void exact_chunk(const float* x, const float* skip, long count, double* mean, double* spread) {
    alignas(64) float sums[LINE];
    double all = 0, rest = 0, squares = 0;
    for (long j = 0; j < count; ++j) sums[j] = x[j] + skip[j];
    for (long j = 0; j < count; ++j) all += sums[j];
    double middle = all / (double)count;
    for (long j = 0; j < count; ++j) {
        double d = sums[j] - middle;
        rest += d;
        squares += d * d;
    }
    *mean = middle + rest / (double)count;
    squares -= rest * rest / (double)count;
    *spread = squares < 0 ? 0 : squares;
}

/* Merges a chunk's sum and squares around middle into the moments found so far; does the chunk again where middle is too far
   from its mean, or single precision too narrow. */
INLINE void merge(const float* x, const float* skip, long count, const vec* first, const vec* second, double* found,
                  float around, float* middle) {
    vec firsts = first[0], seconds = second[0];
#pragma GCC unroll 4
    for (int k = 1; k < UNROLL; ++k) {
        firsts += first[k];
        seconds += second[k];
    }
    double c = (double)count, sum = total(firsts), squares = total(seconds), offset = sum * sum / c, mean, spread;
    bool good = squares < 1e38 && offset <= 0.5 * squares;
    if (good) {
        mean = (double)around + sum / c;
        spread = squares - offset;
    } else {
        exact_chunk(x, skip, count, &mean, &spread);
    }
    double n = found[0], both = n + c, delta = mean - found[1];
    found[0] = both;
    found[1] += delta * (c / both);
    found[2] += spread + delta * delta * (n * c / both);
    if (!good) *middle = (float)found[1];
}

/* One piece of a row, count <= LINE: writes it (WRITE) with the gates in the line, leaves its own gates there (KEEP), and takes
   the moments of the piece at far_x and far_skip, a group further on, or asks for it (FAR). Where the mean is small against the
   deviation (PLAIN), b contains it already and the moments are taken around zero; merge sees to the rest. */
template <bool WRITE, bool STREAM, bool KEEP, int FAR, bool PLAIN>
inline void row(const float* x, const float* skip, float* out, float* line, long count, float mean, float a, float b,
                const float* far_x, const float* far_skip, double* found, float* middle) {
    vec first[UNROLL] = {}, second[UNROLL] = {};
    float around = FAR == MOMENTS && !PLAIN ? *middle : 0.0f;
    long i = 0;
    for (; i + UNROLL * LANES <= count; i += UNROLL * LANES) {
        if constexpr (FAR == FETCH) {
#pragma GCC unroll 4
            for (int j = 0; j < UNROLL * LANES; j += 16) {
                __builtin_prefetch(far_x + i + j, 0, 2);
                __builtin_prefetch(far_skip + i + j, 0, 2);
            }
        }
        if constexpr (FAR == MOMENTS) {
            if constexpr (AHEAD > 0) {
#pragma GCC unroll 4
                for (int j = 0; j < UNROLL * LANES; j += 16) {
                    __builtin_prefetch(far_x + i + AHEAD + j);
                    __builtin_prefetch(far_skip + i + AHEAD + j);
                }
            }
#pragma GCC unroll 4
            for (int k = 0; k < UNROLL; ++k) {
                long at = i + k * LANES;
                vec d = load(far_x + at) + load(far_skip + at);
                if constexpr (!PLAIN) d = d - around;
                first[k] += d;
                second[k] += d * d;
            }
        }
        if constexpr (WRITE || KEEP) {
            vec y[UNROLL], result[UNROLL];
#pragma GCC unroll 4
            for (int k = 0; k < UNROLL; ++k) {
                long at = i + k * LANES;
                vec held = load(skip + at);
                vec sum = load(x + at) + held;
                if constexpr (!PLAIN) sum = sum - mean;
                y[k] = sum * a + b;
                if constexpr (WRITE) result[k] = y[k] * load(line + at) + held;
            }
            if constexpr (WRITE) {
#pragma GCC unroll 4
                for (int k = 0; k < UNROLL; ++k) {
                    long at = i + k * LANES;
                    if constexpr (STREAM)
                        stream(out + at, result[k]);
                    else
                        memcpy(out + at, &result[k], sizeof result[k]);
                }
            }
            if constexpr (KEEP) {
#pragma GCC unroll 4
                for (int k = 0; k < UNROLL; ++k) {
                    vec gate = sigmoid(y[k]);
                    memcpy(line + i + k * LANES, &gate, sizeof gate);
                }
            }
        }
    }
    if (i < count) {
        vec zero = {};
        ivec lane;
        for (int j = 0; j < LANES; ++j) lane[j] = j;
        for (; i < count; i += LANES) {
            int left = count - i < LANES ? (int)(count - i) : LANES;
            if constexpr (FAR == MOMENTS) {
                vec d = load_part(far_x + i, left) + load_part(far_skip + i, left);
                if constexpr (!PLAIN) d = d - around;
                d = lane < left ? d : zero;
                first[0] += d;
                second[0] += d * d;
            }
            if constexpr (WRITE || KEEP) {
                vec held = load_part(skip + i, left);
                vec sum = load_part(x + i, left) + held;
                if constexpr (!PLAIN) sum = sum - mean;
                vec y = sum * a + b;
                if constexpr (WRITE) {
                    vec result = y * load_part(line + i, left) + held;
                    memcpy(out + i, &result, left * sizeof(float));
                }
                if constexpr (KEEP) {
                    vec gate = sigmoid(y);
                    memcpy(line + i, &gate, left * sizeof(float));
                }
            }
        }
    }
    if constexpr (FAR == MOMENTS) merge(far_x, far_skip, count, first, second, found, around, middle);
}

/* The mean of the first vector of a group. */
INLINE float guess(const float* x, const float* skip, long size) {
    long some = size < LANES ? size : LANES;
    return total(load_part(x, some) + load_part(skip, some)) / (float)some;
}

/* What is added to a channel's product. */
template <bool PLAIN>
INLINE float added(float shift, float mean, float a) {
    return PLAIN ? (float)((double)shift - (double)mean * (double)a) : shift;
}

/* The results of group g, with its mean and deviation, and the moments or the lines (FAR) of the group after it. */
template <bool STREAM, int FAR, bool PLAIN>
inline void group(long g, const float* x, const float* skip, const float* scale, const float* shift, float* out,
                  float* line, long width, long length, float mean, float rstd, float last_mean, float last_rstd,
                  double* found) {
    long size = width * length, begin = g * width;
    float middle = 0;
    if constexpr (FAR == MOMENTS && !PLAIN) middle = guess(x + (g + 1) * size, skip + (g + 1) * size, size);
    for (long piece = 0; piece < length; piece += LINE) {
        long count = length - piece < LINE ? length - piece : LINE, c = begin;
        long at = c * length + piece;
        if (g == 0) {
            float a = scale[0] * rstd;
            row<false, false, true, FAR, PLAIN>(x + at, skip + at, out, line, count, mean, a,
                                                added<PLAIN>(shift[0], mean, a), x + at + size, skip + at + size, found,
                                                &middle);
            ++c;
        } else if (length > LINE) {
            long before = at - length;
            row<false, false, true, NONE, false>(x + before, skip + before, out, line, count, last_mean,
                                                 scale[begin - 1] * last_rstd, shift[begin - 1], x, skip, found, &middle);
        }
        for (; c < begin + width; ++c) {
            float a = scale[c] * rstd;
            at = c * length + piece;
            row<true, STREAM, true, FAR, PLAIN>(x + at, skip + at, out + at, line, count, mean, a,
                                                added<PLAIN>(shift[c], mean, a), x + at + size, skip + at + size, found,
                                                &middle);
        }
    }
}

/* A sample. */
template <bool STREAM>
inline void everything(const float* x, const float* skip, const float* scale, const float* shift, float* out, bool more,
                       long groups, long width, long channels, long length, double eps) {
    alignas(64) float line[LINE];
    long size = width * length;

    double found[3] = {0, 0, 0};
    float middle = guess(x, skip, size);
    for (long i = 0; i < size; i += LINE)
        row<false, false, false, MOMENTS, false>(x, skip, out, line, size - i < LINE ? size - i : LINE, 0, 0, 0, x + i,
                                                 skip + i, found, &middle);

    float zero_mean = 0, zero_rstd = 0, last_mean = 0, last_rstd = 0;
    for (long g = 0; g < groups; ++g) {
        float mean = (float)found[1];
        float rstd = (float)(1.0 / sqrt(found[2] / (double)size + eps));
        bool plain = fabs((double)mean) * (double)rstd <= 0.5;
        found[0] = found[1] = found[2] = 0;
        if (g == 0) {
            zero_mean = mean;
            zero_rstd = rstd;
        }
        if (g + 1 < groups) {
            if (plain)
                group<STREAM, MOMENTS, true>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean,
                                             last_rstd, found);
            else
                group<STREAM, MOMENTS, false>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean,
                                              last_rstd, found);
        } else if (more) {
            if (plain)
                group<STREAM, FETCH, true>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean,
                                           last_rstd, found);
            else
                group<STREAM, FETCH, false>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean,
                                            last_rstd, found);
        } else {
            group<STREAM, NONE, false>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean, last_rstd,
                                       found);
        }
        last_mean = mean;
        last_rstd = rstd;
    }

    long last = channels - 1;
    for (long piece = 0; piece < length; piece += LINE) {
        long count = length - piece < LINE ? length - piece : LINE, at = last * length + piece;
        if (length > LINE)
            row<false, false, true, NONE, false>(x + at, skip + at, out, line, count, last_mean, scale[last] * last_rstd,
                                                 shift[last], x, skip, found, &middle);
        row<true, STREAM, false, NONE, false>(x + piece, skip + piece, out + piece, line, count, zero_mean,
                                              scale[0] * zero_rstd, shift[0], x, skip, found, &middle);
    }
    _mm_sfence();
}

extern "C" void gated_norm(long sample, const float* x, const float* skip, const float* scale, const float* shift,
                           float* out, long batch, long groups, long channels, long length, double eps) {
    long start = sample * channels * length;
    bool more = NEXT && sample + 1 < batch;
    if ((unsigned long)out % sizeof(vec) == 0 && length % LANES == 0)
        everything<true>(x + start, skip + start, scale, shift, out + start, more, groups, channels / groups, channels,
                         length, eps);
    else
        everything<false>(x + start, skip + start, scale, shift, out + start, more, groups, channels / groups, channels,
                          length, eps);
}
