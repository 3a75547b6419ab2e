/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    STRIP = 512 | 128 | 2048
    LANES = 16 | 8
launch:
    rows = x.shape[0]
    cols = x.shape[1]
    scan[cdiv(cols, STRIP)](x, out, cols, rows)
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

typedef double doubles __attribute__((vector_size(sizeof(double) * LANES)));

extern "C" void scan(long strip, const float* x, float* out, long cols, long rows) {
    const long first = strip * STRIP;
    const long last = first + STRIP < cols ? first + STRIP : cols;
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        doubles carry = 0 - doubles{};
        for (long at = 0; at < rows; at++) {
            const vec x_here = load(x + at * cols + i, rest...);
            carry += __builtin_convertvector(x_here, doubles);
            const vec running = __builtin_convertvector(carry, vec);
            store(out + at * cols + i, running, rest...);
        }
    };
    long j = first;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
}
