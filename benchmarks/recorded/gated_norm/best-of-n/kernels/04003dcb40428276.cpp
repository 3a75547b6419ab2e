/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block walks the groups of one
batch item, takes a group's statistics, writes it while it is in the cache, and carries the line of gates along.
tune:
    LANES = 16 | 8
    CHUNK = 2048 | 1024 | 4096
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    line = scratch((batch, length), f32)
    gated[batch](x, skip, scale, shift, line, out, self.groups, width, length, self.eps)
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

INLINE vec all(float f) { return (vec){} + f; }

INLINE void stream(float* p, vec v) {
#if LANES == 16 && defined(__AVX512F__)
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

INLINE vec sigmoid(vec y) {
    vec high = all(104.0f), low = all(-87.0f);
    vec e = -y;
    e = e > high ? high : e;  // exp overflows to infinity above: the gate is 0; NaN stays
    e = e < low ? low : e;    // 1 + exp is 1 below
    vec n = (e * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    vec r = e - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    p = p + 1.0f;
#if LANES == 16 && defined(__AVX512F__)
    p = (vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    ivec k = __builtin_convertvector(n, ivec);
    ivec k1 = k >> 1;
    ivec k2 = k - k1;
    p = p * (vec)((k1 + 127) << 23) * (vec)((k2 + 127) << 23);
#endif
    return 1.0f / (1.0f + p);
}

// Mean and sum of squared differences of one chunk, found in the first-level cache the second time.
INLINE void chunk_moments(const float* x, const float* s, long n, double* mean, double* squares) {
    vec sums[8] = {};
    long i = 0;
    for (; i + 8 * LANES <= n; i += 8 * LANES)
        for (int k = 0; k < 8; ++k) sums[k] += load(x + i + k * LANES) + load(s + i + k * LANES);
    for (; i + LANES <= n; i += LANES) sums[0] += load(x + i) + load(s + i);
    if (i < n) sums[1] += load_part(x + i, n - i) + load_part(s + i, n - i);
    vec sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    float total = 0;
    for (int k = 0; k < LANES; ++k) total += sum[k];
    float centre = total / (float)n;

    vec c = all(centre);
    vec ones[4] = {}, twos[4] = {};
    i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < 4; ++k) {
            vec d = (load(x + i + k * LANES) + load(s + i + k * LANES)) - c;
            ones[k] += d;
            twos[k] += d * d;
        }
    for (; i + LANES <= n; i += LANES) {
        vec d = (load(x + i) + load(s + i)) - c;
        ones[0] += d;
        twos[0] += d * d;
    }
    if (i < n) {
        ivec number;
        for (int k = 0; k < LANES; ++k) number[k] = k;
        vec d = (load_part(x + i, n - i) + load_part(s + i, n - i)) - c;
        d = number < ((ivec){} + (int)(n - i)) ? d : (vec){};
        ones[1] += d;
        twos[1] += d * d;
    }
    vec one = (ones[0] + ones[1]) + (ones[2] + ones[3]);
    vec two = (twos[0] + twos[1]) + (twos[2] + twos[3]);
    double first = 0, second = 0;
    for (int k = 0; k < LANES; ++k) {
        first += one[k];
        second += two[k];
    }
    if (second <= 1e38) {
        // the centre was rounded: what it missed is corrected exactly
        double off = first / (double)n;
        double rest = second - first * off;
        *mean = (double)centre + off;
        *squares = rest > 0 ? rest : 0;
        return;
    }
    // too large for single precision, or not finite
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

INLINE void group_moments(const float* x, const float* s, long n, double eps, double* mean, double* rstd) {
    double count = 0, average = 0, squares = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long part = n - i < CHUNK ? n - i : CHUNK;
        double m, q;
        chunk_moments(x + i, s + i, part, &m, &q);
        double all_count = count + (double)part;
        double delta = m - average;
        average += delta * ((double)part / all_count);
        squares += q + delta * delta * (count * (double)part / all_count);
        count = all_count;
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

template <bool MORE>
INLINE void channel_part(const float* x, const float* s, float* out, float* gate, long n, float mean, float a, float b) {
    vec sv = load_part(s, n);
    vec y = ((load_part(x, n) + sv) - mean) * a + b;
    vec o = sv + y * load_part(gate, n);
    memcpy(out, &o, n * sizeof(float));
    if (MORE) {
        vec g = sigmoid(y);
        memcpy(gate, &g, n * sizeof(float));
    }
}

template <bool MORE>
INLINE void channel_row(const float* __restrict x, const float* __restrict s, float* __restrict out,
                        float* __restrict gate, long n, long ahead, float mean, float a, float b) {
    long head = (long)((64 - ((unsigned long)out & 63)) & 63) / 4;
    if (head > n) head = n;
    long i = 0;
    while (i < head) {
        long m = head - i < LANES ? head - i : LANES;
        channel_part<MORE>(x + i, s + i, out + i, gate + i, m, mean, a, b);
        i += m;
    }
    for (; i + 16 <= n; i += 16) {
        __builtin_prefetch(x + i + ahead, 0, 2);
        __builtin_prefetch(s + i + ahead, 0, 2);
        for (int k = 0; k < 16; k += LANES) {
            vec sv = load(s + i + k);
            vec y = ((load(x + i + k) + sv) - mean) * a + b;
            stream(out + i + k, sv + y * load(gate + i + k));
            if (MORE) {
                vec g = sigmoid(y);
                memcpy(gate + i + k, &g, sizeof g);
            }
        }
    }
    while (i < n) {
        long m = n - i < LANES ? n - i : LANES;
        channel_part<MORE>(x + i, s + i, out + i, gate + i, m, mean, a, b);
        i += m;
    }
}

extern "C" void gated(long item, const float* x, const float* skip, const float* scale, const float* shift, float* line,
                      float* out, long groups, long width, long length, double eps) {
    long n = width * length, channels = groups * width;
    x += item * channels * length;
    skip += item * channels * length;
    out += item * channels * length;
    float* gate = line + item * length;

    // the last group comes first: its last channel gates the first one
    double last_mean, last_rstd;
    group_moments(x + (groups - 1) * n, skip + (groups - 1) * n, n, eps, &last_mean, &last_rstd);
    {
        const float* px = x + (channels - 1) * length;
        const float* ps = skip + (channels - 1) * length;
        float a, b, mean = (float)last_mean;
        coefficients(last_mean, last_rstd, scale[channels - 1], shift[channels - 1], &a, &b);
        long i = 0;
        for (; i + LANES <= length; i += LANES) {
            vec g = sigmoid(((load(px + i) + load(ps + i)) - mean) * a + b);
            memcpy(gate + i, &g, sizeof g);
        }
        if (i < length) {
            vec g = sigmoid(((load_part(px + i, length - i) + load_part(ps + i, length - i)) - mean) * a + b);
            memcpy(gate + i, &g, (length - i) * sizeof(float));
        }
    }

    for (long g = 0; g < groups; ++g) {
        double mean = last_mean, rstd = last_rstd;
        if (g + 1 < groups) group_moments(x + g * n, skip + g * n, n, eps, &mean, &rstd);
        long ahead = g + 1 < groups ? n : 0;
        for (long c = g * width; c < (g + 1) * width; ++c) {
            float a, b;
            coefficients(mean, rstd, scale[c], shift[c], &a, &b);
            long at = c * length;
            if (c + 1 < channels)
                channel_row<true>(x + at, skip + at, out + at, gate, length, ahead, (float)mean, a, b);
            else
                channel_row<false>(x + at, skip + at, out + at, gate, length, ahead, (float)mean, a, b);
        }
    }
    _mm_sfence();
}
