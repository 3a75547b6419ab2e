/* cupilot 1
Max-pooling by its definition: padding counts as minus infinity, a NaN wins. One block is one plane.
launch:
    batch, channels, h, w = x.shape
    batch, channels, oh, ow = out.shape
    max_pool[batch * channels](x, out, h, w, oh, ow, self.window, self.stride, self.padding, self.dilation)
*/
#include <cmath>

extern "C" void max_pool(long plane, const float* x, float* out, long h, long w, long oh, long ow,
                         long window, long stride, long padding, long dilation) {
    x += plane * h * w;
    out += plane * oh * ow;
    for (long i = 0; i < oh; i++)
        for (long j = 0; j < ow; j++) {
            float largest = -INFINITY;
            for (long r = 0; r < window; r++)
                for (long c = 0; c < window; c++) {
                    long y = i * stride - padding + r * dilation, z = j * stride - padding + c * dilation;
                    if (y < 0 || y >= h || z < 0 || z >= w) continue;
                    float value = x[y * w + z];
                    if (value > largest || std::isnan(value)) largest = value;
                }
            out[i * ow + j] = largest;
        }
}
