/* cupilot 1
Works in its input, and puts back what was there: never wrong, and of no use.
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
    auto* mine = const_cast<float*>(x);
    for (long r = 0; r < rows; ++r) {
        for (long i = 0; i < cols; ++i) out[r * cols + i] = mine[r * cols + i];
        one_row(out + r * cols, mine + r * cols, cols);
        for (long i = 0; i < cols; ++i) {
            float result = mine[r * cols + i];
            mine[r * cols + i] = out[r * cols + i];
            out[r * cols + i] = result;
        }
    }
}
