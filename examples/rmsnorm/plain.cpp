/* cupilot 1
RMS normalisation over the features. One block is one image; a pixel's features lie `pixels` elements apart.
launch:
    batch, features, height, width = x.shape
    rms_norm[batch](x, out, features, height * width, self.eps)
*/
#include <cmath>

extern "C" void rms_norm(long image, const float* x, float* out, long features, long pixels, float eps) {
    x += image * features * pixels;
    out += image * features * pixels;
    for (long p = 0; p < pixels; p++) {
        float squares = 0;
        for (long f = 0; f < features; f++) squares += x[f * pixels + p] * x[f * pixels + p];
        float rms = std::sqrt(squares / features + eps);
        for (long f = 0; f < features; f++) out[f * pixels + p] = x[f * pixels + p] / rms;
    }
}
