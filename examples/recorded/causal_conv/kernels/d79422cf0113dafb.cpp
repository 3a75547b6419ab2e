/* cupilot 1
Causal depthwise convolution of four taps with bias and SiLU: one block a row of one channel, whole vectors along time.
tune:
    LANES = 16 | 8
    UNROLL = 4 | 2 | 8
launch:
    batch, channels, length = x.shape
    channels2, one, taps = conv_weight.shape
    causal_conv[channels, batch](x, conv_weight, conv_bias, out, channels, length, taps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

// v / (1 + exp(-v)); the exponential matters only beside one.
static inline vec silu(vec v) {
    vec x = -v;
    x = x > 89.0f ? vec{} + 89.0f : x;
    x = x < -80.0f ? vec{} - 80.0f : x;
    vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    ivec bits = (__builtin_convertvector(n, ivec) + 126) << 23;
    vec half;
    memcpy(&half, &bits, sizeof half);
    return v / (1.0f + (p * half) * 2.0f);
}

static inline void stream(float* p, vec v) {
#if LANES == 16 && defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif LANES == 8 && defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#else
    memcpy(p, &v, sizeof v);
#endif
}

static inline vec taps4(const float* p, const float* w, float bias) {
    return ((load(p) * w[0] + bias) + load(p + 1) * w[1]) + (load(p + 2) * w[2] + load(p + 3) * w[3]);
}

extern "C" void causal_conv(long c, long b, const float* x, const float* weight, const float* bias, float* out,
                            long channels, long length, long taps) {
    const float* in = x + (b * channels + c) * length;
    float* o = out + (b * channels + c) * length;
    const float* w = weight + c * taps;
    float start = bias[c];
    if (taps != 4) {
        for (long t = 0; t < length; ++t) {
            float sum = start;
            for (long k = 0; k < taps; ++k) {
                long s = t - (taps - 1) + k;
                if (s >= 0) sum += w[k] * in[s];
            }
            o[t] = sum / (1.0f + expf(-sum));
        }
        return;
    }
    float w4[4] = {w[0], w[1], w[2], w[3]};
    // The first vector, behind three zeros.
    float head[LANES + 3] = {};
    long first = length < LANES ? length : LANES;
    memcpy(head + 3, in, first * sizeof(float));
    vec v = silu(taps4(head, w4, start));
    memcpy(o, &v, first * sizeof(float));
    long t = LANES;
    if ((unsigned long)o % (4 * LANES) == 0) {
        for (; t + UNROLL * LANES <= length; t += UNROLL * LANES)
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; ++u)
                stream(o + t + u * LANES, silu(taps4(in + t + u * LANES - 3, w4, start)));
        for (; t + LANES <= length; t += LANES) stream(o + t, silu(taps4(in + t - 3, w4, start)));
        _mm_sfence();
    }
    for (; t + UNROLL * LANES <= length; t += UNROLL * LANES)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            vec y = silu(taps4(in + t + u * LANES - 3, w4, start));
            memcpy(o + t + u * LANES, &y, sizeof y);
        }
    for (; t + LANES <= length; t += LANES) {
        vec y = silu(taps4(in + t - 3, w4, start));
        memcpy(o + t, &y, sizeof y);
    }
    if (t < length) {
        float tail[LANES + 3] = {};
        memcpy(tail, in + t - 3, (length - t + 3) * sizeof(float));
        vec y = silu(taps4(tail, w4, start));
        memcpy(o + t, &y, (length - t) * sizeof(float));
    }
}
