/* cupilot 1
A running maximum that starts at zero: wrong where all numbers are far below.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = 0, sum = 0;
    for (long i = 0; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
