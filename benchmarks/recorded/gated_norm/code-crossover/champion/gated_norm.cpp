/* cupilot 1
Residual sum, group normalisation and gate in one launch, as a pipeline over the groups of a sample: the loop that writes a
group from the cache, row by row, also takes the moments of the group after it.
tune:
    LANES = 16
    UNROLL = 2
    LINE = 2048
    AHEAD = 1024
launch:
    batch, channels, length = x.shape
    gated_norm[batch](x, skip, scale, shift, out, self.groups, channels, length, self.eps)
strategy:
    fuse-passes
    non-temporal-stores
    prefetch
    vectorize
    One launch, one block per sample, as a pipeline over the groups: only group 0 has a sweep of its own for its moments; afterwards a single loop writes the results of group g from the second-level cache and, in the same iteration, reads the elements one group further on and adds them to the moments of group g+1.
    The loop's loads of group g+1 are the only reads from memory and overlap the exponentials and stores of group g; lines a fixed, tunable distance ahead of them (x and skip) are prefetched; both groups fit in the second-level cache.
    Moments: sum and squares of x+skip minus a shift (the mean of the group's first vector), a pair of vector accumulators per unrolled vector, merged in double after every piece of a row; a piece whose squares leave single precision, or where sum*sum/n exceeds half of the squares, is done again in double by a separate function, and the shift moves to the mean found so far.
    The last group's loop is an instance of the template without the moments part and without prefetch.
    Rows are written in the order of memory; the gate sigmoid(y) of a row stays in a line of first-level cache, is read by the row after it and overwritten with that row's own gate, across group borders too; rows longer than the line are swept in pieces and refill the line from the row before the group.
    Row 0 of the sample only fills the line in group 0 and is written after the last group with the last row's gates.
    y = (x+skip-mean)*a + shift with a = scale*rstd per row, the mean subtracted first so that large means do not cancel; the sigmoid is 1/(1+2^n*2^r) with a polynomial of degree six for 2^r, scalef, the reciprocal by the approximate instruction and a Newton step, and a mask giving 0 where the exponential overflows.
    Each iteration handles several vectors: moments of the far vectors first, then y and results, then the stores, then the sigmoids, so that the independent chains overlap; stores are non-temporal where out and the row length are aligned.
proof:
    identity: 68d9bec02875a77a
    problem: gated_norm e2ca134e89ac59c290d01bd3702ab1e8
    right on 41 inputs at 7 shapes
    over eager: 4.85x [4.67, 5.04]
    over compile: 4.14x [3.92, 4.37]
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));

#define INLINE inline __attribute__((always_inline))

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

/* 1 / (1 + exp(-t)): exp(-t) as 2^n * 2^r with |r| <= 1/2, the reciprocal by an approximation and a Newton step; 0 where the
   exponential would overflow, NaN for NaN. */
INLINE vec sigmoid(vec t) {
    vec zero = {};
    vec high = zero + 87.0f;
    vec u = t > high ? high : t;
    vec shifted = u * -1.44269504088896341f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = u * -1.44269504088896341f - n;
    vec p = r * 1.535336188319500e-4f + 1.339887440266574e-3f;
    p = p * r + 9.618437357674640e-3f;
    p = p * r + 5.550332471162809e-2f;
    p = p * r + 2.402264791363012e-1f;
    p = p * r + 6.931472028550421e-1f;
    p = p * r + 1.0f;
#if LANES == 16 && defined(__AVX512F__)
    __m512 d = _mm512_add_ps(_mm512_scalef_ps((__m512)p, (__m512)n), _mm512_set1_ps(1.0f));
    __m512 guess = _mm512_rcp14_ps(d);
    __m512 factor = _mm512_fnmadd_ps(d, guess, _mm512_set1_ps(2.0f));
    __mmask16 keep = _mm512_cmp_ps_mask((__m512)t, _mm512_set1_ps(-88.72f), _CMP_NLT_UQ);
    return (vec)_mm512_maskz_mul_ps(keep, guess, factor);
#else
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
                  float* middle) {
    vec firsts = first[0], seconds = second[0];
#pragma GCC unroll 4
    for (int k = 1; k < UNROLL; ++k) {
        firsts += first[k];
        seconds += second[k];
    }
    double c = (double)count, sum = total(firsts), squares = total(seconds), offset = sum * sum / c, mean, spread;
    bool good = squares < 1e38 && offset <= 0.5 * squares;
    if (good) {
        mean = (double)*middle + sum / c;
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
   the moments (MOMENTS) of the piece at far_x and far_skip, a group further on. */
template <bool WRITE, bool STREAM, bool KEEP, bool MOMENTS>
inline void row(const float* x, const float* skip, float* out, float* line, long count, float mean, float a, float b,
                const float* far_x, const float* far_skip, double* found, float* middle) {
    vec first[UNROLL] = {}, second[UNROLL] = {};
    float around = MOMENTS ? *middle : 0.0f;
    long i = 0;
    for (; i + UNROLL * LANES <= count; i += UNROLL * LANES) {
        if constexpr (MOMENTS) {
#pragma GCC unroll 4
            for (int j = 0; j < UNROLL * LANES; j += 16) {
                __builtin_prefetch(far_x + i + AHEAD + j);
                __builtin_prefetch(far_skip + i + AHEAD + j);
            }
#pragma GCC unroll 4
            for (int k = 0; k < UNROLL; ++k) {
                long at = i + k * LANES;
                vec d = (load(far_x + at) + load(far_skip + at)) - around;
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
                y[k] = ((load(x + at) + held) - mean) * a + b;
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
            if constexpr (MOMENTS) {
                vec d = (load_part(far_x + i, left) + load_part(far_skip + i, left)) - around;
                d = lane < left ? d : zero;
                first[0] += d;
                second[0] += d * d;
            }
            if constexpr (WRITE || KEEP) {
                vec held = load_part(skip + i, left);
                vec y = ((load_part(x + i, left) + held) - mean) * a + b;
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
    if constexpr (MOMENTS) merge(far_x, far_skip, count, first, second, found, middle);
}

/* The mean of the first vector of a group. */
INLINE float guess(const float* x, const float* skip, long size) {
    long some = size < LANES ? size : LANES;
    return total(load_part(x, some) + load_part(skip, some)) / (float)some;
}

/* The results of group g, with its mean and deviation, and (MOMENTS) the moments of the group after it. */
template <bool STREAM, bool MOMENTS>
inline void group(long g, const float* x, const float* skip, const float* scale, const float* shift, float* out,
                  float* line, long width, long length, float mean, float rstd, float last_mean, float last_rstd,
                  double* found) {
    long size = width * length, begin = g * width;
    float middle = 0;
    if constexpr (MOMENTS) middle = guess(x + (g + 1) * size, skip + (g + 1) * size, size);
    for (long piece = 0; piece < length; piece += LINE) {
        long count = length - piece < LINE ? length - piece : LINE, c = begin;
        long at = c * length + piece;
        if (g == 0) {
            row<false, false, true, MOMENTS>(x + at, skip + at, out, line, count, mean, scale[0] * rstd, shift[0],
                                             x + at + size, skip + at + size, found, &middle);
            ++c;
        } else if (length > LINE) {
            long before = at - length;
            row<false, false, true, false>(x + before, skip + before, out, line, count, last_mean,
                                           scale[begin - 1] * last_rstd, shift[begin - 1], x, skip, found, &middle);
        }
        for (; c < begin + width; ++c) {
            at = c * length + piece;
            row<true, STREAM, true, MOMENTS>(x + at, skip + at, out + at, line, count, mean, scale[c] * rstd, shift[c],
                                             x + at + size, skip + at + size, found, &middle);
        }
    }
}

extern "C" void gated_norm(long sample, const float* x, const float* skip, const float* scale, const float* shift,
                           float* out, long groups, long channels, long length, double eps) {
    alignas(64) float line[LINE];
    long width = channels / groups, size = width * length, start = sample * channels * length;
    bool aligned = (unsigned long)out % sizeof(vec) == 0 && length % LANES == 0;
    x += start;
    skip += start;
    out += start;

    double found[3] = {0, 0, 0};
    float middle = guess(x, skip, size);
    for (long i = 0; i < size; i += LINE)
        row<false, false, false, true>(x, skip, out, line, size - i < LINE ? size - i : LINE, 0, 0, 0, x + i, skip + i,
                                       found, &middle);

    float zero_mean = 0, zero_rstd = 0, last_mean = 0, last_rstd = 0;
    for (long g = 0; g < groups; ++g) {
        float mean = (float)found[1];
        float rstd = (float)(1.0 / sqrt(found[2] / (double)size + eps));
        found[0] = found[1] = found[2] = 0;
        if (g == 0) {
            zero_mean = mean;
            zero_rstd = rstd;
        }
        if (g + 1 < groups) {
            if (aligned)
                group<true, true>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean, last_rstd,
                                  found);
            else
                group<false, true>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean, last_rstd,
                                   found);
        } else {
            if (aligned)
                group<true, false>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean, last_rstd,
                                   found);
            else
                group<false, false>(g, x, skip, scale, shift, out, line, width, length, mean, rstd, last_mean, last_rstd,
                                    found);
        }
        last_mean = mean;
        last_rstd = rstd;
    }

    long last = channels - 1;
    for (long piece = 0; piece < length; piece += LINE) {
        long count = length - piece < LINE ? length - piece : LINE, at = last * length + piece;
        if (length > LINE)
            row<false, false, true, false>(x + at, skip + at, out, line, count, last_mean, scale[last] * last_rstd,
                                           shift[last], x, skip, found, &middle);
        if (aligned)
            row<true, true, false, false>(x + piece, skip + piece, out + piece, line, count, zero_mean,
                                          scale[0] * zero_rstd, shift[0], x, skip, found, &middle);
        else
            row<true, false, false, false>(x + piece, skip + piece, out + piece, line, count, zero_mean,
                                           scale[0] * zero_rstd, shift[0], x, skip, found, &middle);
    }
    _mm_sfence();
}
