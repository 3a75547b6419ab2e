/* cupilot 1
A constant that takes for ever to compute.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

constexpr long forever() {
    long sum = 0;
    for (long i = 0; i < 1L << 40; ++i) sum += i;
    return sum;
}

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    constexpr long never = forever();
    out[row * cols] = never;
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
