/* cupilot 1
 2 launches: reduces; computes every element by itself.
tune:
    LANES = 16 | 8
    COLS = 3 | 4 | 2 | 5 | 1
    AREA = 24 | 28 | 20 | 12 | 16 | 8
    BLOCK = 65536 | 16384
launch:
    m = A.shape[0]
    k = A.shape[1]
    n = B.shape[1]
    kept5 = scratch((m, n), f32)
    pieces = cdiv(A.numel, 65536)
    spoiled = scratch((pieces,), f32)
    check[pieces](A, spoiled, A.numel)
    pieces2 = cdiv(B.numel, 65536)
    spoiled2 = scratch((pieces2,), f32)
    check2[pieces2](B, spoiled2, B.numel)
    multiply[cdiv(m, AREA // COLS), cdiv(n, COLS * LANES)](A, B, spoiled, spoiled2, kept5, m, n, k, pieces, pieces2)
    share = max(1, BLOCK // max(1, n))
    map[cdiv(m, share)](kept5, out, n, m, share)
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

constexpr int ROWS = AREA / COLS, WIDTH = COLS * LANES;  // of a tile

// What there is of a tile at the edges. Whole tiles do without it.
struct Part {
    long rows, cols;
    long row(long i) const { return i < rows ? i : rows - 1; }
    long lanes_at(long column) const { return cols < column ? 0 : cols - column < LANES ? cols - column : LANES; }
    bool has(long i, long column) const { return i < rows && column < cols; }
};
static inline long row_of(long i) { return i; }
static inline long row_of(long i, Part part) { return part.row(i); }

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

extern "C" void check(long block, const float* x, real* spoiled, long count) {
    const long last = (block + 1) * 65536 < count ? (block + 1) * 65536 : count;
    ivec bad = {};
    for (long i = block * 65536; i < last; i += LANES) {
        const vec found = i + LANES <= last ? load(x + i) : load(x + i, last - i);
        bad |= found - found != vec{};
    }
    spoiled[block] = 0;
    for (int l = 0; l < LANES; l++) if (bad[l]) spoiled[block] = 1;
}

extern "C" void check2(long block, const float* x, real* spoiled2, long count) {
    const long last = (block + 1) * 65536 < count ? (block + 1) * 65536 : count;
    ivec bad = {};
    for (long i = block * 65536; i < last; i += LANES) {
        const vec found = i + LANES <= last ? load(x + i) : load(x + i, last - i);
        bad |= found - found != vec{};
    }
    spoiled2[block] = 0;
    for (int l = 0; l < LANES; l++) if (bad[l]) spoiled2[block] = 1;
}

extern "C" void multiply(long strip, long panel, const float* A, const float* B, const real* spoiled, const real* spoiled2, float* kept5, long m, long n, long k, long pieces, long pieces2) {
    bool all_finite = true;
    for (long t = 0; t < pieces; t++) all_finite = all_finite && spoiled[t] == 0;
    for (long t = 0; t < pieces2; t++) all_finite = all_finite && spoiled2[t] == 0;
    const auto settle = [&](long i, long j, vec sum, auto... rest) __attribute__((always_inline)) {
        store(kept5 + i * n + j, sum, rest...);
    };
    const auto tile = [&](long top, long left, auto... part) __attribute__((always_inline)) {
        const auto* const rows_at = A + top * k;
        const auto* const cols_at = B + left;
        vec sums[ROWS][COLS] = {};
        long nonzero_from = 0, nonzero_to = k;
        if (all_finite && nonzero_from < top) nonzero_from = top;
        if (all_finite && nonzero_to > left + WIDTH) nonzero_to = left + WIDTH;
        for (long l = nonzero_from; l < nonzero_to; l++) {
            vec line[COLS];
#pragma GCC unroll 8
            for (int v = 0; v < COLS; v++) line[v] = load(cols_at + l * n + v * LANES, part.lanes_at(v * LANES)...);
#pragma GCC unroll 32
            for (int i = 0; i < ROWS; i++) {
                const real factor = rows_at[row_of(i, part...) * k + l];
#pragma GCC unroll 8
                for (int v = 0; v < COLS; v++) sums[i][v] += factor * line[v];
            }
        }
#pragma GCC unroll 32
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
            for (int v = 0; v < COLS; v++) if ((part.has(i, v * LANES) && ...)) settle(top + i, left + v * LANES, sums[i][v], part.lanes_at(v * LANES)...);
    };
    const long top = strip * ROWS, left = panel * WIDTH;
    if (top + ROWS <= m && left + WIDTH <= n) tile(top, left);
    else tile(top, left, Part{m - top < ROWS ? m - top : ROWS, n - left < WIDTH ? n - left : WIDTH});
}

extern "C" void map(long block, const float* kept5, float* out, long n, long m, long share) {
    const long last = (block + 1) * share < m ? (block + 1) * share : m;
    for (long item = block * share; item < last; item++) {
        const real place1 = (real)(item);
        const auto each2 = [&](long i, auto... rest) __attribute__((always_inline)) {
            const vec kept5_here = load(kept5 + item * n + i, rest...);
            store(out + item * n + i, as_real(lanes() + (whole)(i)) - place1 >= 0.0f ? kept5_here : splat(0.0f), rest...);
        };
        long j = 0;
        for (; j + LANES <= n; j += LANES) each2(j);
        if (j < n) each2(j, n - j);
    }
}
