/* cupilot 1
RMS normalisation over the features. One block is WIDTH neighbouring pixels of one image with all their features. The
first pass adds up the squares and copies the strip to the stack (rows a power of two apart would evict each other from
the caches), fetching AHEAD features in advance because the hardware does not see this pattern; the second multiplies
by one reciprocal root per pixel and writes around the caches.
tune:
    LANES = 16 | 8 | 4
    WIDTH = 256 | 128 | 512 | 1024
    KEEP = 33 | 65 | 129
    AHEAD = 4 | 0 | 2 | 8
where:
    WIDTH * KEEP <= 65536
launch:
    batch, features, height, width = x.shape
    rms_norm[batch, cdiv(height * width, WIDTH)](x, out, features, height * width, self.eps)
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

extern "C" void rms_norm(long image, long strip, const float* x, float* out, long features, long pixels, float eps) {
    long first = strip * WIDTH, width = pixels - first < WIDTH ? pixels - first : WIDTH;
    long whole = width / LANES * LANES;
    x += image * features * pixels + first;
    out += image * features * pixels + first;
    alignas(64) float kept[KEEP][WIDTH];
    alignas(64) float scale[WIDTH] = {};
    for (long f = 0; f < features; f++) {
        const float* from = x + f * pixels;
        float* keep = kept[f < KEEP ? f : KEEP - 1];  // what does not fit is read again
        for (long i = 0; i < whole; i += LANES) {
            if (AHEAD) __builtin_prefetch(from + AHEAD * pixels + i);
            vec v = load(from + i);
            store(keep + i, v);
            store(scale + i, load(scale + i) + v * v);
        }
        for (long i = whole; i < width; i++) scale[i] += from[i] * from[i];
        for (long i = whole; i < width; i++) keep[i] = from[i];
    }
    for (long i = 0; i < width; i++) scale[i] = 1 / std::sqrt(scale[i] / features + eps);
    for (long f = 0; f < features; f++) {
        const float* from = f < KEEP - 1 ? kept[f] : x + f * pixels;
        float* to = out + f * pixels;
        long i = 0;
        if (is_aligned(to))
            for (; i < whole; i += LANES) stream(to + i, load(from + i) * load(scale + i));
        for (; i < width; i++) to[i] = from[i] * scale[i];
    }
#if defined(__SSE__)
    _mm_sfence();
#endif
}
