/* cupilot 1
Gated mix with the left neighbour and RMS normalisation: two rows a block, aligned loads only, the next two rows asked
for while these are worked on, output written around the caches.
tune:
    LANES = 16 | 8
    UNROLL = 4 | 2 | 8
launch:
    rows, cols = x.shape
    gated_shift[cdiv(rows, 2)](x, gate, mix, scale, out, self.eps, rows, cols)
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

static inline vec load_part(const float* p, long n) {
    vec v = {};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

static inline vec exp_vec(vec x) {
    x = x > 89.0f ? vec{} + 89.0f : x;
    x = x < -80.0f ? vec{} - 80.0f : x;  // only 1 + exp(x) is needed
    vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    ivec k = __builtin_convertvector(n, ivec);
    ivec bits = (k + 126) << 23;
    vec half;
    memcpy(&half, &bits, sizeof half);
    return (p * half) * 2.0f;
}

static inline vec gated(vec x, vec left, vec mix, vec gate) {
    vec mixed = x + mix * (left - x);
    return mixed / (1.0f + exp_vec(-gate));
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

// The elements one to the left of `now`, whose predecessors are `before`.
static inline vec shifted(vec before, vec now) {
    ivec from;
    for (int l = 0; l < LANES; ++l) from[l] = LANES - 1 + l;
    return __builtin_shuffle(before, now, from);
}

extern "C" void gated_shift(long pair, const float* x, const float* gate, const float* mix, const float* scale,
                            float* out, float eps, long rows, long cols) {
    const long CAP = 8192;
    float local[2][CAP];
    long row = 2 * pair, step = row + 1 < rows ? cols : 0;  // the last row may be alone: it is done twice
    const float* in = x + row * cols;
    const float* g = gate + row * cols;
    float* o = out + row * cols;
    float* y = cols <= CAP ? local[0] : o;
    float* y2 = cols <= CAP ? local[1] : o + step;
    vec sums[UNROLL] = {}, sums2[UNROLL] = {};
    long j = 0;
    vec before = {}, before2 = {};
    for (; j + UNROLL * LANES <= cols; j += UNROLL * LANES)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            long i = j + u * LANES;
            __builtin_prefetch(in + 2 * cols + i);
            __builtin_prefetch(g + 2 * cols + i);
            __builtin_prefetch(in + 3 * cols + i);
            __builtin_prefetch(g + 3 * cols + i);
            vec m = load(mix + i), now = load(in + i), now2 = load(in + step + i);
            vec v = gated(now, shifted(before, now), m, load(g + i));
            vec v2 = gated(now2, shifted(before2, now2), m, load(g + step + i));
            before = now, before2 = now2;
            memcpy(y + i, &v, sizeof v);
            memcpy(y2 + i, &v2, sizeof v2);
            sums[u] += v * v;
            sums2[u] += v2 * v2;
        }
    for (; j + LANES <= cols; j += LANES) {
        vec m = load(mix + j), now = load(in + j), now2 = load(in + step + j);
        vec v = gated(now, shifted(before, now), m, load(g + j));
        vec v2 = gated(now2, shifted(before2, now2), m, load(g + step + j));
        before = now, before2 = now2;
        memcpy(y + j, &v, sizeof v);
        memcpy(y2 + j, &v2, sizeof v2);
        sums[0] += v * v;
        sums2[0] += v2 * v2;
    }
    if (j < cols) {
        long n = cols - j;
        vec m = load_part(mix + j, n), now = load_part(in + j, n), now2 = load_part(in + step + j, n);
        vec v = gated(now, shifted(before, now), m, load_part(g + j, n));
        vec v2 = gated(now2, shifted(before2, now2), m, load_part(g + step + j, n));
        memcpy(y + j, &v, n * sizeof(float));
        memcpy(y2 + j, &v2, n * sizeof(float));
        sums[0] += v * v;
        sums2[0] += v2 * v2;
    }
    vec sum = sums[0], sum2 = sums2[0];
    for (int u = 1; u < UNROLL; ++u) sum += sums[u], sum2 += sums2[u];
    float total = 0, total2 = 0;
    for (int l = 0; l < LANES; ++l) total += sum[l], total2 += sum2[l];
    float norm = 1.0f / sqrtf(total / (float)cols + eps), norm2 = 1.0f / sqrtf(total2 / (float)cols + eps);
    j = 0;
    if ((unsigned long)o % (4 * LANES) == 0 && (cols * 4) % (4 * LANES) == 0 && y == local[0]) {
        for (; j + LANES <= cols; j += LANES) {
            vec s = load(scale + j);
            stream(o + j, load(y + j) * norm * s);
            stream(o + step + j, load(y2 + j) * norm2 * s);
        }
        _mm_sfence();
    }
    for (; j < cols; ++j) {
        float a = y[j] * norm * scale[j], b = y2[j] * norm2 * scale[j];
        o[j] = a;
        if (step) o[step + j] = b;
    }
}
