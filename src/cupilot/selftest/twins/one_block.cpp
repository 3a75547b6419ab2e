/* cupilot 1
All rows in one block and one loop, with nothing kept between calls.
launch:
    rows, cols = x.shape
    softmax[1](x, out, rows, cols)
*/
#include <cmath>

extern "C" void softmax(long, const float* x, float* out, long rows, long cols) {
    for (long row = 0; row < rows; ++row, x += cols, out += cols) {
        float largest = x[0], sum = 0;
        for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
        for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
        for (long i = 0; i < cols; ++i) out[i] /= sum;
    }
}
