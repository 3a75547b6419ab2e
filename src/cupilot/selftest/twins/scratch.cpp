/* cupilot 1
Writes its scratch before it reads it, in every call anew.
launch:
    rows, cols = x.shape
    scales = scratch((rows,), f32)
    measure[rows](x, scales, cols, self.eps)
    normalize[rows](x, weight, bias, scales, out, cols)
*/
#include <cmath>

extern "C" void measure(long row, const float* x, float* scales, long cols, float eps) {
    float sum = 0;
    for (long i = row * cols; i < (row + 1) * cols; ++i) sum += x[i] * x[i];
    scales[row] = 1 / sqrtf(sum / cols + eps);
}

extern "C" void normalize(long row, const float* x, const float* weight, const float* bias, const float* scales,
                          float* out, long cols) {
    x += row * cols, out += row * cols;
    for (long i = 0; i < cols; ++i) out[i] = x[i] * scales[row] * weight[i] + bias[i];
}
