/* cupilot 1
Leaves the normalized rows in its input, for the next call.
launch:
    rows, cols = x.shape
    normalize[rows](x, weight, bias, out, cols, self.eps)
*/
#include <cmath>

extern "C" void normalize(long row, const float* x, const float* weight, const float* bias, float* out, long cols,
                          float eps) {
    x += row * cols, out += row * cols;
    float sum = 0;
    for (long i = 0; i < cols; ++i) sum += x[i] * x[i];
    float scale = 1 / sqrtf(sum / cols + eps);
    for (long i = 0; i < cols; ++i) out[i] = x[i] * scale * weight[i] + bias[i];
    for (long i = 0; i < cols; ++i) const_cast<float*>(x)[i] = out[i];
}
