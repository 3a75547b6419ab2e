/* cupilot 1
One step of heat diffusion. One block is a tile of ROWS x COLS points: three of its rows stay in the first-level cache,
so every point is read from memory once, and the result goes around the caches where the machine can.
tune:
    LANES = 16 | 8 | 4
    ROWS = 8 | 32 | 128
    COLS = 2048 | 512 | 1024 | 4096
where:
    ROWS * COLS <= 131072
    COLS % LANES == 0
launch:
    h, w = u.shape
    diffuse[cdiv(h, ROWS), cdiv(w, COLS)](u, out, h, w, self.alpha)
*/
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

extern "C" void diffuse(long tile_row, long tile_col, const float* u, float* out, long h, long w, float alpha) {
    long top = tile_row * ROWS, bottom = top + ROWS < h ? top + ROWS : h;
    long first = tile_col * COLS, end = first + COLS < w ? first + COLS : w;
    auto point = [&](long i, long j) {
        float up = i > 0 ? u[(i - 1) * w + j] : 0, down = i + 1 < h ? u[(i + 1) * w + j] : 0;
        float left = j > 0 ? u[i * w + j - 1] : 0, right = j + 1 < w ? u[i * w + j + 1] : 0;
        float here = u[i * w + j];
        out[i * w + j] = here + alpha * ((up + down) + (left + right) - 4 * here);
    };
    for (long i = top; i < bottom; i++) {
        const float* row = u + i * w;
        float* to = out + i * w;
        long j = first;
        auto points = [&](long k) {
            vec up = i > 0 ? load(row + k - w) : vec{}, down = i + 1 < h ? load(row + k + w) : vec{};
            vec here = load(row + k);
            return here + alpha * ((up + down) + (load(row + k - 1) + load(row + k + 1)) - 4 * here);
        };
        if (j == 0) point(i, j++);
        for (; j < end && !is_aligned(to + j); j++) point(i, j);
        for (; j + LANES < end + (end < w); j += LANES) stream(to + j, points(j));
        for (; j < end; j++) point(i, j);
    }
#if defined(__SSE__)
    _mm_sfence();
#endif
}
