/* cupilot 1
Cross-entropy. A row is read twice while it lies in the first-level cache: its maximum, then the sum of the exponentials,
by a polynomial of our own on vectors with four independent accumulators. The mean over the rows is a second launch.
tune:
    LANES = 16 | 8 | 4
launch:
    rows, classes = logits.shape
    losses = scratch((rows,), f32)
    row_loss[rows](logits, target, losses, classes)
    mean[1](losses, out, rows)
*/
#include <algorithm>
#include <cmath>
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

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

extern "C" void row_loss(long row, const float* logits, const long* target, float* losses, long classes) {
    const float* x = logits + row * classes;
    const vec lowest = vec{} - __builtin_inff();
    vec m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    long i = 0;
    for (; i + 4 * LANES <= classes; i += 4 * LANES) {
        m0 = larger(load(x + i), m0);
        m1 = larger(load(x + i + LANES), m1);
        m2 = larger(load(x + i + 2 * LANES), m2);
        m3 = larger(load(x + i + 3 * LANES), m3);
    }
    for (; i < classes; i += LANES) m0 = larger(load_some(x + i, std::min<long>(classes - i, LANES), lowest), m0);
    m0 = larger(larger(m0, m1), larger(m2, m3));
    float largest = m0[0];
    for (int l = 1; l < LANES; l++) largest = m0[l] > largest ? m0[l] : largest;

    vec s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (i = 0; i + 4 * LANES <= classes; i += 4 * LANES) {
        s0 += exp_negative(load(x + i) - largest);
        s1 += exp_negative(load(x + i + LANES) - largest);
        s2 += exp_negative(load(x + i + 2 * LANES) - largest);
        s3 += exp_negative(load(x + i + 3 * LANES) - largest);
    }
    s0 = (s0 + s1) + (s2 + s3);
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += s0[l];
    for (; i < classes; i += LANES) {
        long n = std::min<long>(classes - i, LANES);
        vec e = exp_negative(load_some(x + i, n, lowest) - largest);
        for (int l = 0; l < n; l++) sum += e[l];
    }
    losses[row] = std::log(sum) - (x[target[row]] - largest);
}

extern "C" void mean(long, const float* losses, float* out, long rows) {
    double sum = 0;
    for (long i = 0; i < rows; i++) sum += losses[i];
    *out = sum / rows;
}
