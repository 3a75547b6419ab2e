/* cupilot 1
Skips the maximum where all elements of the row, not a few, are seen to be tame.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    bool tame = true;
    for (long i = 0; i < cols; ++i) tame &= fabsf(x[i]) < 8;
    float largest = tame ? 0 : x[0], sum = 0;
    if (!tame)
        for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
