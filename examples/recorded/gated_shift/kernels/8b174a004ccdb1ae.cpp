/* cupilot 1
Mixes with the left neighbour, gates, normalises by the root mean square: one block a row, two plain passes.
launch:
    rows, cols = x.shape
    gated_shift[rows](x, gate, mix, scale, out, self.eps, cols)
*/
#include <math.h>

static float gated(const float* x, const float* gate, const float* mix, long j) {
    float left = j > 0 ? x[j - 1] : 0.0f;
    float mixed = x[j] + mix[j] * (left - x[j]);
    return mixed * (1.0f / (1.0f + expf(-gate[j])));
}

extern "C" void gated_shift(long row, const float* x, const float* gate, const float* mix, const float* scale,
                            float* out, float eps, long cols) {
    const float* in = x + row * cols;
    const float* g = gate + row * cols;
    float* o = out + row * cols;
    double sum = 0;
    for (long j = 0; j < cols; ++j) {
        float y = gated(in, g, mix, j);
        o[j] = y;
        sum += (double)(y * y);
    }
    float norm = 1.0f / sqrtf((float)(sum / (double)cols) + eps);
    for (long j = 0; j < cols; ++j) o[j] = o[j] * norm * scale[j];
}
