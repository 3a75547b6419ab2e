/* cupilot 1
Causal attention along the keys: keys transposed once for each head, scores of ROWS queries by two vectors of keys in
registers, weights broadcast onto rows of values. Heads with NaN or infinity anywhere are done the plain way.
tune:
    LANES = 16 | 8
    ROWS = 8 | 4 | 6
launch:
    batch, heads, length, width = Q.shape
    pitch = cdiv(length, 2 * LANES) * 2 * LANES
    keys = scratch((batch * heads * width, pitch), f32)
    flags = scratch((batch * heads,), f32)
    pack[batch * heads](Q, K, V, keys, flags, length, width, pitch)
    attention[cdiv(length, ROWS), batch * heads](Q, K, V, keys, flags, out, length, width, pitch)
*/
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static const long FAR = 1024;  // of the padded length

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

// The transposed keys, zeros behind the last; the flag is 0 where everything in the head is finite, else NaN.
extern "C" void pack(long head, const float* Q, const float* K, const float* V, float* keys, float* flags, long length,
                     long width, long pitch) {
    long size = length * width;
    const float* all[3] = {Q + head * size, K + head * size, V + head * size};
    vec sums[3] = {};
    float rest = 0;
    for (int a = 0; a < 3; ++a) {
        long i = 0;
        for (; i + LANES <= size; i += LANES) sums[a] += load(all[a] + i) * 0.0f;
        for (; i < size; ++i) rest += all[a][i] * 0.0f;
    }
    vec sum = sums[0] + sums[1] + sums[2];
    for (int l = 0; l < LANES; ++l) rest += sum[l];
    flags[head] = rest;
    for (long e = 0; e < width; ++e) {
        float* to = keys + (head * width + e) * pitch;
        const float* from = all[1] + e;
        for (long j = 0; j < length; ++j) to[j] = from[j * width];
        for (long j = length; j < pitch; ++j) to[j] = 0;
    }
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

template <int N>
static inline void weigh(const float (*p)[FAR], const float* share, const float* V, float* out, long end, long width,
                         long rows, long n) {
    vec o[ROWS][N] = {};
    for (long j = 0; j < end; ++j) {
        vec v[N] = {};
        if (n == N * LANES)
            memcpy(v, V + j * width, sizeof v);
        else
            memcpy(v, V + j * width, n * sizeof(float));
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r)
            for (int c = 0; c < N; ++c) o[r][c] += v[c] * p[r][j];
    }
    for (int r = 0; r < rows; ++r) {
        vec done[N];
        for (int c = 0; c < N; ++c) done[c] = o[r][c] * share[r];
        memcpy(out + r * width, done, n * sizeof(float));
    }
}

extern "C" void attention(long tile, long head, const float* Q, const float* K, const float* V, const float* keys,
                          const float* flags, float* out, long length, long width, long pitch) {
    long offset = head * length * width, first = tile * ROWS;
    long rows = length - first < ROWS ? length - first : ROWS;
    const float* v = V + offset;
    float* o = out + offset + first * width;
    float scale = 1.0f / sqrtf((float)width);
    if (flags[head] != 0.0f || pitch > FAR) {
        for (long r = 0; r < rows; ++r)
            plainly(first + r, Q + offset + (first + r) * width, K + offset, v, o + r * width, length, width, scale);
        return;
    }
    const float* q[ROWS];
    for (int r = 0; r < ROWS; ++r) q[r] = Q + offset + (r < rows ? first + r : length - 1) * width;
    const float* k = keys + head * width * pitch;
    float p[ROWS][FAR], share[ROWS];
    vec most[ROWS];
    ivec lane;
    for (int l = 0; l < LANES; ++l) lane[l] = l;
    for (int r = 0; r < ROWS; ++r) most[r] = vec{} - 3.0e38f;
    long end = first + rows, padded = (end + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
    for (long j = 0; j < padded; j += 2 * LANES) {
        vec s[ROWS][2] = {};
        for (long e = 0; e < width; ++e) {
            vec k0 = load(k + e * pitch + j), k1 = load(k + e * pitch + j + LANES);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                s[r][0] += k0 * q[r][e];
                s[r][1] += k1 * q[r][e];
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r)
            for (int t = 0; t < 2; ++t) {
                vec now = s[r][t] * scale;
                long at = j + t * LANES;
                if (at + LANES > first + 1) now = lane > (int)(first + r - at) ? vec{} - INFINITY : now;
                most[r] = now > most[r] ? now : most[r];
                memcpy(&p[r][at], &now, sizeof now);
            }
    }
    for (int r = 0; r < ROWS; ++r) {
        float top = most[r][0];
        for (int l = 1; l < LANES; ++l) top = most[r][l] > top ? most[r][l] : top;
        vec part[2] = {};
        for (long j = 0; j < padded; j += 2 * LANES)
            for (int t = 0; t < 2; ++t) {
                vec now = exp_vec(load(&p[r][j + t * LANES]) - top);
                memcpy(&p[r][j + t * LANES], &now, sizeof now);
                part[t] += now;
            }
        vec all = part[0] + part[1];
        float sum = 0;
        for (int l = 0; l < LANES; ++l) sum += all[l];
        share[r] = 1.0f / (sum == 0.0f ? 1.0f : sum);
    }
    long c = 0;
    for (; c + 2 * LANES <= width; c += 2 * LANES) weigh<2>(p, share, v + c, o + c, end, width, rows, 2 * LANES);
    for (; c < width; c += LANES)
        weigh<1>(p, share, v + c, o + c, end, width, rows, width - c < LANES ? width - c : LANES);
}
