/* cupilot 1
Uses the usual epsilon instead of the constructor's argument.
launch:
    rows, cols = x.shape
    normalize[rows](x, weight, bias, out, cols, self.eps)
*/
#include <cmath>

extern "C" void normalize(long row, const float* x, const float* weight, const float* bias, float* out, long cols,
                          float) {
    x += row * cols, out += row * cols;
    float sum = 0;
    for (long i = 0; i < cols; ++i) sum += x[i] * x[i];
    float scale = 1 / sqrtf(sum / cols + 1e-5f);
    for (long i = 0; i < cols; ++i) out[i] = x[i] * scale * weight[i] + bias[i];
}
