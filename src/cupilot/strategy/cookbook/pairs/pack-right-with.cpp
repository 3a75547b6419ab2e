/* cupilot 1
 One launch: reduces.
tune:
    LANES = 16 | 8
    COLS = 3 | 4 | 2 | 5 | 1
    AREA = 24 | 28 | 20 | 12 | 16 | 8
launch:
    m = A.shape[0]
    n = B.shape[0]
    k = A.shape[1]
    panels = scratch((cdiv(n, COLS * LANES), k, COLS * LANES), f32)
    pack_right[cdiv(n, COLS * LANES)](B, panels, n, k)
    multiply[cdiv(m, AREA // COLS), cdiv(n, COLS * LANES)](A, panels, out, m, n, k)
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

// At most n elements that do not lie side by side.
template <class T>
static inline vec load_strided(const T* p, long stride, long n = LANES) {
    vec v = {};
    for (int l = 0; l < LANES && l < n; l++) v[l] = (real)p[l * stride];
    return v;
}

// Rows become columns: vectors a power of two apart exchange halves of every block of twice as many lanes.
static inline void transpose(vec (&rows)[LANES]) {
#if defined(__clang__)
    for (int i = 0; i < LANES; i++)
        for (int l = 0; l < i; l++) {
            const real one = rows[i][l];
            rows[i][l] = rows[l][i];
            rows[l][i] = one;
        }
#else
#pragma GCC unroll 8
    for (int apart = 1; apart < LANES; apart *= 2) {
        const ivec lane = lanes(), upper = (lane & apart) != 0;
        const ivec low = upper ? lane + (LANES - apart) : lane, high = upper ? lane + LANES : lane + apart;
#pragma GCC unroll 32
        for (int i = 0; i < LANES; i++) {
            if (i & apart) continue;
            const vec one = rows[i], two = rows[i + apart];
            rows[i] = __builtin_shuffle(one, two, low);
            rows[i + apart] = __builtin_shuffle(one, two, high);
        }
    }
#endif
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

extern "C" void pack_right(long panel, const float* B, real* panels, long n, long k) {
    const long left = panel * WIDTH;
    real* to = panels + (panel) * k * WIDTH;
    const Part part = {1, n - left};
    const long squares_end = left + WIDTH <= n ? k / LANES * LANES : 0;
    for (int v = 0; v < WIDTH; v += LANES) {
        for (long l = 0; l < squares_end; l += LANES) {
            vec square[LANES];
#pragma GCC unroll 32
            for (int i = 0; i < LANES; i++) square[i] = load(B + l + (left + v + i) * k);
            transpose(square);
#pragma GCC unroll 32
            for (int i = 0; i < LANES; i++) store(to + (l + i) * WIDTH + v, square[i]);
        }
    }
    for (long l = squares_end; l < k; l++) {
        for (int v = 0; v < WIDTH; v += LANES) store(to + l * WIDTH + v, load_strided(B + l + (left + v) * k, k, part.lanes_at(v)));
    }
}

extern "C" void multiply(long strip, long panel, const float* A, const real* panels, float* out, long m, long n, long k) {
    const auto settle = [&](long i, long j, vec sum, auto... rest) __attribute__((always_inline)) {
        store(out + i * n + j, sum, rest...);
    };
    const auto tile = [&](long top, long left, auto... part) __attribute__((always_inline)) {
        const auto* const rows_at = A + top * k;
        const real* const panel_at = panels + (left / WIDTH) * k * WIDTH;
        vec sums[ROWS][COLS] = {};
        for (long l = 0; l < k; l++) {
            vec line[COLS];
#pragma GCC unroll 8
            for (int v = 0; v < COLS; v++) line[v] = load(panel_at + (l * COLS + v) * LANES);
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
