/* cupilot 1
 One launch: computes every element by itself.
tune:
    BLOCK = 65536 | 16384
    LANES = 16 | 8
    AHEAD = 1024 | 512 | 2048
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

extern "C" void map(long block, const float* x, float* out, long n) {
    const long last = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        __builtin_prefetch(x + i + AHEAD);
        const vec x_here = load(x + i, rest...);
        store(out + i, x_here < 0.0f ? splat(0.0f) : x_here, rest...);
    };
    long j = block * BLOCK;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
}
