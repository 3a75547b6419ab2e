/* cupilot 1
Residual sum, group normalisation and gate in one launch: a block takes a sample, and for every group finds mean and deviation
chunk by chunk, then writes it from the cache in strips of columns that go down the channels; channel 0 is written last.
tune:
    LANES = 16 | 8
    STRIP = 2 | 4 | 1
    CHUNK = 2048 | 1024
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
    float t[LANES];
    memcpy(t, &v, sizeof v);
#pragma GCC unroll 8
    for (int w = LANES / 2; w > 0; w /= 2)
#pragma GCC unroll 8
        for (int j = 0; j < w; ++j) t[j] += t[j + w];
    return t[0];
}

/* 1 + exp(-t), good to an ulp or so; infinite where exp overflows, NaN for NaN. */
INLINE vec denominator(vec t) {
    vec zero = {};
    vec z = -t;
    vec high = zero + 89.0f, low = zero - 87.0f;
    z = z > high ? high : z;
    z = z < low ? low : z;
    vec shifted = z * 1.44269504088896341f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = z - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
    uvec bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4B400000u + 126u) << 23; /* half of 2^n, so that n = 128 is still finite */
    vec half;
    memcpy(&half, &bits, sizeof half);
    return (p * half) * 2.0f + 1.0f;
}

/* Moments of x + skip over count <= CHUNK elements, merged into those found so far. */
inline void merge_chunk(const float* x, const float* skip, long count, double* found) {
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
    for (; i + 4 * LANES <= count; i += 4 * LANES)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            vec d = load(sums + i + k * LANES) - middle;
            first[k] += d;
            second[k] += d * d;
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
    double sum = total((first[0] + first[1]) + (first[2] + first[3]));
    double squares = total((second[0] + second[1]) + (second[2] + second[3]));
    double mean, spread;
    if (squares < 1e38) {
        mean = (double)middle + sum / (double)count;
        spread = squares - sum * sum / (double)count;
        spread = spread < 0 ? 0 : spread;
    } else { /* too large for single precision, or not finite */
        double all = 0;
        spread = 0;
        for (long j = 0; j < count; ++j) all += sums[j];
        mean = all / (double)count;
        for (long j = 0; j < count; ++j) {
            double d = sums[j] - mean;
            spread += d * d;
        }
    }
    double n = found[0], c = (double)count, both = n + c, delta = mean - found[1];
    found[0] = both;
    found[1] += delta * (c / both);
    found[2] += spread + delta * delta * (n * c / both);
}

/* Channels first to end of one strip of columns; before is the row that gates the first of them. */
template <int V, bool STREAM, bool PART>
INLINE void strip(const float* x, const float* skip, const float* scale, const float* shift, float* out, long before,
                  long first, long end, long length, long column, long left, float before_mean, float before_a,
                  float before_b, float mean, float rstd, long& ahead, long ahead_end) {
    vec y[V], s[V], k[V];
    long at = before * length + column;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
        vec sum;
        if constexpr (PART)
            sum = load_part(x + at, left) + load_part(skip + at, left);
        else
            sum = load(x + at + v * LANES) + load(skip + at + v * LANES);
        y[v] = (sum - before_mean) * before_a + before_b;
    }
    at = first * length + column;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
        if constexpr (PART) {
            k[v] = load_part(skip + at, left);
            s[v] = load_part(x + at, left) + k[v];
        } else {
            k[v] = load(skip + at + v * LANES);
            s[v] = load(x + at + v * LANES) + k[v];
        }
    }
    for (long c = first; c < end; ++c) {
        float a = scale[c] * rstd, b = shift[c];
        long next = c + 1 < end ? at + length : at;
        vec next_s[V], next_k[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            if constexpr (PART) {
                next_k[v] = load_part(skip + next, left);
                next_s[v] = load_part(x + next, left) + next_k[v];
            } else {
                next_k[v] = load(skip + next + v * LANES);
                next_s[v] = load(x + next + v * LANES) + next_k[v];
            }
        }
        if (ahead < ahead_end) {
#pragma GCC unroll 4
            for (int j = 0; j < V * LANES; j += 16) {
                __builtin_prefetch(x + ahead + j, 0, 2);
                __builtin_prefetch(skip + ahead + j, 0, 2);
            }
            ahead += V * LANES;
        }
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            vec d = denominator(y[v]);
            y[v] = (s[v] - mean) * a + b;
            vec result = k[v] + y[v] / d;
            if constexpr (PART)
                memcpy(out + at, &result, left * sizeof(float));
            else if constexpr (STREAM)
                stream(out + at + v * LANES, result);
            else
                memcpy(out + at + v * LANES, &result, sizeof result);
            s[v] = next_s[v];
            k[v] = next_k[v];
        }
        at = next;
    }
}

template <bool STREAM>
inline void sweep(const float* x, const float* skip, const float* scale, const float* shift, float* out, long before,
                  long first, long end, long length, float before_mean, float before_a, float before_b, float mean,
                  float rstd, long ahead, long ahead_end) {
    long i = 0;
    for (; i + STRIP * LANES <= length; i += STRIP * LANES)
        strip<STRIP, STREAM, false>(x, skip, scale, shift, out, before, first, end, length, i, LANES, before_mean,
                                    before_a, before_b, mean, rstd, ahead, ahead_end);
    for (; i + LANES <= length; i += LANES)
        strip<1, STREAM, false>(x, skip, scale, shift, out, before, first, end, length, i, LANES, before_mean, before_a,
                                before_b, mean, rstd, ahead, ahead_end);
    if (i < length)
        strip<1, false, true>(x, skip, scale, shift, out, before, first, end, length, i, length - i, before_mean,
                              before_a, before_b, mean, rstd, ahead, ahead_end);
}

extern "C" void gated_norm(long sample, const float* x, const float* skip, const float* scale, const float* shift,
                           float* out, long batch, long groups, long channels, long length, double eps) {
    long width = channels / groups, size = width * length, start = sample * channels * length;
    long remaining = (batch - sample) * channels * length;
    bool aligned = (unsigned long)out % sizeof(vec) == 0 && length % LANES == 0;
    x += start;
    skip += start;
    out += start;

    float zero_mean = 0, zero_rstd = 0, last_mean = 0, last_rstd = 0;
    for (long g = 0; g < groups; ++g) {
        double found[3] = {0, 0, 0};
        for (long i = 0; i < size; i += CHUNK) {
            long count = size - i < CHUNK ? size - i : CHUNK;
            merge_chunk(x + g * size + i, skip + g * size + i, count, found);
        }
        float mean = (float)found[1];
        float rstd = (float)(1.0 / sqrt(found[2] / (double)size + eps));
        if (g == 0) {
            zero_mean = last_mean = mean;
            zero_rstd = last_rstd = rstd;
        }
        long first = g == 0 ? 1 : g * width, end = (g + 1) * width;
        if (first < end) {
            long before = first - 1;
            float a = scale[before] * last_rstd, b = shift[before];
            if (aligned)
                sweep<true>(x, skip, scale, shift, out, before, first, end, length, last_mean, a, b, mean, rstd, end * length,
                            remaining);
            else
                sweep<false>(x, skip, scale, shift, out, before, first, end, length, last_mean, a, b, mean, rstd,
                             end * length, remaining);
        }
        last_mean = mean;
        last_rstd = rstd;
    }
    long before = channels - 1;
    float a = scale[before] * last_rstd, b = shift[before];
    if (aligned)
        sweep<true>(x, skip, scale, shift, out, before, 0, 1, length, last_mean, a, b, zero_mean, zero_rstd, 0, 0);
    else
        sweep<false>(x, skip, scale, shift, out, before, 0, 1, length, last_mean, a, b, zero_mean, zero_rstd, 0, 0);
    _mm_sfence();
}
