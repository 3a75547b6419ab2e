/* cupilot 1
Running sum of one row per block. A vector is scanned inside its registers by log2(LANES) shifted additions, and only
the carry, one broadcast and one addition, links it with the vector before.
tune:
    LANES = 16 | 8 | 4
launch:
    rows, cols = x.shape
    row_cumsum[rows](x, out, cols)
*/
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

// Moves every element DISTANCE lanes up; zeros come in.
template <int DISTANCE>
static inline vec up(vec v) {
    ivec from;
    for (int l = 0; l < LANES; l++) from[l] = l < DISTANCE ? LANES : l - DISTANCE;  // LANES is the zero vector's first
    return __builtin_shuffle(v, vec{}, from);
}

static inline vec scan(vec v) {
    v += up<1>(v);
    v += up<2>(v);
    if (LANES > 4) v += up<4>(v);
    if (LANES > 8) v += up<8 % LANES>(v);
    return v;
}

static inline vec last(vec v) { return __builtin_shuffle(v, ivec{} + (LANES - 1)); }

extern "C" void row_cumsum(long row, const float* x, float* out, long cols) {
    x += row * cols;
    out += row * cols;
    vec carry = {};
    long i = 0;
    for (; i + 2 * LANES <= cols; i += 2 * LANES) {
        vec a = scan(load(x + i)), b = scan(load(x + i + LANES));
        b += last(a);
        store(out + i, a + carry);
        store(out + i + LANES, b + carry);
        carry += last(b);
    }
    float sum = carry[0];
    for (; i < cols; i++) out[i] = sum += x[i];
}
