/* cupilot 1
Gated mix with the left neighbour and RMS normalisation in three launches over pieces of rows: gated values with totals
of squares, the factor of each row from its totals, then the pieces scaled and written around the caches.
tune:
    LANES = 16 | 8
    UNROLL = 4 | 2 | 8
    AHEAD = 1 | 2
    PIECE = 1024 | 512
launch:
    rows, cols = x.shape
    pieces = cdiv(cols, PIECE)
    y = scratch((rows, cols), f32)
    totals = scratch((rows, pieces), f64)
    norms = scratch((rows,), f32)
    gate_pieces[pieces, rows](x, gate, mix, y, totals, cols, pieces)
    norm_rows[rows](totals, norms, self.eps, cols, pieces)
    scale_pieces[pieces, rows](y, scale, norms, out, cols)
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

extern "C" void gate_pieces(long piece, long row, const float* x, const float* gate, const float* mix, float* ys,
                            double* totals, long all, long pieces) {
    const float* in = x + row * all;
    const float* g = gate + row * all;
    float* y = ys + row * all;
    vec sums[UNROLL] = {};
    long j = piece * PIECE, cols = j + PIECE < all ? j + PIECE : all;
    vec before = {};
    if (j) before[LANES - 1] = in[j - 1];
    for (; j + UNROLL * LANES <= cols; j += UNROLL * LANES)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            long i = j + u * LANES;
            __builtin_prefetch(in + AHEAD * all + i);
            __builtin_prefetch(g + AHEAD * all + i);
            vec now = load(in + i);
            vec v = gated(now, shifted(before, now), load(mix + i), load(g + i));
            before = now;
            memcpy(y + i, &v, sizeof v);
            sums[u] += v * v;
        }
    for (; j + LANES <= cols; j += LANES) {
        vec now = load(in + j);
        vec v = gated(now, shifted(before, now), load(mix + j), load(g + j));
        before = now;
        memcpy(y + j, &v, sizeof v);
        sums[1] += v * v;
    }
    if (j < cols) {
        long n = cols - j;
        vec now = load_part(in + j, n);
        vec v = gated(now, shifted(before, now), load_part(mix + j, n), load_part(g + j, n));
        memcpy(y + j, &v, n * sizeof(float));
        sums[0] += v * v;
    }
    vec sum = sums[0];
    for (int u = 1; u < UNROLL; ++u) sum += sums[u];
    double total = 0;
    for (int l = 0; l < LANES; ++l) total += sum[l];
    totals[row * pieces + piece] = total;
}

extern "C" void norm_rows(long row, const double* totals, float* norms, float eps, long cols, long pieces) {
    double total = 0;
    for (long p = 0; p < pieces; ++p) total += totals[row * pieces + p];
    norms[row] = 1.0f / sqrtf((float)(total / (double)cols) + eps);
}

extern "C" void scale_pieces(long piece, long row, const float* ys, const float* scale, const float* norms, float* out,
                             long all) {
    const float* y = ys + row * all;
    float* o = out + row * all;
    float norm = norms[row];
    long j = piece * PIECE, cols = j + PIECE < all ? j + PIECE : all;
    if ((unsigned long)(o + j) % (4 * LANES) == 0) {
        for (; j + UNROLL * LANES <= cols; j += UNROLL * LANES)
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; ++u)
                stream(o + j + u * LANES, load(y + j + u * LANES) * norm * load(scale + j + u * LANES));
        for (; j + LANES <= cols; j += LANES) stream(o + j, load(y + j) * norm * load(scale + j));
        _mm_sfence();
    }
    for (; j + LANES <= cols; j += LANES) {
        vec v = load(y + j) * norm * load(scale + j);
        memcpy(o + j, &v, sizeof v);
    }
    for (; j < cols; ++j) o[j] = y[j] * norm * scale[j];
}
