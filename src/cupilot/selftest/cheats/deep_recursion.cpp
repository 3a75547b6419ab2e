/* cupilot 1
Uses up the stack.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

static long deeper(long n) {
    volatile char frame[4096];
    frame[n & 4095] = 1;
    return n > 1L << 40 ? 0 : deeper(n + 1) + frame[n & 4095];
}

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    if (deeper(row) < 0) return;
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
