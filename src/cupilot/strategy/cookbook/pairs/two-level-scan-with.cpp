/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    PIECE = 8192 | 2048 | 32768
    LANES = 16 | 8
launch:
    rows = x.shape[0]
    cols = x.shape[1]
    pieces = cdiv(cols, PIECE)
    totals = scratch((rows, pieces), f64)
    piece_totals[rows * pieces](x, totals, cols, pieces)
    piece_carries[rows](totals, pieces)
    scan[rows * pieces](totals, x, out, cols, pieces)
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

// Running sums or products within a vector: every lane together with all before it, or BACK, behind it.
template <bool BACK, int DISTANCE, class V>
static inline V moved(V v, V fill) {
    constexpr int COUNT = sizeof(V) / sizeof(v[0]);
    decltype(v < v) from;
    for (int l = 0; l < COUNT; l++) {
        int source = BACK ? l + DISTANCE : l - DISTANCE;
        from[l] = source < 0 || source >= COUNT ? COUNT : source;
    }
    return __builtin_shuffle(v, fill, from);
}

struct Sums {
    vec lane;
    template <bool BACK, int DISTANCE = 1>
    static vec scanned(vec v) {
        if constexpr (DISTANCE < LANES) return scanned<BACK, DISTANCE * 2>(v + moved<BACK, DISTANCE>(v, vec{}));
        return v;
    }
    template <bool BACK>
    static Sums of(vec v) { return {scanned<BACK>(v)}; }
    vec after(double carry) const { return lane + (real)carry; }
    template <bool BACK>
    vec up_to(double carry) const { return moved<BACK, 1>(lane, vec{}) + (real)carry; }
    template <bool BACK>
    double all() const { return lane[BACK ? 0 : LANES - 1]; }
};

// In double precision, since a product of lanes alone may overflow where the running product does not.
struct Products {
    typedef double half __attribute__((vector_size(sizeof(double) * LANES / 2)));
    typedef real narrow __attribute__((vector_size(sizeof(real) * LANES / 2)));
    half low, high;
    template <bool BACK, int DISTANCE = 1>
    static half scanned(half v) {
        if constexpr (DISTANCE < LANES / 2)
            return scanned<BACK, DISTANCE * 2>(v * moved<BACK, DISTANCE>(v, 1 - half{}));
        return v;
    }
    template <bool BACK>
    static Products of(vec v) {
        narrow parts[2];
        memcpy(parts, &v, sizeof v);
        half low = scanned<BACK>(__builtin_convertvector(parts[0], half));
        half high = scanned<BACK>(__builtin_convertvector(parts[1], half));
        if (BACK) low *= high[0];
        else high *= low[LANES / 2 - 1];
        return {low, high};
    }
    vec after(double carry) const {
        narrow parts[2] = {__builtin_convertvector(low * carry, narrow), __builtin_convertvector(high * carry, narrow)};
        vec v;
        memcpy(&v, parts, sizeof v);
        return v;
    }
    template <bool BACK>
    double all() const { return BACK ? low[0] : high[LANES / 2 - 1]; }
};

extern "C" void piece_totals(long block, const float* x, double* totals, long cols, long pieces) {
    const long row = block / pieces, first = block % pieces * PIECE;
    const long last = first + PIECE < cols ? first + PIECE : cols;
    double total = 0;
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        const vec x_here = load(x + row * cols + i, rest...);
        total += Sums::template of<false>(padded(x_here, 0, rest...)).template all<false>();
    };
    long j = first;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
    totals[block] = total;
}

// Every piece's total becomes what comes before it.
extern "C" void piece_carries(long row, double* totals, long pieces) {
    double carry = 0;
    for (long p = 0; p < pieces; p++) {
        const double here = totals[row * pieces + p];
        totals[row * pieces + p] = carry;
        carry += here;
    }
}

extern "C" void scan(long block, const double* totals, const float* x, float* out, long cols, long pieces) {
    const long row = block / pieces, first = block % pieces * PIECE;
    const long last = first + PIECE < cols ? first + PIECE : cols;
    double carry = totals[block];
    const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
        const vec x_here = load(x + row * cols + i, rest...);
        const Sums here = Sums::template of<false>(padded(x_here, 0, rest...));
        const vec running = here.after(carry);
        carry += here.template all<false>();
        store(out + row * cols + i, running, rest...);
    };
    long j = first;
    for (; j + LANES <= last; j += LANES) each2(j);
    if (j < last) each2(j, last - j);
}
