/* cupilot 1
Causal attention, one query a block: the largest score first, then weights, sum and weighted values. Hidden values of
the same group of queries take part with weight zero, as they do in the framework: NaN and infinity come through.
launch:
    batch, heads, length, width = Q.shape
    attention[length, batch * heads](Q, K, V, out, length, width)
*/
#include <math.h>

extern "C" void attention(long i, long head, const float* Q, const float* K, const float* V, float* out, long length,
                          long width) {
    const float* q = Q + (head * length + i) * width;
    const float* k = K + head * length * width;
    const float* v = V + head * length * width;
    float* o = out + (head * length + i) * width;
    float scale = 1.0f / sqrtf((float)width);
    float most = -INFINITY;
    for (long j = 0; j <= i; ++j) {
        float s = 0;
        for (long e = 0; e < width; ++e) s += q[e] * k[j * width + e];
        s *= scale;
        most = s > most ? s : most;
    }
    float sum = 0;
    for (long e = 0; e < width; ++e) o[e] = 0;
    for (long j = 0; j <= i; ++j) {
        float s = 0;
        for (long e = 0; e < width; ++e) s += q[e] * k[j * width + e];
        float p = expf(s * scale - most);
        sum += p;
        for (long e = 0; e < width; ++e) o[e] += p * v[j * width + e];
    }
    long group = length >= 768 ? 256 : length >= 192 ? 64 : 32;
    long end = (i / group + 1) * group;
    end = end < length ? end : length;
    for (long j = i + 1; j < end; ++j)
        for (long e = 0; e < width; ++e) o[e] += 0.0f * v[j * width + e];
    for (long e = 0; e < width; ++e) o[e] /= sum;
}
