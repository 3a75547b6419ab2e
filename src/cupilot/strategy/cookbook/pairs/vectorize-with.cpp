/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    BLOCK = 65536 | 16384
    CHUNK = 4096 | 8192 | 1024
    LANES = 16 | 8
launch:
    rows = x.shape[0]
    cols = x.shape[1] * x.shape[2] * x.shape[3]
    share = max(1, BLOCK // max(1, cols))
    reduce[cdiv(rows, share)](x, norm_weight, norm_bias, out, cols, rows, share)
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

template <class T>
static inline void store(T* p, vec v) {
    typedef T stored __attribute__((vector_size(sizeof(T) * LANES)));
    stored w = __builtin_convertvector(v, stored);
    memcpy(p, &w, sizeof w);
}

// At most n elements.
template <class T>
static inline void store(T* p, vec v, long n) {
    if (n >= LANES) return store(p, v);
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    if constexpr (sizeof(T) == 4 && (T)0.5 != 0)
        return __builtin_ia32_storeups512_mask((float*)p, v, (1 << n) - 1);
#endif
    for (int l = 0; l < n; l++) p[l] = (T)v[l];
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

extern "C" void reduce(long block, const float* x, const float* norm_weight, const float* norm_bias, float* out, long cols, long rows, long share) {
    const long last = (block + 1) * share < rows ? (block + 1) * share : rows;
    for (long item = block * share; item < last; item++) {
        double total2 = 0;
        for (long start = 0; start < cols; start += CHUNK) {
            const long end = start + CHUNK < cols ? start + CHUNK : cols;
            vec part = splat(0);
            const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
                const vec x_here = load(x + item * cols + i, rest...);
                part = part + padded(x_here, 0, rest...);
            };
            long j = start;
            for (; j + LANES <= end; j += LANES) each2(j);
            if (j < end) each2(j, end - j);
            const real found = total(part);
            total2 = total2 + found;
        }
        const real mean1 = (real)(total2 / (cols));
        double total3 = 0;
        for (long start2 = 0; start2 < cols; start2 += CHUNK) {
            const long end2 = start2 + CHUNK < cols ? start2 + CHUNK : cols;
            vec part2 = splat(0);
            const auto each3 = [&](long i2, auto... rest) __attribute__((always_inline)) {
                const vec x_here2 = load(x + item * cols + i2, rest...);
                const vec sub1 = x_here2 - mean1;
                part2 = part2 + padded(sub1 * sub1, 0, rest...);
            };
            long j2 = start2;
            for (; j2 + LANES <= end2; j2 += LANES) each3(j2);
            if (j2 < end2) each3(j2, end2 - j2);
            const real found2 = total(part2);
            total3 = total3 + found2;
        }
        const real mean12 = (real)(total3 / (cols));
        const real rsqrt1 = (1.0f / std::sqrt(mean12 + 1e-05f));
        const auto each4 = [&](long i3, auto... rest) __attribute__((always_inline)) {
            const vec x_here3 = load(x + item * cols + i3, rest...);
            const vec norm_weight_here = load(norm_weight + i3, rest...);
            const vec norm_bias_here = load(norm_bias + i3, rest...);
            store(out + item * cols + i3, (x_here3 - mean1) * rsqrt1 * norm_weight_here + norm_bias_here, rest...);
        };
        long j3 = 0;
        for (; j3 + LANES <= cols; j3 += LANES) each4(j3);
        if (j3 < cols) each4(j3, cols - j3);
    }
}
