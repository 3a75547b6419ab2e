/* cupilot 1
Causal depthwise convolution with bias and SiLU: one block a row of one channel, every output by itself.
launch:
    batch, channels, length = x.shape
    channels2, one, taps = conv_weight.shape
    causal_conv[channels, batch](x, conv_weight, conv_bias, out, channels, length, taps)
*/
#include <math.h>

extern "C" void causal_conv(long c, long b, const float* x, const float* weight, const float* bias, float* out,
                            long channels, long length, long taps) {
    const float* in = x + (b * channels + c) * length;
    float* o = out + (b * channels + c) * length;
    const float* w = weight + c * taps;
    for (long t = 0; t < length; ++t) {
        float sum = bias[c];
        for (long k = 0; k < taps; ++k) {
            long s = t - (taps - 1) + k;
            if (s >= 0) sum += w[k] * in[s];
        }
        o[t] = sum / (1.0f + expf(-sum));
    }
}
