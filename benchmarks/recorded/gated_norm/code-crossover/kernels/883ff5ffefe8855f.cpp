/* cupilot 1
Residual sum, group normalisation and gate in one launch: a block takes a sample, group by group: moments chunk by chunk, then
the rows in the order of memory, with the gates that a row leaves for the next in a line in the first-level cache.
tune:
    LANES = 16 | 8
    UNROLL = 4 | 2
    LINE = 2048
    CHUNK = 2048 | 1024
    SHARE = 2 | 1 | 3 | 0
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

/* Moments of x + skip over count <= CHUNK elements, merged into those found so far. Its second sweep, over the chunk's sums in
   the first-level cache, asks for a share of the next group. */
INLINE void merge_chunk(const float* x, const float* skip, long count, double* found, const float* far_x,
                        const float* far_skip, long& ahead, long ahead_end) {
    alignas(64) float sums[CHUNK];
    vec part[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            vec v = load(x + i + k * LANES) + load(skip + i + k * LANES);
            memcpy(sums + i + k * LANES, &v, sizeof v);
            part[k] += v;
        }
    for (; i < count; i += LANES) {
        long left = count - i < LANES ? count - i : LANES;
        vec v = load_part(x + i, left) + load_part(skip + i, left);
        memcpy(sums + i, &v, sizeof v);
        part[0] += v;
    }
    float middle = total((part[0] + part[1]) + (part[2] + part[3])) / (float)count;

    vec first[4] = {}, second[4] = {};
    i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        if (SHARE > 0 && ahead < ahead_end) {
#pragma GCC unroll 4
            for (int j = 0; j < SHARE * LANES; j += 16) {
                __builtin_prefetch(far_x + ahead + j, 0, 2);
                __builtin_prefetch(far_skip + ahead + j, 0, 2);
            }
            ahead += SHARE * LANES;
        }
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            vec d = load(sums + i + k * LANES) - middle;
            first[k] += d;
            second[k] += d * d;
        }
    }
    if (i < count) {
        ivec lane;
        for (int j = 0; j < LANES; ++j) lane[j] = j;
        vec zero = {};
        for (; i < count; i += LANES) {
            int left = (int)(count - i);
            vec d = load(sums + i) - middle;
            d = lane < left ? d : zero;
            first[0] += d;
            second[0] += d * d;
        }
    }
    double c = (double)count;
    double sum = total((first[0] + first[1]) + (first[2] + first[3]));
    double squares = total((second[0] + second[1]) + (second[2] + second[3]));
    double mean, spread;
    if (squares < 1e38) {
        mean = (double)middle + sum / c;
        spread = squares - sum * sum / c;
        spread = spread < 0 ? 0 : spread;
    } else { /* too large for single precision, or not finite */
        double all = 0;
        spread = 0;
        for (long j = 0; j < count; ++j) all += sums[j];
        mean = all / c;
        for (long j = 0; j < count; ++j) {
            double d = sums[j] - mean;
            spread += d * d;
        }
    }
    double n = found[0], both = n + c, delta = mean - found[1];
    found[0] = both;
    found[1] += delta * (c / both);
    found[2] += spread + delta * delta * (n * c / both);
}

/* The gates that count <= LINE elements of a row leave. */
inline void leave(const float* x, const float* skip, float* line, long count, float mean, float a, float b) {
    long i = 0;
    for (; i + UNROLL * LANES <= count; i += UNROLL * LANES)
#pragma GCC unroll 4
        for (int k = 0; k < UNROLL; ++k) {
            long at = i + k * LANES;
            vec gate = sigmoid(((load(x + at) + load(skip + at)) - mean) * a + b);
            memcpy(line + at, &gate, sizeof gate);
        }
    for (; i < count; i += LANES) {
        long left = count - i < LANES ? count - i : LANES;
        vec gate = sigmoid(((load_part(x + i, left) + load_part(skip + i, left)) - mean) * a + b);
        memcpy(line + i, &gate, left * sizeof(float));
    }
}

/* Writes count <= LINE elements of a row with the gates in the line, leaves its own (KEEP) there, and asks for the rest of the
   next group; says how far it has asked. */
template <bool STREAM, bool KEEP>
inline long write(const float* x, const float* skip, float* out, float* line, long count, float mean, float a, float b,
                  const float* far_x, const float* far_skip, long ahead, long ahead_end) {
    constexpr int ASK = (UNROLL * LANES * (4 - SHARE) + 63) / 64 * 16;
    long i = 0;
    for (; i + UNROLL * LANES <= count; i += UNROLL * LANES) {
        if (KEEP && ahead < ahead_end) {
#pragma GCC unroll 4
            for (int j = 0; j < ASK; j += 16) {
                __builtin_prefetch(far_x + ahead + j, 0, 2);
                __builtin_prefetch(far_skip + ahead + j, 0, 2);
            }
            ahead += ASK;
        }
        vec y[UNROLL], result[UNROLL];
#pragma GCC unroll 4
        for (int k = 0; k < UNROLL; ++k) {
            long at = i + k * LANES;
            vec held = load(skip + at);
            y[k] = ((load(x + at) + held) - mean) * a + b;
            result[k] = y[k] * load(line + at) + held;
        }
#pragma GCC unroll 4
        for (int k = 0; k < UNROLL; ++k) {
            long at = i + k * LANES;
            if constexpr (STREAM)
                stream(out + at, result[k]);
            else
                memcpy(out + at, &result[k], sizeof result[k]);
        }
        if constexpr (KEEP) {
#pragma GCC unroll 4
            for (int k = 0; k < UNROLL; ++k) {
                vec gate = sigmoid(y[k]);
                memcpy(line + i + k * LANES, &gate, sizeof gate);
            }
        }
    }
    for (; i < count; i += LANES) {
        long left = count - i < LANES ? count - i : LANES;
        vec held = load_part(skip + i, left);
        vec y = ((load_part(x + i, left) + held) - mean) * a + b;
        vec result = y * load_part(line + i, left) + held;
        memcpy(out + i, &result, left * sizeof(float));
        if constexpr (KEEP) {
            vec gate = sigmoid(y);
            memcpy(line + i, &gate, left * sizeof(float));
        }
    }
    return ahead;
}

extern "C" void gated_norm(long sample, const float* x, const float* skip, const float* scale, const float* shift,
                           float* out, long batch, long groups, long channels, long length, double eps) {
    alignas(64) float line[LINE];
    long width = channels / groups, size = width * length, start = sample * channels * length;
    long remaining = (batch - sample) * channels * length;
    bool aligned = (unsigned long)out % sizeof(vec) == 0 && length % LANES == 0;
    bool whole = length <= LINE; /* the line holds the gates of a whole row, from group to group */
    x += start;
    skip += start;
    out += start;

    float zero_mean = 0, zero_rstd = 0, last_mean = 0, last_rstd = 0;
    for (long g = 0; g < groups; ++g) {
        double found[3] = {0, 0, 0};
        long ahead = (g + 1) * size, ahead_end = ahead + size < remaining ? ahead + size : remaining;
        for (long i = 0; i < size; i += CHUNK) {
            long count = size - i < CHUNK ? size - i : CHUNK;
            merge_chunk(x + g * size + i, skip + g * size + i, count, found, x, skip, ahead, ahead_end);
        }
        float mean = (float)found[1];
        float rstd = (float)(1.0 / sqrt(found[2] / (double)size + eps));
        if (g == 0) {
            zero_mean = last_mean = mean;
            zero_rstd = last_rstd = rstd;
        }
        long first = g == 0 ? 1 : g * width, end = (g + 1) * width, before = first - 1;
        for (long piece = 0; piece < length; piece += LINE) {
            long count = length - piece < LINE ? length - piece : LINE;
            if (g == 0 || !whole) {
                long at = before * length + piece;
                leave(x + at, skip + at, line, count, last_mean, scale[before] * last_rstd, shift[before]);
            }
            for (long c = first; c < end; ++c) {
                long at = c * length + piece;
                float a = scale[c] * rstd, b = shift[c];
                if (aligned)
                    ahead = write<true, true>(x + at, skip + at, out + at, line, count, mean, a, b, x, skip, ahead,
                                              ahead_end);
                else
                    ahead = write<false, true>(x + at, skip + at, out + at, line, count, mean, a, b, x, skip, ahead,
                                               ahead_end);
            }
        }
        last_mean = mean;
        last_rstd = rstd;
    }
    long last = channels - 1;
    for (long piece = 0; piece < length; piece += LINE) {
        long count = length - piece < LINE ? length - piece : LINE, at = last * length + piece;
        if (!whole) leave(x + at, skip + at, line, count, last_mean, scale[last] * last_rstd, shift[last]);
        float a = scale[0] * zero_rstd, b = shift[0];
        if (aligned)
            write<true, false>(x + piece, skip + piece, out + piece, line, count, zero_mean, a, b, x, skip, 0, 0);
        else
            write<false, false>(x + piece, skip + piece, out + piece, line, count, zero_mean, a, b, x, skip, 0, 0);
    }
    _mm_sfence();
}
