/* cupilot 1
Max-pooling, separable: for each row of the result first the maxima down the columns of the input, kept in a line of
scratch, then the maxima of `window` neighbours of that line. 2 * window comparisons per element instead of window^2,
and all of them on vectors when the stride is 1. Padding counts as minus infinity, a NaN wins. One block is one plane.
tune:
    LANES = 8 | 16 | 4
launch:
    batch, channels, h, w = x.shape
    batch, channels, oh, ow = out.shape
    lines = scratch((batch * channels, w), f32)
    max_pool[batch * channels](x, lines, out, h, w, oh, ow, self.window, self.stride, self.padding, self.dilation)
*/
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

static inline vec larger(vec a, vec b) { return (a > b) | (a != a) ? a : b; }

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }

// line[j] = the largest of column j over the rows `from` to `to` (exclusive) in steps of `step`.
static void column_maxima(const float* x, float* line, long w, long from, long to, long step) {
    long j = 0;
    for (; j + LANES <= w; j += LANES) {
        vec m = load(x + from * w + j);
        for (long y = from + step; y < to; y += step) m = larger(load(x + y * w + j), m);
        store(line + j, m);
    }
    for (; j < w; j++) {
        float m = x[from * w + j];
        for (long y = from + step; y < to; y += step) m = larger(x[y * w + j], m);
        line[j] = m;
    }
}

extern "C" void max_pool(long plane, const float* x, float* line, float* out, long h, long w, long oh, long ow,
                         long window, long stride, long padding, long dilation) {
    x += plane * h * w;
    line += plane * w;
    out += plane * oh * ow;
    long reach = (window - 1) * dilation;
    for (long i = 0; i < oh; i++, out += ow) {
        long from = i * stride - padding, to = from + reach + 1;
        if (from < 0) from += (-from + dilation - 1) / dilation * dilation;
        column_maxima(x, line, w, from, to < h ? to : h, dilation);
        for (long j = 0; j < ow; j++) {
            long z = j * stride - padding;
            if (stride == 1)
                for (; z >= 0 && z + reach + LANES <= w && j + LANES <= ow; j += LANES, z += LANES) {
                    vec m = load(line + z);
                    for (long c = 1; c < window; c++) m = larger(load(line + z + c * dilation), m);
                    store(out + j, m);
                }
            if (j == ow) break;
            float m = -__builtin_inff();
            for (long c = 0; c < window; c++, z += dilation)
                if (z >= 0 && z < w) m = larger(line[z], m);
            out[j] = m;
        }
    }
}
