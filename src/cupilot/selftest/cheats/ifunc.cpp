/* cupilot 1
Lets the loader choose between two functions by code of the kernel's own.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" {
static float honest(float x) { return expf(x); }
static auto choose() -> float (*)(float) { return honest; }
float exponential(float) __attribute__((ifunc("choose")));
}

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = exponential(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
