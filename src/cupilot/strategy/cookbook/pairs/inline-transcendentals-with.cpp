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

// The smaller, the larger of a vector and a number; NaN stays NaN.
static inline vec at_most(vec x, real high) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_minps512_mask(splat(high), x, x, -1, 4);
#else
    return x > high ? splat(high) : x;
#endif
}

static inline vec at_least(vec x, real low) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_maxps512_mask(splat(low), x, x, -1, 4);
#else
    return x < low ? splat(low) : x;
#endif
}

// The error function as a quotient of polynomials, good to 6 units of 2^-24; it reaches 1 by itself.
static inline vec fast_erf(vec x) {
    const vec t = x * 1.41421356f;
    const vec s = at_most(t * t, 32.0f);
    vec p = s * 5.8724719309566353e-08f + 1.702369627309963e-05f;
    vec q = s * 1.5725821640444337e-06f + 1.0111387382494286e-04f;
    p = p * s + 4.703505546785891e-04f;
    q = q * s + 2.5893310084939003e-03f;
    p = p * s + 1.2739738449454308e-02f;
    q = q * s + 3.919981047511101e-02f;
    p = p * s + 9.321905672550201e-02f;
    q = q * s + 3.42396080493927e-01f;
    p = p * s + 1.0798437595367432f;
    q = q * s + 1.3533834218978882f;
    return at_least(at_most(t * (p / q), 1.0f), -1.0f);
}

extern "C" void map(long block, const float* x, float* out, long n) {
    const long last = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        const vec x_here = load(x + i, rest...);
        store(out + i, x_here * 0.5f * (1.0f + fast_erf(x_here * 0.707106781f)), rest...);
    };
    long j = block * BLOCK;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
}
