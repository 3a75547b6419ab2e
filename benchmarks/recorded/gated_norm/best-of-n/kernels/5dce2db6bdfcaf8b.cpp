/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: a block takes the statistics of a group and writes
all its channels but the first while they are in the cache; a second launch writes the first channels from kept gates.
tune:
    LANES = 16 | 8
    CHUNK = 2048 | 1024
    EARLY = 1 | 0
    STREAM = 1 | 0
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 4), f32)
    gates = scratch((batch, self.groups, length), f32)
    inner[batch, self.groups](x, skip, scale, shift, stats, gates, out, batch, self.groups, width, length, self.eps)
    first[batch, self.groups](x, skip, scale, shift, stats, gates, out, batch, self.groups, width, length)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

INLINE vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vec load_part(const float* p, long n) {
    vec v = {};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

INLINE void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

INLINE vec all(float f) { return (vec){} + f; }

INLINE void stream(float* p, vec v) {
#if !STREAM
    memcpy(p, &v, sizeof v);
#elif LANES == 16 && defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif LANES == 16 && defined(__AVX__)
    __m256 half[2];
    memcpy(half, &v, sizeof v);
    _mm256_stream_ps(p, half[0]);
    _mm256_stream_ps(p + 8, half[1]);
#elif LANES == 8 && defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#else
    memcpy(p, &v, sizeof v);
#endif
}

// Both bounds keep a NaN: the instruction gives its second operand then.
INLINE vec clamp(vec y, vec low, vec high) {
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)y));
#elif LANES == 8 && defined(__AVX__)
    return (vec)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)y));
#else
    y = y < low ? low : y;
    return y > high ? high : y;
#endif
}

// 1 / (1 + exp(-y)). Below -89 the exponential overflows to infinity and the gate is 0, above 86 it is 1.
// The rounding constant carries the exponent's bias less one: its bits, shifted, are 2^(n-1).
INLINE vec sigmoid(vec y) {
    y = clamp(y, all(-89.0f), all(86.0f));
    vec t = y * -1.44269504088896341f + 12583038.0f;
    vec n = t - 12583038.0f;
    vec r = n * 0.693147180559945309f + y;  // exp(-y) = 2^n exp(-r)
    vec p = all(1.3981999507e-3f);
    p = p * r - 8.3752302700e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r - 1.6666414552e-1f;
    p = p * r + 0.5f;
    p = p * r - 1.0f;
    p = p * r + 1.0f;
    vec half = p * (vec)((ivec)t << 23);
    return 1.0f / (half * 2.0f + 1.0f);
}

// Mean and sum of squared differences of one chunk, whose sums x + skip wait in the first-level cache. The second
// sweep leaves memory idle: it asks for the skip of the next group.
INLINE void chunk_moments(const float* x, const float* s, long n, long ahead, double* mean, double* squares) {
    alignas(64) float kept[CHUNK];
    vec sums[8] = {};
    long i = 0;
    for (; i + 8 * LANES <= n; i += 8 * LANES)
        for (int k = 0; k < 8; ++k) {
            vec v = load(x + i + k * LANES) + load(s + i + k * LANES);
            store(kept + i + k * LANES, v);
            sums[k] += v;
        }
    for (; i + LANES <= n; i += LANES) {
        vec v = load(x + i) + load(s + i);
        store(kept + i, v);
        sums[0] += v;
    }
    if (i < n) {
        vec v = load_part(x + i, n - i) + load_part(s + i, n - i);
        store(kept + i, v);
        sums[1] += v;
    }
    vec sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    float total = 0;
    for (int k = 0; k < LANES; ++k) total += sum[k];
    float centre = total / (float)n;

    vec c = all(centre);
    vec ones[4] = {}, twos[4] = {};
    i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        if (EARLY)
            for (int k = 0; k < 4 * LANES; k += 16) __builtin_prefetch(s + i + k + ahead, 0, 2);
        for (int k = 0; k < 4; ++k) {
            vec d = load(kept + i + k * LANES) - c;
            ones[k] += d;
            twos[k] += d * d;
        }
    }
    for (; i + LANES <= n; i += LANES) {
        vec d = load(kept + i) - c;
        ones[0] += d;
        twos[0] += d * d;
    }
    if (i < n) {
        ivec number;
        for (int k = 0; k < LANES; ++k) number[k] = k;
        vec d = load(kept + i) - c;
        d = number < ((ivec){} + (int)(n - i)) ? d : (vec){};
        ones[1] += d;
        twos[1] += d * d;
    }
    vec one = (ones[0] + ones[1]) + (ones[2] + ones[3]);
    vec two = (twos[0] + twos[1]) + (twos[2] + twos[3]);
    double sum_one = 0, sum_two = 0;
    for (int k = 0; k < LANES; ++k) {
        sum_one += one[k];
        sum_two += two[k];
    }
    if (sum_two <= 1e38) {
        // the centre was rounded: what it missed is corrected here
        double off = sum_one / (double)n;
        double rest = sum_two - sum_one * off;
        *mean = (double)centre + off;
        *squares = rest > 0 ? rest : 0;
        return;
    }
    // too large for single precision, or not finite
    double exact = 0, spread = 0;
    for (long j = 0; j < n; ++j) exact += (double)kept[j];
    exact /= (double)n;
    for (long j = 0; j < n; ++j) {
        double d = (double)kept[j] - exact;
        spread += d * d;
    }
    *mean = exact;
    *squares = spread;
}

INLINE void group_moments(const float* x, const float* s, long n, long ahead, double eps, double* mean, double* rstd) {
    double count = 0, average = 0, squares = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long part = n - i < CHUNK ? n - i : CHUNK;
        double m, q;
        chunk_moments(x + i, s + i, part, ahead, &m, &q);
        double both = count + (double)part;
        double delta = m - average;
        average += delta * ((double)part / both);
        squares += q + delta * delta * (count * (double)part / both);
        count = both;
    }
    *mean = average;
    *rstd = 1.0 / sqrt(squares / (double)n + eps);
}

// y = (x + skip - mean) * a + b, where b also holds what rounding the mean to single precision lost
INLINE void coefficients(double mean, double rstd, float scale, float shift, float* a, float* b) {
    double factor = rstd * (double)scale;
    double lost = (mean - (double)(float)mean) * factor;
    *a = (float)factor;
    *b = lost > -1e300 && lost < 1e300 ? (float)((double)shift - lost) : shift;
}

INLINE long head_of(const float* out, long n) {
    long head = (long)((64 - ((unsigned long)out & 63)) & 63) / 4;
    return head < n ? head : n;
}

INLINE void row_part(const float* x, const float* s, float* out, float* gate, long n, float mean, float a, float b) {
    vec sv = load_part(s, n);
    vec y = ((load_part(x, n) + sv) - mean) * a + b;
    vec o = sv + y * load_part(gate, n);
    memcpy(out, &o, n * sizeof(float));
    vec g = sigmoid(y);
    memcpy(gate, &g, n * sizeof(float));
}

INLINE void first_part(const float* x, const float* s, float* out, const float* gate, long n, float mean, float a, float b) {
    vec sv = load_part(s, n);
    vec y = ((load_part(x, n) + sv) - mean) * a + b;
    vec o = sv + y * load_part(gate, n);
    memcpy(out, &o, n * sizeof(float));
}

extern "C" void inner(long item, long group, const float* x, const float* skip, const float* scale, const float* shift,
                      float* stats, float* gates, float* out, long batch, long groups, long width, long length,
                      double eps) {
    long n = width * length, block = item * groups + group;
    long ahead = block + 1 < batch * groups ? n : 0;
    x += block * n;
    skip += block * n;
    out += block * n;
    float* __restrict gate = gates + block * length;

    double mean, rstd;
    group_moments(x, skip, n, ahead, eps, &mean, &rstd);
    double both[2] = {mean, rstd};
    memcpy(stats + block * 4, both, sizeof both);
    float m = (float)mean, a, b;

    // the first channel only fills the line of gates
    {
        coefficients(mean, rstd, scale[group * width], shift[group * width], &a, &b);
        long i = 0;
        for (; i + 16 <= length; i += 16) {
            __builtin_prefetch(x + i + ahead, 0, 2);
            if (!EARLY) __builtin_prefetch(skip + i + ahead, 0, 2);
            for (int k = 0; k < 16; k += LANES)
                store(gate + i + k, sigmoid(((load(x + i + k) + load(skip + i + k)) - m) * a + b));
        }
        while (i < length) {
            long part = length - i < LANES ? length - i : LANES;
            vec g = sigmoid(((load_part(x + i, part) + load_part(skip + i, part)) - m) * a + b);
            memcpy(gate + i, &g, part * sizeof(float));
            i += part;
        }
    }

    for (long c = 1; c < width; ++c) {
        coefficients(mean, rstd, scale[group * width + c], shift[group * width + c], &a, &b);
        const float* __restrict px = x + c * length;
        const float* __restrict ps = skip + c * length;
        float* __restrict po = out + c * length;
        long head = head_of(po, length), i = 0;
        while (i < head) {
            long part = head - i < LANES ? head - i : LANES;
            row_part(px + i, ps + i, po + i, gate + i, part, m, a, b);
            i += part;
        }
        for (; i + 16 <= length; i += 16) {
            __builtin_prefetch(px + i + ahead, 0, 2);
            if (!EARLY) __builtin_prefetch(ps + i + ahead, 0, 2);
            for (int k = 0; k < 16; k += LANES) {
                vec sv = load(ps + i + k);
                vec y = ((load(px + i + k) + sv) - m) * a + b;
                stream(po + i + k, sv + y * load(gate + i + k));
                store(gate + i + k, sigmoid(y));
            }
        }
        while (i < length) {
            long part = length - i < LANES ? length - i : LANES;
            row_part(px + i, ps + i, po + i, gate + i, part, m, a, b);
            i += part;
        }
    }
    _mm_sfence();
}

extern "C" void first(long item, long group, const float* x, const float* skip, const float* scale, const float* shift,
                      const float* stats, const float* gates, float* out, long batch, long groups, long width,
                      long length) {
    long block = item * groups + group;
    long before = item * groups + (group == 0 ? groups - 1 : group - 1);
    long ahead = block + 1 < batch * groups ? width * length : 0;
    const float* __restrict px = x + block * width * length;
    const float* __restrict ps = skip + block * width * length;
    const float* __restrict gate = gates + before * length;
    float* __restrict po = out + block * width * length;

    double both[2];
    memcpy(both, stats + block * 4, sizeof both);
    float m = (float)both[0], a, b;
    coefficients(both[0], both[1], scale[group * width], shift[group * width], &a, &b);

    long head = head_of(po, length), i = 0;
    while (i < head) {
        long part = head - i < LANES ? head - i : LANES;
        first_part(px + i, ps + i, po + i, gate + i, part, m, a, b);
        i += part;
    }
    for (; i + 16 <= length; i += 16) {
        __builtin_prefetch(px + i + ahead, 0, 2);
        __builtin_prefetch(ps + i + ahead, 0, 2);
        for (int k = 0; k < 16; k += LANES) {
            vec sv = load(ps + i + k);
            vec y = ((load(px + i + k) + sv) - m) * a + b;
            stream(po + i + k, sv + y * load(gate + i + k));
        }
    }
    while (i < length) {
        long part = length - i < LANES ? length - i : LANES;
        first_part(px + i, ps + i, po + i, gate + i, part, m, a, b);
        i += part;
    }
    _mm_sfence();
}
