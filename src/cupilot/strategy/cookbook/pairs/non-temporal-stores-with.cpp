/* cupilot 1
 One launch: computes every element by itself.
tune:
    BLOCK = 65536 | 16384
    LANES = 16 | 8
launch:
    n = x.shape[0] * x.shape[1]
    map[cdiv(n, BLOCK)](x, out, n)
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

extern "C" void map(long block, const float* x, float* out, long n) {
    const long last = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        const vec x_here = load(x + i, rest...);
        stream(out + i, x_here < 0.0f ? splat(0.0f) : x_here, rest...);
    };
    long j = block * BLOCK;
    const long ahead = unaligned(out + block * BLOCK, last - j);
    if (ahead) each2(j, ahead);
    j += ahead;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
    drain();
}
