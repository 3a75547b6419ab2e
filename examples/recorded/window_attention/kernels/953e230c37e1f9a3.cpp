/* cupilot 1
Causal attention, one query a block, over all keys: hidden scores are lowered by infinity and hidden values weigh zero,
as in the framework, so that NaN and infinity come through. A query that sees nothing but -infinity gives zeros.
launch:
    batch, heads, length, width = Q.shape
    attention[length, batch * heads](Q, K, V, out, length, width)
*/
#include <math.h>

static float score(const float* q, const float* k, long width, float scale, int hidden) {
    float s = 0;
    for (long e = 0; e < width; ++e) s += q[e] * k[e];
    s *= scale;
    return hidden ? s + -INFINITY : s;
}

extern "C" void attention(long i, long head, const float* Q, const float* K, const float* V, float* out, long length,
                          long width) {
    const float* q = Q + (head * length + i) * width;
    const float* k = K + head * length * width;
    const float* v = V + head * length * width;
    float* o = out + (head * length + i) * width;
    float scale = 1.0f / sqrtf((float)width);
    float most = -INFINITY;
    int unordered = 0;
    for (long j = 0; j < length; ++j) {
        float s = score(q, k + j * width, width, scale, j > i);
        if (s != s) unordered = 1;
        most = s > most ? s : most;
    }
    float sum = 0;
    for (long e = 0; e < width; ++e) o[e] = 0;
    for (long j = 0; j < length; ++j) {
        float p = 0;
        if (unordered)
            p = NAN;
        else if (most != -INFINITY)
            p = expf(score(q, k + j * width, width, scale, j > i) - most);
        sum += p;
        for (long e = 0; e < width; ++e) o[e] += p * v[j * width + e];
    }
    if (most == -INFINITY && !unordered) sum = 1;
    for (long e = 0; e < width; ++e) o[e] /= sum;
}
