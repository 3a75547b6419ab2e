/* cupilot 1
Layer normalisation of few long rows in three launches, so that every core has work: the moments of each chunk of CHUNK
elements around the chunk's own mean (in two passes over the first-level cache, so nothing cancels), their exact merge,
the normalisation. The mean is kept as a sum of two floats.
tune:
    LANES = 16 | 8 | 4
    CHUNK = 16384 | 4096 | 8192 | 32768
launch:
    batch, channels, height, width = x.shape
    n = weight.numel
    chunks = cdiv(n, CHUNK)
    moments = scratch((batch, chunks, 3), f32)
    stats = scratch((batch, 3), f32)
    chunk_moments[batch, chunks](x, moments, n, chunks)
    merge[batch](moments, stats, n, chunks, self.eps)
    normalise[batch, chunks](x, weight, bias, stats, out, n)
*/
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

// Writes around the caches where the machine can, so that the line is not read first; p must be aligned for it.
static inline void stream(float* p, vec v) {
#if defined(__AVX512F__) && LANES == 16
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__) && LANES == 8
    _mm256_stream_ps(p, (__m256)v);
#else
    store(p, v);
#endif
}

static inline bool is_aligned(const float* p) { return (unsigned long)p % sizeof(vec) == 0; }

static inline float total(vec v) {
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += v[l];
    return sum;
}

static inline long chunk_size(long chunk, long n) { return n - chunk * CHUNK < CHUNK ? n - chunk * CHUNK : CHUNK; }

// Per chunk: a float near its mean, the sum of the deviations from that float, and the sum of their squares.
extern "C" void chunk_moments(long row, long chunk, const float* x, float* moments, long n, long chunks) {
    x += row * n + chunk * CHUNK;
    moments += 3 * (row * chunks + chunk);
    long size = chunk_size(chunk, n), whole = size / (2 * LANES) * (2 * LANES);
    vec a = {}, b = {};
    for (long i = 0; i < whole; i += 2 * LANES) a += load(x + i), b += load(x + i + LANES);
    float sum = total(a + b);
    for (long i = whole; i < size; i++) sum += x[i];
    float centre = sum / size;

    vec d0 = {}, d1 = {}, q0 = {}, q1 = {};
    for (long i = 0; i < whole; i += 2 * LANES) {
        vec u = load(x + i) - centre, v = load(x + i + LANES) - centre;
        d0 += u, q0 += u * u;
        d1 += v, q1 += v * v;
    }
    float deviations = total(d0 + d1), squares = total(q0 + q1);
    for (long i = whole; i < size; i++) {
        float d = x[i] - centre;
        deviations += d, squares += d * d;
    }
    moments[0] = centre, moments[1] = deviations, moments[2] = squares;
}

extern "C" void merge(long row, const float* moments, float* stats, long n, long chunks, float eps) {
    double count = 0, mean = 0, squares = 0;
    moments += 3 * row * chunks;
    for (long c = 0; c < chunks; c++, moments += 3) {
        double size = chunk_size(c, n), shift = moments[1] / size, delta = moments[0] + shift - mean;
        squares += moments[2] - shift * moments[1] + delta * delta * count * size / (count + size);
        count += size;
        mean += delta * size / count;
    }
    stats += 3 * row;
    stats[0] = mean;
    stats[1] = mean - stats[0];
    stats[2] = 1 / std::sqrt(squares / n + eps);
}

extern "C" void normalise(long row, long chunk, const float* x, const float* weight, const float* bias,
                          const float* stats, float* out, long n) {
    long begin = chunk * CHUNK, size = chunk_size(chunk, n), i = 0;
    x += row * n + begin, out += row * n + begin, weight += begin, bias += begin, stats += 3 * row;
    float mean = stats[0], rest = stats[1], scale = stats[2];
    if (is_aligned(out))
        for (; i + LANES <= size; i += LANES)
            stream(out + i, (load(x + i) - mean - rest) * scale * load(weight + i) + load(bias + i));
    for (; i < size; i++) out[i] = (x[i] - mean - rest) * scale * weight[i] + bias[i];
#if defined(__SSE__)
    _mm_sfence();
#endif
}
