/* cupilot 1
Transposed convolution (4 by 4, stride 2, padding 1) with bias and ReLU in one launch, by parity: a block makes two
output rows of CO channels from three input rows where they lie.
tune:
    LANES = 16
    CO = 4
launch:
    batch, cin, h, w = x.shape
    n, cout, oh, ow = out.shape
    upsample[h, cdiv(cout, CO), batch](x, up_weight, up_bias, out, cin, cout, h, w)
strategy:
    fuse-passes
    vectorize
    Split the outputs by the parity of row and column: each parity is an ordinary convolution with 2 by 2 of the 16 taps, without tests or divisions.
    Do everything in one launch: read rows of x where they lie; neighbours at an edge come from a shuffle with zeros, and only a partial vector from a zero-padded local copy.
    Hold a few output channels by one vector by both column parities of two output rows in registers, weights as broadcasts at constant offsets.
    Take both output rows of an input row together, so that the vectors of that row are loaded once for both.
proof:
    identity: 0058fd83947ee34b
    problem: upsample_conv f4295033fa74066b8e4c9f5246828409
    right on 36 inputs at 7 shapes
    over eager: 1.76x [1.71, 1.81]
    over compile: 1.70x [1.61, 1.79]
*/
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Columns j-1, j and j+1 of a row, zero outside of it.
static inline __attribute__((always_inline)) void around(const float* row, long j, long w, vec* before, vec* here, vec* after) {
    if (j + LANES > w) {
        float edge[LANES + 2] = {};
        long from = j > 0 ? j - 1 : j;
        memcpy(edge + (j > 0 ? 0 : 1), row + from, (w - from) * sizeof(float));
        *before = load(edge), *here = load(edge + 1), *after = load(edge + 2);
        return;
    }
    ivec right, left;
    for (int l = 0; l < LANES; ++l) right[l] = LANES - 1 + l, left[l] = l + 1;
    *here = load(row + j);
    *before = j > 0 ? load(row + j - 1) : __builtin_shuffle(vec{}, *here, right);
    *after = j + LANES < w ? load(row + j + 1) : __builtin_shuffle(*here, vec{}, left);
}

static inline __attribute__((always_inline)) void store(float* to, vec e, vec o, float bias, long n) {
    ivec low, high;
    for (int l = 0; l < LANES; ++l) {
        low[l] = l / 2 + (l % 2) * LANES;
        high[l] = LANES / 2 + l / 2 + (l % 2) * LANES;
    }
    e += bias, o += bias;
    e = e < 0.0f ? vec{} : e;
    o = o < 0.0f ? vec{} : o;
    vec pair[2] = {__builtin_shuffle(e, o, low), __builtin_shuffle(e, o, high)};
    if (n == LANES)
        memcpy(to, pair, sizeof pair);
    else
        memcpy(to, pair, 2 * n * sizeof(float));
}

// Adds row i by kernel row ky to one output row.
template <bool FULL>
static inline __attribute__((always_inline)) void add(vec (*sums)[2], vec before, vec here, vec after, const float* first, int ky, const long* co) {
#pragma GCC unroll 8
    for (int c = 0; c < CO; ++c) {
        const float* taps = first + 16 * (FULL ? c : co[c] - co[0]) + 4 * ky;
        sums[c][0] += here * taps[1];
        sums[c][1] += after * taps[0];
        sums[c][0] += before * taps[3];
        sums[c][1] += here * taps[2];
    }
}

template <bool FULL>
static __attribute__((noinline)) void columns(const float* x, const float* weight, const float* bias, float* out, const long* co, long i,
                           long j, long cin, long cout, long h, long w) {
    vec upper[CO][2] = {}, lower[CO][2] = {};
    for (long ci = 0; ci < cin; ++ci) {
        const float* row = x + (ci * h + i) * w;
        const float* first = weight + (ci * cout + co[0]) * 16;
        vec before, here, after;
        around(row, j, w, &before, &here, &after);
        add<FULL>(upper, before, here, after, first, 1, co);
        add<FULL>(lower, before, here, after, first, 2, co);
        if (i > 0) {
            around(row - w, j, w, &before, &here, &after);
            add<FULL>(upper, before, here, after, first, 3, co);
        }
        if (i + 1 < h) {
            around(row + w, j, w, &before, &here, &after);
            add<FULL>(lower, before, here, after, first, 0, co);
        }
    }
    long n = w - j < LANES ? w - j : LANES;
#pragma GCC unroll 8
    for (int c = 0; c < (FULL ? CO : CO); ++c) {
        float* to = out + (co[c] * 2 * h + 2 * i) * 2 * w + 2 * j;
        store(to, upper[c][0], upper[c][1], bias[co[c]], n);
        store(to + 2 * w, lower[c][0], lower[c][1], bias[co[c]], n);
    }
}

extern "C" void upsample(long i, long group, long b, const float* x, const float* weight, const float* bias, float* out,
                         long cin, long cout, long h, long w) {
    long co[CO];
    for (int c = 0; c < CO; ++c) co[c] = group * CO + c < cout ? group * CO + c : cout - 1;
    bool full = (group + 1) * CO <= cout;
    for (long j = 0; j < w; j += LANES)
        if (full)
            columns<true>(x + b * cin * h * w, weight, bias, out + b * cout * 4 * h * w, co, i, j, cin, cout, h, w);
        else
            columns<false>(x + b * cin * h * w, weight, bias, out + b * cout * 4 * h * w, co, i, j, cin, cout, h, w);
}
