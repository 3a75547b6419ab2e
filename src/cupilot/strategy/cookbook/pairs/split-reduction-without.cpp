/* cupilot 1
 One launch: reduces.
tune:
    BLOCK = 65536 | 16384
    CHUNK = 4096 | 8192 | 1024
    UNROLL = 4 | 2 | 8
    LANES = 16 | 8
launch:
    rows = A.shape[0]
    cols = A.shape[1]
    share = max(1, BLOCK // max(1, cols))
    reduce[cdiv(rows, share)](A, B, out, cols, rows, share)
*/
#include <cmath>
#include <cstring>

typedef float real;
typedef int whole;

typedef real vec __attribute__((vector_size(sizeof(real) * LANES)));
typedef whole ivec __attribute__((vector_size(sizeof(real) * LANES)));

static inline vec splat(real value) { return value - vec{}; }

static inline vec as_real(ivec k) { return __builtin_convertvector(k, vec); }

static inline ivec lanes() {
    ivec lane;
    for (int l = 0; l < LANES; l++) lane[l] = l;
    return lane;
}

template <class T>
static inline vec load(const T* p) {
    typedef T stored __attribute__((vector_size(sizeof(T) * LANES)));
    stored v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vec);
}

// At most n elements; the lanes behind them are zero.
template <class T>
static inline vec load(const T* p, long n) {
    if (n >= LANES) return load(p);
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    if constexpr (sizeof(T) == 4 && (T)0.5 != 0)
        return __builtin_ia32_loadups512_mask((const float*)p, vec{}, (1 << n) - 1);
#endif
    vec v = {};
    for (int l = 0; l < n; l++) v[l] = (real)p[l];
    return v;
}

// What counts of a vector: all of it, or the first n elements and `rest` behind them.
static inline vec padded(vec v, real) { return v; }
static inline vec padded(vec v, real rest, long n) {
    return lanes() < (whole)(n < LANES ? n : LANES) ? v : splat(rest);
}

// The lanes, the upper half of the first 2 * half under the lower.
static inline vec halved(vec v, int half) {
#if defined(__clang__)
    vec w = v;
    for (int l = 0; l < half; l++) w[l] = v[l + half];
    return w;
#else
    return __builtin_shuffle(v, lanes() ^ half);
#endif
}

static inline real total(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v += halved(v, half);
    return v[0];
}

static inline real product(vec v) {
    for (int l = 1; l < LANES; l++) v[0] *= v[l];
    return v[0];
}

extern "C" void reduce(long block, const float* A, const float* B, float* out, long cols, long rows, long share) {
    const long last = (block + 1) * share < rows ? (block + 1) * share : rows;
    for (long item = block * share; item < last; item++) {
        double total2 = 0;
        for (long start = 0; start < cols; start += CHUNK) {
            const long end = start + CHUNK < cols ? start + CHUNK : cols;
            vec part[UNROLL];
            for (auto& p : part) p = splat(0);
            const auto each2 = [&](long i, int u, auto... rest) __attribute__((always_inline)) {
                const vec A_here = load(A + item * cols + i, rest...);
                const vec B_here = load(B + i, rest...);
                part[u] = part[u] + padded(A_here * B_here, 0, rest...);
            };
            long j = start;
            for (; j + UNROLL * LANES <= end; j += UNROLL * LANES) {
#pragma GCC unroll 16
                for (int u = 0; u < UNROLL; u++) each2(j + u * LANES, u);
            }
            for (; j + LANES <= end; j += LANES) each2(j, 0);
            if (j < end) each2(j, 0, end - j);
            for (int u = 1; u < UNROLL; u++) part[0] = part[0] + part[u];
            const real found = total(part[0]);
            total2 = total2 + found;
        }
        const real sum1 = (real)total2;
        out[item] = sum1;
    }
}
