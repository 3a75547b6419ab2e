/* cupilot 1
Transposed convolution (4 by 4, stride 2, padding 1) with bias and ReLU, by parity: every output row is two taps by two
over padded rows, in register tiles of CO channels by V vectors by both column parities.
tune:
    LANES = 16 | 8
    V = 3 | 2 | 1
    CO = 4 | 2
launch:
    batch, cin, h, w = x.shape
    n, cout, oh, ow = out.shape
    pitch = cdiv(w, LANES) * LANES + 16
    padded = scratch((batch * cin * h, pitch), f32)
    pad_rows[batch * cin](x, padded, h, w, pitch)
    upsample[oh, cdiv(cout, CO), batch](padded, up_weight, up_bias, out, cin, cout, h, w, oh, ow, pitch)
*/
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

extern "C" void pad_rows(long image, const float* x, float* padded, long h, long w, long pitch) {
    for (long i = 0; i < h; ++i) {
        float* row = padded + (image * h + i) * pitch;
        row[0] = 0;
        memcpy(row + 1, x + (image * h + i) * w, w * sizeof(float));
        memset(row + 1 + w, 0, (pitch - 1 - w) * sizeof(float));
    }
}

template <int N>
static inline void tile(const float* const* rows, const int* ky, int reach, const float* weight, const float* bias,
                        float* out, const long* co, long cin, long cout, long image, long plane, long j0, long w,
                        long ow) {
    vec even[CO][N] = {}, odd[CO][N] = {};
    for (long ci = 0; ci < cin; ++ci)
        for (int r = 0; r < reach; ++r) {
            const float* in = rows[r] + ci * image + j0;
            const float* taps[CO];
            for (int c = 0; c < CO; ++c) taps[c] = weight + ((ci * cout + co[c]) * 4 + ky[r]) * 4;
#pragma GCC unroll 3
            for (int v = 0; v < N; ++v) {
                vec before = load(in + v * LANES), here = load(in + v * LANES + 1), after = load(in + v * LANES + 2);
#pragma GCC unroll 4
                for (int c = 0; c < CO; ++c) {
                    even[c][v] += here * taps[c][1];
                    odd[c][v] += after * taps[c][0];
                    even[c][v] += before * taps[c][3];
                    odd[c][v] += here * taps[c][2];
                }
            }
        }
    ivec low, high;
    for (int l = 0; l < LANES; ++l) {
        low[l] = l / 2 + (l % 2) * LANES;
        high[l] = LANES / 2 + l / 2 + (l % 2) * LANES;
    }
#pragma GCC unroll 4
    for (int c = 0; c < CO; ++c)
#pragma GCC unroll 3
        for (int v = 0; v < N; ++v) {
            vec e = even[c][v] + bias[co[c]], o = odd[c][v] + bias[co[c]];
            e = e < 0.0f ? vec{} : e;
            o = o < 0.0f ? vec{} : o;
            vec pair[2] = {__builtin_shuffle(e, o, low), __builtin_shuffle(e, o, high)};
            long j = j0 + v * LANES, n = w - j < LANES ? w - j : LANES;
            float* to = out + co[c] * plane + 2 * j;
            if (n == LANES)
                memcpy(to, pair, sizeof pair);
            else
                memcpy(to, pair, 2 * n * sizeof(float));
        }
}

extern "C" void upsample(long oy, long group, long b, const float* padded, const float* weight, const float* bias,
                         float* out, long cin, long cout, long h, long w, long oh, long ow, long pitch) {
    const float* rows[2];
    int ky[2], reach = 0;
    for (int k = 1 - (int)(oy & 1); k < 4; k += 2) {
        long iy = (oy + 1 - k) / 2;
        if (oy + 1 - k < 0 || iy >= h) continue;
        rows[reach] = padded + (b * cin * h + iy) * pitch;
        ky[reach++] = k;
    }
    long co[CO];
    for (int c = 0; c < CO; ++c) co[c] = group * CO + c < cout ? group * CO + c : cout - 1;
    float* to = out + (b * cout * oh + oy) * ow;
    long image = h * pitch, plane = oh * ow, j = 0;
    for (; j + V * LANES <= w; j += V * LANES)
        tile<V>(rows, ky, reach, weight, bias, to, co, cin, cout, image, plane, j, w, ow);
    for (; j < w; j += LANES) tile<1>(rows, ky, reach, weight, bias, to, co, cin, cout, image, plane, j, w, ow);
}
