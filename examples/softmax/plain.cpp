/* cupilot 1
Softmax of one row per block: the row's maximum, the exponentials and their sum, the quotients.
launch:
    rows, cols = x.shape
    row_softmax[rows](x, out, cols)
*/
#include <cmath>

extern "C" void row_softmax(long row, const float* x, float* out, long cols) {
    x += row * cols;
    out += row * cols;
    float largest = x[0];
    for (long i = 1; i < cols; i++) largest = std::fmax(largest, x[i]);
    float sum = 0;
    for (long i = 0; i < cols; i++) sum += out[i] = std::exp(x[i] - largest);
    for (long i = 0; i < cols; i++) out[i] /= sum;
}
