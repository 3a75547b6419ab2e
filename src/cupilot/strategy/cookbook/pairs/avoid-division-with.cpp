/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    LANES = 16 | 8
    TILE = 256 | 512 | 1024 | 2048
launch:
    outer = x.shape[0]
    rows = x.shape[1]
    cols = x.shape[2] * x.shape[3]
    reduce[outer, cdiv(cols, TILE)](x, out, cols, rows, outer)
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

static inline vec root(vec x) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#else
    real a[LANES];
    memcpy(a, &x, sizeof a);
    for (int l = 0; l < LANES; l++) a[l] = __builtin_sqrt(a[l]);
    memcpy(&x, a, sizeof a);
    return x;
#endif
}

// Two factors that together divide by b: neither overflows or loses bits where the quotient does not.
template <class V>
static inline V rescale(V b) {
    const V size = b < 0 ? -b : b + 0;
    return size < (real)7.9e-31 ? V{} + (real)18446744073709551616.0
                                : size > (real)1.2e30 ? V{} + (real)5.421010862427522e-20 : V{} + 1;
}
template <class V>
static inline V inverse(V b) { return 1 / (b * rescale(b)); }

extern "C" void reduce(long block, long tile, const float* x, float* out, long cols, long rows, long outer) {
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
                const vec x_here = load(x + block * rows * cols + k * cols + (first + j), rest...);
                part[j / LANES] = part[j / LANES] + x_here * x_here;
            };
            long v = 0;
            for (; v + LANES <= width; v += LANES) each2(v);
            if (v < width) each2(v, width - v);
        }
        for (long l = 0; l < TILE; l++) total2[l] += ((const real*)part)[l]; for (auto& p : part) p = splat(0);
    }
    real mean1[TILE];
    for (long l = 0; l < TILE; l++) mean1[l] = (real)(total2[l] / (rows));
    real rescale1[TILE];
    real inverse1[TILE];
    const auto each3 = [&](long j, auto... rest) __attribute__((always_inline)) {
        const vec sqrt1 = root(load(mean1 + j) + 1e-05f);
        store(rescale1 + j, rescale(sqrt1));
        store(inverse1 + j, inverse(sqrt1));
    };
    long v2 = 0;
    for (; v2 + LANES <= width; v2 += LANES) each3(v2);
    if (v2 < width) each3(v2, width - v2);
    for (long k2 = 0; k2 < rows; k2++) {
        const auto each4 = [&](long j, auto... rest) __attribute__((always_inline)) {
            const vec x_here2 = load(x + block * rows * cols + k2 * cols + (first + j), rest...);
            store(out + block * rows * cols + k2 * cols + (first + j), x_here2 * load(rescale1 + j) * load(inverse1 + j), rest...);
        };
        long v3 = 0;
        for (; v3 + LANES <= width; v3 += LANES) each4(v3);
        if (v3 < width) each4(v3, width - v3);
    }
}
