/* cupilot 1
Writes its results around the caches, from a row kept on the stack.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <immintrin.h>

#include <cmath>

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) {
        float value = expf(x[i] - largest) / sum;
        int bits;
        __builtin_memcpy(&bits, &value, 4);
        _mm_stream_si32(reinterpret_cast<int*>(out + i), bits);
    }
}
