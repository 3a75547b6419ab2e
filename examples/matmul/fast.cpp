/* cupilot 1
Matrix product, blocked for registers and caches. The first launch packs b into panels of two vectors' width; a block of
the second packs its rows of a, KC columns at a time, and multiplies every strip of MR rows (in the first-level cache)
with every panel of NC columns (in the second-level cache): 2 * MR accumulators stay in registers.
tune:
    LANES = 16 | 8 | 4
    MR = 8 | 12 | 6 | 14
    MC = 8 | 16 | 4
    KC = 256 | 384 | 128 | 512
    NC = 1024 | 512 | 256
where:
    MR * MC * KC <= 65536
    KC * NC <= 262144
    NC % (2 * LANES) == 0
launch:
    m, k = a.shape
    k, n = b.shape
    panels = scratch((cdiv(n, 2 * LANES), k, 2 * LANES), f32)
    pack[cdiv(n, 2 * LANES)](b, panels, k, n)
    multiply[cdiv(m, MR * MC), cdiv(n, NC)](a, panels, out, m, n, k)
*/
#include <algorithm>
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

constexpr int NR = 2 * LANES;

// Panel p holds columns p * NR and on, row after row; columns past the end are zero.
extern "C" void pack(long p, const float* b, float* panels, long k, long n) {
    long columns = std::min<long>(NR, n - p * NR);
    b += p * NR;
    panels += p * k * NR;
    for (long l = 0; l < k; l++)
        for (long j = 0; j < NR; j++) panels[l * NR + j] = j < columns ? b[l * n + j] : 0.0f;
}

// A tile of MR x NR of the result: strip[kc][MR] times panel[kc][NR], added to what is there unless it is the first.
static void multiply_tile(const float* strip, const float* panel, float* c, long ldc, long kc, bool is_first) {
    vec acc[MR][2] = {};
    for (long l = 0; l < kc; l++, strip += MR, panel += NR) {
        vec b0 = load(panel), b1 = load(panel + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < MR; i++) acc[i][0] += strip[i] * b0, acc[i][1] += strip[i] * b1;
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++, c += ldc) {
        store(c, is_first ? acc[i][0] : load(c) + acc[i][0]);
        store(c + LANES, is_first ? acc[i][1] : load(c + LANES) + acc[i][1]);
    }
}

extern "C" void multiply(long block_row, long block_col, const float* a, const float* panels, float* out, long m,
                         long n, long k) {
    alignas(64) float strips[MC * MR * KC];
    long top = block_row * MC * MR, rows = std::min<long>(MC * MR, m - top);
    long left = block_col * NC, right = std::min<long>(left + NC, n);
    for (long k0 = 0; k0 < k; k0 += KC) {
        long kc = std::min<long>(KC, k - k0);
        for (long s = 0; s < rows; s += MR)  // rows past the end are zero
            for (long i = 0; i < MR; i++)
                for (long l = 0; l < kc; l++)
                    strips[s * kc + l * MR + i] = s + i < rows ? a[(top + s + i) * k + k0 + l] : 0.0f;
        for (long s = 0; s < rows; s += MR)
            for (long j = left; j < right; j += NR) {
                const float* panel = panels + (j * k + k0 * NR);
                float* c = out + (top + s) * n + j;
                if (s + MR <= rows && j + NR <= n) {
                    multiply_tile(strips + s * kc, panel, c, n, kc, k0 == 0);
                    continue;
                }
                alignas(64) float tile[MR * NR];
                multiply_tile(strips + s * kc, panel, tile, NR, kc, true);
                for (long i = 0; i < std::min<long>(MR, rows - s); i++)
                    for (long l = 0; l < std::min<long>(NR, n - j); l++)
                        c[i * n + l] = (k0 == 0 ? 0.0f : c[i * n + l]) + tile[i * NR + l];
            }
    }
}
