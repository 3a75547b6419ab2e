/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block visits the groups of a batch
item, the last one first, and writes each while it is in the cache; the very first row visited is written at the end.
tune:
    LANES = 16 | 8
    CHUNK = 2048 | 4096
    STREAM = 1 | 0
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    line = scratch((batch, length), f32)
    gated[batch](x, skip, scale, shift, line, out, batch, self.groups, width, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

enum Mode { FILL, BOTH, WRITE };

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

INLINE vec mask_part(vec v, long n) {
    ivec number;
    for (int k = 0; k < LANES; ++k) number[k] = k;
    return number < ((ivec){} + (int)n) ? v : (vec){};
}

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

// A value near the mean of the first elements.
INLINE float first_centre(const float* x, const float* s, long n) {
    if (n < 8) return x[0] + s[0];
    float t[8];
    for (int k = 0; k < 8; ++k) t[k] = x[k] + s[k];
    return (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))) * 0.125f;
}

// Mean and sum of squared differences of a chunk, from sums around a centre, or exactly where these fail.
INLINE void chunk_moments(const float* x, const float* s, long n, long ahead, float centre, double* mean,
                          double* squares) {
    vec c = all(centre);
    vec ones[4] = {}, twos[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int k = 0; k < 4 * LANES; k += 16) __builtin_prefetch(s + i + k + ahead, 0, 2);
        for (int k = 0; k < 4; ++k) {
            vec d = (load(x + i + k * LANES) + load(s + i + k * LANES)) - c;
            ones[k] += d;
            twos[k] += d * d;
        }
    }
    while (i < n) {
        long part = n - i < LANES ? n - i : LANES;
        vec d = mask_part((load_part(x + i, part) + load_part(s + i, part)) - c, part);
        ones[0] += d;
        twos[0] += d * d;
        i += part;
    }
    vec one = (ones[0] + ones[1]) + (ones[2] + ones[3]);
    vec two = (twos[0] + twos[1]) + (twos[2] + twos[3]);
    double d1 = 0, d2 = 0;
    for (int k = 0; k < LANES; ++k) {
        d1 += one[k];
        d2 += two[k];
    }
    double off = d1 / (double)n;
    double rest = d2 - d1 * off;
    if (d2 <= 1e38 && (d1 == 0 || d1 * off <= 4 * rest)) {
        *mean = (double)centre + off;
        *squares = rest > 0 ? rest : 0;
        return;
    }
    double exact = 0, spread = 0;
    for (long j = 0; j < n; ++j) exact += (double)(x[j] + s[j]);
    exact /= (double)n;
    for (long j = 0; j < n; ++j) {
        double d = (double)(x[j] + s[j]) - exact;
        spread += d * d;
    }
    *mean = exact;
    *squares = spread;
}

INLINE void group_moments(const float* x, const float* s, long n, long ahead, double eps, double* mean, double* rstd) {
    double count = 0, average = 0, squares = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long part = n - i < CHUNK ? n - i : CHUNK;
        float centre = i == 0 ? first_centre(x, s, part) : (float)average;
        double m, q;
        chunk_moments(x + i, s + i, part, ahead, centre, &m, &q);
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

template <int MODE>
INLINE void some(const float* x, const float* s, float* out, float* gate, long n, float mean, float a, float b) {
    vec sv = load_part(s, n);
    vec y = ((load_part(x, n) + sv) - mean) * a + b;
    if (MODE != FILL) {
        vec o = sv + y * load_part(gate, n);
        memcpy(out, &o, n * sizeof(float));
    }
    if (MODE != WRITE) {
        vec g = sigmoid(y);
        memcpy(gate, &g, n * sizeof(float));
    }
}

// One row: fills the line of gates, or writes out by it, or both.
template <int MODE>
INLINE void row(const float* __restrict x, const float* __restrict s, float* __restrict out, float* __restrict gate,
                long n, long ahead, float mean, float a, float b) {
    long head = (long)((64 - ((unsigned long)out & 63)) & 63) / 4;
    if (head > n) head = n;
    long i = 0;
    while (i < head) {
        long part = head - i < LANES ? head - i : LANES;
        some<MODE>(x + i, s + i, out + i, gate + i, part, mean, a, b);
        i += part;
    }
    for (; i + 16 <= n; i += 16) {
        if (MODE != WRITE) __builtin_prefetch(x + i + ahead, 0, 2);
        for (int k = 0; k < 16; k += LANES) {
            vec sv = load(s + i + k);
            vec y = ((load(x + i + k) + sv) - mean) * a + b;
            if (MODE != FILL) stream(out + i + k, sv + y * load(gate + i + k));
            if (MODE != WRITE) store(gate + i + k, sigmoid(y));
        }
    }
    while (i < n) {
        long part = n - i < LANES ? n - i : LANES;
        some<MODE>(x + i, s + i, out + i, gate + i, part, mean, a, b);
        i += part;
    }
}

extern "C" void gated(long item, const float* x, const float* skip, const float* scale, const float* shift, float* line,
                      float* out, long batch, long groups, long width, long length, double eps) {
    long n = width * length;
    x += item * groups * n;
    skip += item * groups * n;
    out += item * groups * n;
    float* gate = line + item * length;

    long late = (groups - 1) * width;  // the row that waits for the end of the ring
    float late_mean = 0, late_a = 0, late_b = 0;

    for (long visit = 0; visit < groups; ++visit) {
        long g = visit == 0 ? groups - 1 : visit - 1;
        long ahead;
        if (visit + 1 < groups)
            ahead = (visit - g) * n;
        else
            ahead = item + 1 < batch ? (2 * groups - 1 - g) * n : 0;
        double mean, rstd;
        group_moments(x + g * n, skip + g * n, n, ahead, eps, &mean, &rstd);
        float m = (float)mean;
        for (long c = g * width; c < (g + 1) * width; ++c) {
            float a, b;
            coefficients(mean, rstd, scale[c], shift[c], &a, &b);
            long at = c * length;
            if (c == late) {
                late_mean = m;
                late_a = a;
                late_b = b;
                row<FILL>(x + at, skip + at, out + at, gate, length, ahead, m, a, b);
            } else {
                row<BOTH>(x + at, skip + at, out + at, gate, length, ahead, m, a, b);
            }
        }
    }
    long at = late * length;
    row<WRITE>(x + at, skip + at, out + at, gate, length, 0, late_mean, late_a, late_b);
    _mm_sfence();
}
