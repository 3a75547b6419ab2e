/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    LANES = 16 | 8
    TILE = 256 | 512 | 1024 | 2048
launch:
    rows = A.shape[0]
    cols = B.shape[1]
    reduce[cdiv(cols, TILE)](A, B, out, cols, rows)
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

// Writes around the caches where machine and address allow it, so that the line is not read first.
template <class T>
static inline void stream(T* p, vec v) {
#if defined(__x86_64__) && !defined(__clang__)
    if constexpr (sizeof(T) == sizeof(real)) {
        if ((unsigned long)p % sizeof v != 0) return store(p, v);
#if defined(__AVX512F__)
        typedef long long wide __attribute__((vector_size(64)));
        if constexpr (sizeof v == 64) return __builtin_ia32_movntdq512((wide*)p, *(const wide*)&v);
#endif
#if defined(__AVX__)
        typedef long long half __attribute__((vector_size(32)));
        if constexpr (sizeof v == 32) return __builtin_ia32_movntdq256((half*)p, *(const half*)&v);
#endif
    }
#endif
    store(p, v);
}
template <class T>
static inline void stream(T* p, vec v, long n) { store(p, v, n); }

// How many of the n elements come before the first whole aligned vector.
template <class T>
static inline long unaligned(const T* p, long n) {
    long ahead = (sizeof(T) * LANES - (unsigned long)p % (sizeof(T) * LANES)) / sizeof(T) % LANES;
    return ahead < n ? ahead : n;
}

static inline void drain() {
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

extern "C" void reduce(long tile, const float* A, const float* B, float* out, long cols, long rows) {
    const long first = tile * TILE;
    const long width = cols - first < TILE ? cols - first : TILE;
    vec part[TILE / LANES];
    for (auto& p : part) p = splat(0);
    double total2[TILE];
    for (double& t : total2) t = 0;
    for (long start = 0; start < rows; start += 256) {
        const long end = start + 256 < rows ? start + 256 : rows;
        for (long k = start; k < end; k++) {
            const auto each2 = [&](long j, auto... rest) __attribute__((always_inline)) {
                const vec B_here = load(B + k * cols + (first + j), rest...);
                part[j / LANES] = part[j / LANES] + (B_here - B_here == 0.0f ? splat(0.0f) : splat(1.0f));
            };
            long v = 0;
            for (; v + LANES <= width; v += LANES) each2(v);
            if (v < width) each2(v, width - v);
        }
        for (long l = 0; l < TILE; l++) total2[l] += ((const real*)part)[l]; for (auto& p : part) p = splat(0);
    }
    real sum1[TILE];
    for (long l = 0; l < TILE; l++) sum1[l] = (real)total2[l];
    for (long k2 = 0; k2 < rows; k2++) {
        const auto each3 = [&](long j, auto... rest) __attribute__((always_inline)) {
            const vec B_here2 = load(B + k2 * cols + (first + j), rest...);
            stream(out + k2 * cols + (first + j), load(sum1 + j) - (B_here2 - B_here2 == 0.0f ? splat(0.0f) : splat(1.0f)) > 0.0f ? splat(__builtin_nanf("")) : A[k2] * B_here2, rest...);
        };
        long v2 = 0;
        for (; v2 + LANES <= width; v2 += LANES) each3(v2);
        if (v2 < width) each3(v2, width - v2);
    }
    drain();
}
