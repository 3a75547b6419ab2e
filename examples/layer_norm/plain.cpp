/* cupilot 1
Layer normalisation of whole images, in two passes: the mean first, then the squared deviations from it.
One block is one image.
launch:
    batch, channels, height, width = x.shape
    layer_norm[batch](x, weight, bias, out, weight.numel, self.eps)
*/
#include <cmath>

extern "C" void layer_norm(long image, const float* x, const float* weight, const float* bias, float* out, long n,
                           float eps) {
    x += image * n;
    out += image * n;
    double sum = 0, squares = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    double mean = sum / n;
    for (long i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / std::sqrt(squares / n + eps);
    for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}
