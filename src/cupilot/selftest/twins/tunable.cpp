/* cupilot 1
Right at both points of its constant: it sums in one chain, or in eight.
tune:
    CHAINS = 1 | 8
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sums[CHAINS] = {}, sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sums[i % CHAINS] += out[i] = expf(x[i] - largest);
    for (float part : sums) sum += part;
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
