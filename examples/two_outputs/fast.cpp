/* cupilot 1
Variance (out0) and mean (out1) of one row per block. Two passes over a row in the first-level cache: the mean, then the
squared deviations from it; the sum of the deviations, which would be zero without rounding, corrects the variance.
tune:
    LANES = 16 | 8 | 4
launch:
    rows, cols = x.shape
    var_mean[rows](x, out0, out1, cols)
*/
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float total(vec v) {
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += v[l];
    return sum;
}

extern "C" void var_mean(long row, const float* x, float* var, float* mean, long cols) {
    x += row * cols;
    long whole = cols / (4 * LANES) * (4 * LANES);
    vec a = {}, b = {}, c = {}, d = {};
    for (long i = 0; i < whole; i += 4 * LANES) {
        a += load(x + i), b += load(x + i + LANES);
        c += load(x + i + 2 * LANES), d += load(x + i + 3 * LANES);
    }
    float sum = total((a + b) + (c + d));
    for (long i = whole; i < cols; i++) sum += x[i];
    float centre = sum / cols;

    vec d0 = {}, d1 = {}, q0 = {}, q1 = {};
    for (long i = 0; i < whole; i += 2 * LANES) {
        vec u = load(x + i) - centre, v = load(x + i + LANES) - centre;
        d0 += u, q0 += u * u;
        d1 += v, q1 += v * v;
    }
    float deviations = total(d0 + d1), squares = total(q0 + q1);
    for (long i = whole; i < cols; i++) {
        float u = x[i] - centre;
        deviations += u, squares += u * u;
    }
    mean[row] = centre;
    var[row] = (squares - deviations * (deviations / cols)) / cols;
}
