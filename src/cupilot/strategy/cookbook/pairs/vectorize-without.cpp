/* cupilot 1
 One launch: reduces, and uses the results on every element.
tune:
    BLOCK = 65536 | 16384
launch:
    rows = x.shape[0]
    cols = x.shape[1] * x.shape[2] * x.shape[3]
    share = max(1, BLOCK // max(1, cols))
    reduce[cdiv(rows, share)](x, norm_weight, norm_bias, out, cols, rows, share)
*/
#include <cmath>

typedef float real;

extern "C" void reduce(long block, const float* x, const float* norm_weight, const float* norm_bias, float* out, long cols, long rows, long share) {
    const long last = (block + 1) * share < rows ? (block + 1) * share : rows;
    for (long item = block * share; item < last; item++) {
        double total2 = 0;
        for (long i = 0; i < cols; i++) {
            total2 = total2 + x[item * cols + i];
        }
        const real mean1 = (real)(total2 / (cols));
        double total3 = 0;
        for (long i2 = 0; i2 < cols; i2++) {
            const real sub1 = x[item * cols + i2] - mean1;
            total3 = total3 + sub1 * sub1;
        }
        const real mean12 = (real)(total3 / (cols));
        const real rsqrt1 = (1.0f / std::sqrt(mean12 + 1e-05f));
        for (long i3 = 0; i3 < cols; i3++) {
            out[item * cols + i3] = (x[item * cols + i3] - mean1) * rsqrt1 * norm_weight[i3] + norm_bias[i3];
        }
    }
}
