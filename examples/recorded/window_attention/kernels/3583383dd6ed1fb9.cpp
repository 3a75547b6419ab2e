/* cupilot 1
Causal attention, tiles of two vectors of queries: scores into a local array, then exponentials, then the product with
the values. Heads with NaN or infinity anywhere are done the plain way over all keys.
tune:
    LANES = 16 | 8
    KEYS = 8 | 4 | 10
launch:
    batch, heads, length, width = Q.shape
    flags = scratch((batch * heads,), f32)
    look[batch * heads](Q, K, V, flags, length * width)
    attention[cdiv(length, 2 * LANES), batch * heads](Q, K, V, flags, out, length, width)
*/
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static const long MOST = 256;   // of the width
static const long FAR = 1024;   // of the length
static const long TILE = 2 * LANES;

// 0 where everything in the head is finite, else NaN.
extern "C" void look(long head, const float* Q, const float* K, const float* V, float* flags, long size) {
    const float* all[3] = {Q + head * size, K + head * size, V + head * size};
    vec sums[3] = {};
    float rest = 0;
    for (int a = 0; a < 3; ++a) {
        long i = 0;
        for (; i + LANES <= size; i += LANES) {
            vec v;
            memcpy(&v, all[a] + i, sizeof v);
            sums[a] += v * 0.0f;
        }
        for (; i < size; ++i) rest += all[a][i] * 0.0f;
    }
    vec sum = sums[0] + sums[1] + sums[2];
    for (int l = 0; l < LANES; ++l) rest += sum[l];
    flags[head] = rest;
}

static inline vec exp_vec(vec x) {  // of nothing above zero
    x = x < -104.0f ? vec{} - 104.0f : x;
    vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    ivec k = __builtin_convertvector(n, ivec), half = k >> 1;
    ivec low = (half + 127) << 23, high = (k - half + 127) << 23;
    vec s1, s2;
    memcpy(&s1, &low, sizeof s1);
    memcpy(&s2, &high, sizeof s2);
    return p * s1 * s2;
}

static float score(const float* q, const float* k, long width, float scale, int hidden) {
    float s = 0;
    for (long e = 0; e < width; ++e) s += q[e] * k[e];
    s *= scale;
    return hidden ? s + -INFINITY : s;
}

static void plainly(long i, const float* q, const float* k, const float* v, float* o, long length, long width,
                    float scale) {
    float most = -INFINITY, sum = 0;
    int unordered = 0;
    for (long j = 0; j < length; ++j) {
        float s = score(q, k + j * width, width, scale, j > i);
        if (s != s) unordered = 1;
        most = s > most ? s : most;
    }
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

template <long W>
static inline void in_lanes(long first, const float* Q, const float* K, const float* V, float* out, long length,
                            long any_width, float scale) {
    const long width = W ? W : any_width;
    long queries = length - first < TILE ? length - first : TILE;
    vec q[W ? W : MOST][2], p[FAR + KEYS][2];
    ivec lane;
    for (int l = 0; l < LANES; ++l) lane[l] = l;
    for (long e = 0; e < width; ++e) {
        float column[TILE] = {};
        for (long l = 0; l < queries; ++l) column[l] = Q[(first + l) * width + e] * scale;
        memcpy(q[e], column, sizeof column);
    }
    vec most[2] = {vec{} - 3.0e38f, vec{} - 3.0e38f}, sum[2] = {};
    long end = first + queries;
    for (long j = 0; j < end; j += KEYS) {
        vec s[KEYS][2] = {};
        if (j + KEYS <= length) {
            const float* k = K + j * width;
            for (long e = 0; e < width; ++e)
#pragma GCC unroll 10
                for (int u = 0; u < KEYS; ++u) {
                    float one = k[u * width + e];
                    s[u][0] += q[e][0] * one;
                    s[u][1] += q[e][1] * one;
                }
        } else {
            for (int u = 0; j + u < length; ++u)
                for (long e = 0; e < width; ++e) {
                    s[u][0] += q[e][0] * K[(j + u) * width + e];
                    s[u][1] += q[e][1] * K[(j + u) * width + e];
                }
        }
#pragma GCC unroll 10
        for (int u = 0; u < KEYS; ++u)
            for (int t = 0; t < 2; ++t) {
                vec now = s[u][t];
                if (j + KEYS > first + 1) now = lane < (int)(j + u - first - t * LANES) ? vec{} - INFINITY : now;
                most[t] = now > most[t] ? now : most[t];
                p[j + u][t] = now;
            }
    }
    vec part[4][2] = {};
    long rest = 0;
    for (; rest + 4 <= end; rest += 4)
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u)
            for (int t = 0; t < 2; ++t) {
                vec now = exp_vec(p[rest + u][t] - most[t]);
                p[rest + u][t] = now;
                part[u][t] += now;
            }
    for (; rest < end; ++rest)
        for (int t = 0; t < 2; ++t) {
            p[rest][t] = exp_vec(p[rest][t] - most[t]);
            part[0][t] += p[rest][t];
        }
    for (int t = 0; t < 2; ++t) sum[t] = (part[0][t] + part[1][t]) + (part[2][t] + part[3][t]);
    vec share[2];
    for (int t = 0; t < 2; ++t) share[t] = 1.0f / (sum[t] == 0.0f ? vec{} + 1.0f : sum[t]);
    const int PART = W ? 8 : 1;
    for (long e = 0; e < width; e += PART) {
        vec o[PART][2] = {};
        for (long j = 0; j < end; ++j)
#pragma GCC unroll 8
            for (int c = 0; c < PART; ++c) {
                float one = V[j * width + e + c];
                o[c][0] += p[j][0] * one;
                o[c][1] += p[j][1] * one;
            }
        for (int c = 0; c < PART; ++c) {
            vec done[2] = {o[c][0] * share[0], o[c][1] * share[1]};
            float column[TILE];
            memcpy(column, done, sizeof column);
            for (long l = 0; l < queries; ++l) out[(first + l) * width + e + c] = column[l];
        }
    }
}

extern "C" void attention(long tile, long head, const float* Q, const float* K, const float* V, const float* flags,
                          float* out, long length, long width) {
    long offset = head * length * width, first = tile * TILE;
    const float* q = Q + offset;
    const float* k = K + offset;
    const float* v = V + offset;
    float* o = out + offset;
    float scale = 1.0f / sqrtf((float)width);
    if (flags[head] != 0.0f || width > MOST || length > FAR) {
        for (long i = first; i < first + TILE && i < length; ++i)
            plainly(i, q + i * width, k, v, o + i * width, length, width, scale);
    } else if (width == 32) {
        in_lanes<32>(first, q, k, v, o, length, width, scale);
    } else if (width == 64) {
        in_lanes<64>(first, q, k, v, o, length, width, scale);
    } else {
        in_lanes<0>(first, q, k, v, o, length, width, scale);
    }
}
