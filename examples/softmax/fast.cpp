/* cupilot 1
Softmax of one row per block in three passes over a row that stays in the second-level cache: the maximum, the
exponentials with their sum, the scaling. Vectors of LANES elements, four independent accumulators; the exponential is
a polynomial of our own, so that nothing in the loop is a call.
tune:
    LANES = 16 | 8 | 4
launch:
    rows, cols = x.shape
    row_softmax[rows](x, out, cols)
*/
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

// The first n elements at p, the other lanes as in `rest`.
static inline vec load_some(const float* p, long n, vec rest) {
    memcpy(&rest, p, 4 * n);
    return rest;
}

// e to the power of x for x <= 0, to 1 ulp, with correctly rounded denormals; NaN stays NaN.
static inline vec exp_negative(vec x) {
    x = x < -104.0f ? vec{} - 104.0f : x;     // from here down the result rounds to zero
    vec shifted = x * 1.44269504f + 12583103.0f;  // 1.5 * 2^23 + 191: the low bits become round(x / ln 2) + 191
    vec n = shifted - 12583103.0f;
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = vec{} + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    vec power = (vec)((ivec)shifted << 23);   // 2^(n + 64), always a normal number
    return p * power * 5.42101086e-20f;       // 2^-64
}

static inline vec larger(vec a, vec b) { return a > b ? a : b; }

extern "C" void row_softmax(long row, const float* x, float* out, long cols) {
    x += row * cols;
    out += row * cols;
    const vec lowest = vec{} - __builtin_inff();
    vec m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    long i = 0;
    for (; i + 4 * LANES <= cols; i += 4 * LANES) {
        m0 = larger(load(x + i), m0);
        m1 = larger(load(x + i + LANES), m1);
        m2 = larger(load(x + i + 2 * LANES), m2);
        m3 = larger(load(x + i + 3 * LANES), m3);
    }
    for (; i < cols; i += LANES) m0 = larger(load_some(x + i, cols - i < LANES ? cols - i : LANES, lowest), m0);
    m0 = larger(larger(m0, m1), larger(m2, m3));
    float largest = m0[0];
    for (int l = 1; l < LANES; l++) largest = m0[l] > largest ? m0[l] : largest;

    vec s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (i = 0; i + 4 * LANES <= cols; i += 4 * LANES) {
        vec e0 = exp_negative(load(x + i) - largest), e1 = exp_negative(load(x + i + LANES) - largest);
        vec e2 = exp_negative(load(x + i + 2 * LANES) - largest), e3 = exp_negative(load(x + i + 3 * LANES) - largest);
        store(out + i, e0), store(out + i + LANES, e1), store(out + i + 2 * LANES, e2), store(out + i + 3 * LANES, e3);
        s0 += e0, s1 += e1, s2 += e2, s3 += e3;
    }
    for (; i < cols; i += LANES) {
        long n = cols - i < LANES ? cols - i : LANES;
        vec e = exp_negative(load_some(x + i, n, lowest) - largest);
        memcpy(out + i, &e, 4 * n);
        for (int l = 0; l < n; l++) s0[l] += e[l];  // the other lanes are NaN when the largest is infinite
    }
    s0 = (s0 + s1) + (s2 + s3);
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += s0[l];
    float scale = 1 / sum;
    for (i = 0; i + LANES <= cols; i += LANES) store(out + i, load(out + i) * scale);
    for (; i < cols; i++) out[i] = out[i] * scale;
}
