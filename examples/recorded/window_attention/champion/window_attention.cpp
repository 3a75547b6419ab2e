/* cupilot 1
Causal attention with a query in every lane: chunks of KEYS keys, running maximum and sum, hidden chunks skipped. Heads
with NaN or infinity anywhere are done the plain way over all keys.
tune:
    LANES = 16
    KEYS = 8
launch:
    batch, heads, length, width = Q.shape
    flags = scratch((batch * heads,), f32)
    look[batch * heads](Q, K, V, flags, length * width)
    attention[cdiv(length, LANES), batch * heads](Q, K, V, flags, out, length, width)
strategy:
    fuse-passes
    vectorize
    One vector lane is one query: transpose a tile of 16 queries once, so that scores, weights and sums are whole vectors and no horizontal sums are needed.
    Work through the keys in chunks of eight: eight score vectors in registers, each a chain of fused multiply-adds of the transposed queries with a broadcast element of a key.
    Skip chunks of keys that every query of the tile hides; hide lanes on the diagonal by a comparison.
    Look first whether everything in the head is finite; where it is not, compute that tile the plain way over all keys.
proof:
    identity: d7813985ab47b8ab
    problem: window_attention 15d5d8cdc1497b4d82916ec545a5def4
    right on 37 inputs at 8 shapes
    over eager: 2.62x [2.55, 2.70]
    over compile: 2.83x [2.71, 2.96]
*/
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static const long MOST = 512;  // of the width

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
    long queries = length - first < LANES ? length - first : LANES;
    vec q[W ? W : MOST], o[W ? W : MOST];
    ivec lane;
    for (int l = 0; l < LANES; ++l) lane[l] = l;
    for (long e = 0; e < width; ++e) {
        vec column = {};
        for (long l = 0; l < queries; ++l) column[l] = Q[(first + l) * width + e] * scale;
        q[e] = column;
        o[e] = vec{};
    }
    vec most = vec{} - 3.0e38f, sum = {};
    long end = first + queries;
    for (long j = 0; j < end; j += KEYS) {
        const float* k[KEYS];
        const float* v[KEYS];
        for (int u = 0; u < KEYS; ++u) {
            long at = j + u < length ? j + u : length - 1;
            k[u] = K + at * width;
            v[u] = V + at * width;
        }
        if (j + KEYS <= length)
            for (int u = 0; u < KEYS; ++u) k[u] = K + j * width + u * width, v[u] = V + j * width + u * width;
        vec s[KEYS] = {};
        for (long e = 0; e < width; ++e)
#pragma GCC unroll 16
            for (int u = 0; u < KEYS; ++u) s[u] += q[e] * k[u][e];
        if (j + KEYS > first + 1)
#pragma GCC unroll 16
            for (int u = 0; u < KEYS; ++u) s[u] = lane < (int)(j + u - first) ? vec{} - INFINITY : s[u];
        vec larger = most;
#pragma GCC unroll 16
        for (int u = 0; u < KEYS; ++u) larger = s[u] > larger ? s[u] : larger;
        vec shrink = exp_vec(most - larger);
        most = larger;
        sum *= shrink;
#pragma GCC unroll 16
        for (int u = 0; u < KEYS; ++u) {
            s[u] = exp_vec(s[u] - most);
            sum += s[u];
        }
        for (long e = 0; e < width; ++e) {
            vec a = o[e] * shrink;
#pragma GCC unroll 16
            for (int u = 0; u < KEYS; ++u) a += s[u] * v[u][e];
            o[e] = a;
        }
    }
    sum = sum == 0.0f ? vec{} + 1.0f : sum;
    vec share = 1.0f / sum;
    for (long e = 0; e < width; ++e) {
        vec column = o[e] * share;
        for (long l = 0; l < queries; ++l) out[(first + l) * width + e] = column[l];
    }
}

extern "C" void attention(long tile, long head, const float* Q, const float* K, const float* V, const float* flags,
                          float* out, long length, long width) {
    long offset = head * length * width, first = tile * LANES;
    const float* q = Q + offset;
    const float* k = K + offset;
    const float* v = V + offset;
    float* o = out + offset;
    float scale = 1.0f / sqrtf((float)width);
    if (flags[head] != 0.0f || width > MOST) {
        for (long i = first; i < first + LANES && i < length; ++i)
            plainly(i, q + i * width, k, v, o + i * width, length, width, scale);
    } else if (width == 32) {
        in_lanes<32>(first, q, k, v, o, length, width, scale);
    } else if (width == 64) {
        in_lanes<64>(first, q, k, v, o, length, width, scale);
    } else {
        in_lanes<0>(first, q, k, v, o, length, width, scale);
    }
}
