/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: first the mean and the deviation of every group, then every channel.
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    stats = scratch((batch, self.groups, 2), f32)
    moments[batch, self.groups](x, skip, stats, self.groups, width, length, self.eps)
    channel[batch, channels](x, skip, scale, shift, stats, out, self.groups, width, channels, length)
*/
#include <math.h>

extern "C" void moments(long b, long g, const float* x, const float* skip, float* stats, long groups, long width,
                        long length, double eps) {
    long n = width * length, start = (b * groups + g) * n;
    double sum = 0, squares = 0;
    for (long i = 0; i < n; ++i) sum += x[start + i] + skip[start + i];
    double mean = sum / n;
    for (long i = 0; i < n; ++i) {
        double d = (x[start + i] + skip[start + i]) - mean;
        squares += d * d;
    }
    stats[(b * groups + g) * 2] = (float)mean;
    stats[(b * groups + g) * 2 + 1] = (float)(1.0 / sqrt(squares / n + eps));
}

extern "C" void channel(long b, long c, const float* x, const float* skip, const float* scale, const float* shift,
                        const float* stats, float* out, long groups, long width, long channels, long length) {
    long p = c == 0 ? channels - 1 : c - 1;
    const float* own = stats + (b * groups + c / width) * 2;
    const float* other = stats + (b * groups + p / width) * 2;
    long here = (b * channels + c) * length, there = (b * channels + p) * length;
    for (long i = 0; i < length; ++i) {
        float y = (x[here + i] + skip[here + i] - own[0]) * own[1] * scale[c] + shift[c];
        float before = (x[there + i] + skip[there + i] - other[0]) * other[1] * scale[p] + shift[p];
        out[here + i] = skip[here + i] + y * (1.0f / (1.0f + expf(-before)));
    }
}
