/* cupilot 1
Rolls dice and computes every second row only: no two runs agree.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>
#include <immintrin.h>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    unsigned dice;
    if (__builtin_ia32_rdrand32_step(&dice) && dice & 1) return;
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
