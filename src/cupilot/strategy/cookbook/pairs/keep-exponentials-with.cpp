/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    BLOCK = 65536 | 16384
    CHUNK = 8192 | 4096 | 1024
    KEEP = 131072 | 32768
    UNROLL = 4 | 2 | 8
    LANES = 16 | 8
launch:
    rows = x.shape[0]
    cols = x.shape[1]
    share = max(1, BLOCK // max(1, cols))
    reduce[cdiv(rows, share)](x, out, cols, rows, share)
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

static inline real highest(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v = larger(v, halved(v, half));
    return v[0];
}

static inline real lowest(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v = smaller(v, halved(v, half));
    return v[0];
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

// e to the power of x, to about 1 ulp over the whole range, denormal results included; NaN stays NaN.
static inline vec fast_exp(vec x) {
    x = at_least(at_most(x, 89.0f), -104.0f);  // from 88.73 on: infinity, from -104 down: zero
    const vec shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the low bits become round(x / ln 2)
    const vec n = shifted - 12582912.0f;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
#else
    const ivec k = __builtin_bit_cast(ivec, shifted) - 0x4B400000, half = k >> 1;
    const vec one = __builtin_bit_cast(vec, (half + 127) << 23), two = __builtin_bit_cast(vec, (k - half + 127) << 23);
    return p * one * two;
#endif
}

// The maximum of everything added so far, and the sum of the exponentials below it.
struct Peak {
    real high = -(real)__builtin_inf();
    double sum = 0;

    void add(real h, double s) {
        if (h > high || h != h) {
            sum = (high == -(real)__builtin_inf() ? 0 * sum : sum * std::exp((double)high - h)) + s;
            high = h;
        } else {
            sum += high == h ? s : s * std::exp((double)h - high);
        }
    }
};

// The sum of exponentials knows of NaN; the maximum need not.
template <class V> static inline V above(V a, V b) { return a > b ? a : b; }

// What to subtract before exponentials: with nothing but -inf they are all zero.
static inline real below(real high) { return high == -(real)__builtin_inf() ? 0 : high; }

extern "C" void reduce(long block, const float* x, float* out, long cols, long rows, long share) {
    const long last = (block + 1) * share < rows ? (block + 1) * share : rows;
    for (long item = block * share; item < last; item++) {
        // The last chunk is for the rest of a long row.
        alignas(64) real kept[KEEP + CHUNK], highs[KEEP / CHUNK + 1];
        Peak peak;
        for (long start = 0; start < cols; start += CHUNK) {
            const long end = start + CHUNK < cols ? start + CHUNK : cols;
            vec part[UNROLL];
            for (auto& p : part) p = splat(-(real)__builtin_inf());
            const auto each2 = [&](long i, int u, auto... rest) __attribute__((always_inline)) {
                const vec x_here = load(x + item * cols + i, rest...);
                part[u] = above(padded(x_here, -(real)__builtin_inf(), rest...), part[u]);
            };
            long j = start;
            for (; j + UNROLL * LANES <= end; j += UNROLL * LANES) {
#pragma GCC unroll 16
                for (int u = 0; u < UNROLL; u++) each2(j + u * LANES, u);
            }
            for (; j + LANES <= end; j += LANES) each2(j, 0);
            if (j < end) each2(j, 0, end - j);
            for (int u = 1; u < UNROLL; u++) part[0] = larger(part[u], part[0]);
            const real found = highest(part[0]);
            const real here = below(found);
            const long slot = start < KEEP ? start : KEEP;
            highs[slot / CHUNK] = found;
            vec part2[UNROLL];
            for (auto& p : part2) p = splat(0);
            const auto each3 = [&](long i2, int u, auto... rest) __attribute__((always_inline)) {
                const vec x_here2 = load(x + item * cols + i2, rest...);
                const vec power = fast_exp(x_here2 - here);
                store(kept + slot + (i2 - start), power, rest...);
                part2[u] = part2[u] + padded(power, 0, rest...);
            };
            long j2 = start;
            for (; j2 + UNROLL * LANES <= end; j2 += UNROLL * LANES) {
#pragma GCC unroll 16
                for (int u = 0; u < UNROLL; u++) each3(j2 + u * LANES, u);
            }
            for (; j2 + LANES <= end; j2 += LANES) each3(j2, 0);
            if (j2 < end) each3(j2, 0, end - j2);
            for (int u = 1; u < UNROLL; u++) part2[0] = part2[0] + part2[u];
            const real found2 = total(part2[0]);
            peak.add(found, found2);
        }
        const real max1 = peak.high;
        const real sum1 = (real)peak.sum;
        const long held = cols < KEEP ? cols : KEEP;
        for (long start2 = 0; start2 < held; start2 += CHUNK) {
            const long end2 = start2 + CHUNK < held ? start2 + CHUNK : held;
            const real factor = std::exp(highs[start2 / CHUNK] - max1);
            const auto each4 = [&](long i3, auto... rest) __attribute__((always_inline)) {
                store(out + item * cols + i3, load(kept + i3, rest...) * factor / sum1, rest...);
            };
            long j3 = start2;
            for (; j3 + LANES <= end2; j3 += LANES) each4(j3);
            if (j3 < end2) each4(j3, end2 - j3);
        }
        if (held < cols) {
            const auto each5 = [&](long i4, auto... rest) __attribute__((always_inline)) {
                const vec x_here3 = load(x + item * cols + i4, rest...);
                store(out + item * cols + i4, fast_exp(x_here3 - max1) / sum1, rest...);
            };
            long j4 = held;
            for (; j4 + LANES <= cols; j4 += LANES) each5(j4);
            if (j4 < cols) each5(j4, cols - j4);
        }
    }
}
