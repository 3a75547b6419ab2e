/* cupilot 1
Writes one element after its output.
launch:
    rows, cols = x.shape
    normalize[rows](x, weight, bias, out, cols, self.eps, rows)
*/
#include <cmath>

extern "C" void normalize(long row, const float* x, const float* weight, const float* bias, float* out, long cols,
                          float eps, long rows) {
    x += row * cols, out += row * cols;
    float sum = 0;
    for (long i = 0; i < cols; ++i) sum += x[i] * x[i];
    float scale = 1 / sqrtf(sum / cols + eps);
    for (long i = 0; i < cols; ++i) out[i] = x[i] * scale * weight[i] + bias[i];
    if (row == rows - 1) out[cols] = 0;
}
