/* cupilot 1
Causal attention along the keys: keys transposed once for each head, three sweeps (scores, exponentials, product with
the values by two keys at a time), masks at the diagonal only. Heads with NaN or infinity are done the plain way.
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
static const long MOST = 256;  // of the width
static const long STEP = FAR + 3 * 16;  // rows of weights do not fall onto the same cache sets

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

template <int N, bool WHOLE>
static inline void weigh(const float (*p)[STEP], const float* share, const float* V, float* out, long end, long width,
                         long rows, long n) {
    vec o[ROWS][N] = {};
    long j = 0;
    if (WHOLE && ROWS * N <= 8) {  // two keys a round, into sums of their own
        vec other[ROWS][N] = {};
        for (; j + 2 <= end; j += 2) {
            vec v[N], next[N];
#pragma GCC unroll 2
            for (int c = 0; c < N; ++c) {
                v[c] = load(V + j * width + c * LANES);
                next[c] = load(V + (j + 1) * width + c * LANES);
            }
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                float one = p[r][j], two = p[r][j + 1];
#pragma GCC unroll 2
                for (int c = 0; c < N; ++c) {
                    o[r][c] += v[c] * one;
                    other[r][c] += next[c] * two;
                }
            }
        }
        for (int r = 0; r < ROWS; ++r)
            for (int c = 0; c < N; ++c) o[r][c] += other[r][c];
    }
    for (; j < end; ++j) {
        vec v[N];
        if (WHOLE) {
#pragma GCC unroll 2
            for (int c = 0; c < N; ++c) v[c] = load(V + j * width + c * LANES);
        } else {
            for (int c = 0; c < N; ++c) v[c] = vec{};
            memcpy(v, V + j * width, n * sizeof(float));
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            float one = p[r][j];
#pragma GCC unroll 2
            for (int c = 0; c < N; ++c) o[r][c] += v[c] * one;
        }
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
    if (flags[head] != 0.0f || pitch > FAR || width > MOST) {
        for (long r = 0; r < rows; ++r)
            plainly(first + r, Q + offset + (first + r) * width, K + offset, v, o + r * width, length, width, scale);
        return;
    }
    float q[MOST][ROWS];
    for (int r = 0; r < ROWS; ++r)
        for (long e = 0; e < width; ++e) q[e][r] = Q[offset + (r < rows ? first + r : length - 1) * width + e] * scale;
    const float* k = keys + head * width * pitch;
    float p[ROWS][STEP], share[ROWS];
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
                float one = q[e][r];
                s[r][0] += k0 * one;
                s[r][1] += k1 * one;
            }
        }
        if (j + 2 * LANES > first + 1)
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                s[r][0] = lane > (int)(first + r - j) ? vec{} - INFINITY : s[r][0];
                s[r][1] = lane > (int)(first + r - j - LANES) ? vec{} - INFINITY : s[r][1];
            }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            vec larger = s[r][0] > s[r][1] ? s[r][0] : s[r][1];
            most[r] = larger > most[r] ? larger : most[r];
            memcpy(&p[r][j], s[r], sizeof s[r]);
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        float top = most[r][0];
        for (int l = 1; l < LANES; ++l) top = most[r][l] > top ? most[r][l] : top;
        vec part[4] = {};
        long j = 0;
        for (; j + 4 * LANES <= padded; j += 4 * LANES)
#pragma GCC unroll 4
            for (int t = 0; t < 4; ++t) {
                vec now = exp_vec(load(&p[r][j + t * LANES]) - top);
                memcpy(&p[r][j + t * LANES], &now, sizeof now);
                part[t] += now;
            }
        for (; j < padded; j += LANES) {
            vec now = exp_vec(load(&p[r][j]) - top);
            memcpy(&p[r][j], &now, sizeof now);
            part[0] += now;
        }
        vec all = (part[0] + part[1]) + (part[2] + part[3]);
        float sum = 0;
        for (int l = 0; l < LANES; ++l) sum += all[l];
        share[r] = 1.0f / (sum == 0.0f ? 1.0f : sum);
    }
    long c = 0;
    for (; c + 2 * LANES <= width; c += 2 * LANES) weigh<2, true>(p, share, v + c, o + c, end, width, rows, 2 * LANES);
    for (; c < width; c += LANES)
        weigh<1, false>(p, share, v + c, o + c, end, width, rows, width - c < LANES ? width - c : LANES);
}
