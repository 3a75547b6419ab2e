/* cupilot 1
 One launch: computes every element by itself.
tune:
    BLOCK = 65536 | 16384
    LANES = 16 | 8
launch:
    outer = x.shape[0] * x.shape[1]
    rows = out.shape[2]
    cols = out.shape[3]
    height = x.shape[2]
    width = x.shape[3]
    share = max(1, BLOCK // max(1, cols))
    pool[cdiv(outer * rows, share)](x, out, cols, outer, rows, share, width, height)
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

// NaN wins. The machine's own maximum returns its second operand where one of them is NaN.
template <class V> static inline V larger(V a, V b) {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (sizeof(V) == 64 && sizeof(real) == 4) {
        const V found = __builtin_ia32_maxps512_mask(a, b, b, -1, 4);
        return a != a ? a : found;
    }
#endif
    return (a > b) | (a != a) ? a : b;
}
template <class V> static inline V smaller(V a, V b) {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (sizeof(V) == 64 && sizeof(real) == 4) {
        const V found = __builtin_ia32_minps512_mask(a, b, b, -1, 4);
        return a != a ? a : found;
    }
#endif
    return (a < b) | (a != a) ? a : b;
}

extern "C" void pool(long block, const float* x, float* out, long cols, long outer, long rows, long share, long width, long height) {
    const long last = (block + 1) * share < outer * rows ? (block + 1) * share : outer * rows;
    for (long item = block * share; item < last; item++) {
        const long a = item / (rows);
        const long b = item % rows;
        const long begin = 1 < cols ? 1 : cols;
        const long inside = (width + 1 - 3 + 0) / 1;
        const long end = inside < begin ? begin : inside < cols ? inside : cols;
        for (long j = 0; j < begin; j++) {
            real found = -(real)__builtin_inf();
            for (long a2 = 0; a2 < 4; a2++) {
                const long y = b - 1 + a2;
                if (y < 0 || y >= height) continue;
                for (long b2 = 0; b2 < 4; b2++) {
                    const long x3 = j - 1 + b2;
                    if (x3 < 0 || x3 >= width) continue;
                    found = larger(x[a * height * width + y * width + x3], found);
                }
            }
            out[a * rows * cols + b * cols + j] = found;
        }
        for (long j = end; j < cols; j++) {
            real found = -(real)__builtin_inf();
            for (long a3 = 0; a3 < 4; a3++) {
                const long y2 = b - 1 + a3;
                if (y2 < 0 || y2 >= height) continue;
                for (long b3 = 0; b3 < 4; b3++) {
                    const long x4 = j - 1 + b3;
                    if (x4 < 0 || x4 >= width) continue;
                    found = larger(x[a * height * width + y2 * width + x4], found);
                }
            }
            out[a * rows * cols + b * cols + j] = found;
        }
        const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
            vec found = splat(-(real)__builtin_inf());
            for (long a4 = 0; a4 < 4; a4++) {
                const long y3 = b - 1 + a4;
                if (y3 < 0 || y3 >= height) continue;
                for (long t = 0; t < 4; t++) {
                    const long x2 = i - 1 + t;
                    const vec x_here = load(x + a * height * width + y3 * width + x2, rest...);
                    found = larger(x_here, found);
                }
            }
            store(out + a * rows * cols + b * cols + i, found, rest...);
        };
        long j = begin;
        for (; j + LANES <= end; j += LANES) each2(j);
        if (j < end) each2(j, end - j);
    }
}
