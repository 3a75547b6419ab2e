/* cupilot 1
Causal depthwise convolution of four taps with bias and SiLU: one block a row of one channel, whole vectors along time,
input and output of the next row asked for while this one is worked on.
tune:
    LANES = 16
    UNROLL = 4
    AHEAD = 2
launch:
    batch, channels, length = x.shape
    channels2, one, taps = conv_weight.shape
    causal_conv[channels, batch](x, conv_weight, conv_bias, out, channels, length, taps)
strategy:
    fuse-passes
    prefetch
    vectorize
    Keep the four unaligned loads, and ask for both the input and the output lines of a later row while this one is worked on: a row is a page, where the hardware's prefetchers stop.
    Clamp the exponential of SiLU to where it matters beside one and build its scale from the exponent's bits once.
proof:
    identity: ec92eb15cef0ac74
    problem: causal_conv f3fbdee8eeb6e799c766c3530df5250d
    right on 33 inputs at 4 shapes
    over eager: 3.95x [3.84, 4.06]
    over compile: 4.64x [4.48, 4.80]
*/
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
    for (; t + UNROLL * LANES <= length; t += UNROLL * LANES)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            __builtin_prefetch(in + AHEAD * length + t + u * LANES);
            __builtin_prefetch(o + AHEAD * length + t + u * LANES, 1);
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
