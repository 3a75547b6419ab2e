/* cupilot 1
 One launch: computes every element by itself.
tune:
    BLOCK = 65536 | 16384
    STRIP = 256 | 64 | 1024
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
        real line[(STRIP - 1) * 1 + 4 + LANES];
        for (long first = 0; first < cols; first += STRIP) {
            const long last = first + STRIP < cols ? first + STRIP : cols;
            const long origin = first * 1 - 1, span = (last - first - 1) * 1 + 1;
            const long begin = origin < 0 ? 0 : origin;
            const long end = origin + span + 3 < width ? origin + span + 3 : width;
            for (long l = 0; l < begin - origin; l++) line[l] = -(real)__builtin_inf();
            for (long l = end - origin; l < span + 3 + LANES; l++) line[l] = -(real)__builtin_inf();
            if (b - 1 + 0 >= 0 && b - 1 + 0 + 3 < height) {
                const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
                    vec found = splat(-(real)__builtin_inf());
                    for (long a2 = 0; a2 < 4; a2++) {
                        const long y = b - 1 + a2;
                        const vec x_here = load(x + a * height * width + y * width + i, rest...);
                        found = larger(x_here, found);
                    }
                    store(line + (i - origin), found, rest...);
                };
                long j = begin;
                for (; j + LANES <= end; j += LANES) each2(j);
                if (j < end) each2(j, end - j);
            }
            else {
                const auto each3 = [&](long i2, auto... rest) __attribute__((always_inline)) {
                    vec found = splat(-(real)__builtin_inf());
                    for (long a3 = 0; a3 < 4; a3++) {
                        const long y2 = b - 1 + a3;
                        if (y2 < 0 || y2 >= height) continue;
                        const vec x_here2 = load(x + a * height * width + y2 * width + i2, rest...);
                        found = larger(x_here2, found);
                    }
                    store(line + (i2 - origin), found, rest...);
                };
                long j2 = begin;
                for (; j2 + LANES <= end; j2 += LANES) each3(j2);
                if (j2 < end) each3(j2, end - j2);
            }
            const auto each4 = [&](long i3, auto... rest) __attribute__((always_inline)) {
                vec found = load(line + (i3 - first));
                for (long t = 1; t < 4; t++) found = larger(load(line + (i3 - first) + t), found);
                store(out + a * rows * cols + b * cols + i3, found, rest...);
            };
            long j3 = first;
            for (; j3 + LANES <= last; j3 += LANES) each4(j3);
            if (j3 < last) each4(j3, last - j3);
        }
    }
}
