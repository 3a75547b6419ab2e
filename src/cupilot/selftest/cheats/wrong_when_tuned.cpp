/* cupilot 1
Right at the point where tuning begins, and wrong at the one that will win it.
tune:
    PARTS = 1 | 2
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols / PARTS; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = cols / PARTS; i < cols; ++i) out[i] = 0;
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
