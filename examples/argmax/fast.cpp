/* cupilot 1
Position of the largest element along dimension 1; the first one if there are several, and a NaN is the largest. One
block is WIDTH columns of one batch entry: the input is read line after line in memory order, the champions and their
positions wait in the first-level cache and are touched once every four lines.
tune:
    LANES = 16 | 8 | 4
    WIDTH = 2048 | 512 | 1024
launch:
    batch, length, cols = x.shape
    arg_max[batch, cdiv(cols, WIDTH)](x, out, length, cols)
*/
#include <cstring>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

struct Champions {
    vec value;
    ivec position;

    void meet(vec v, int i) {
        ivec wins = (v > value) | ((v != v) & (value == value));
        value = wins ? v : value;
        position = wins ? ivec{} + i : position;
    }
};

// The part of LANES columns at p that lies inside the matrix.
static inline vec load(const float* p, long n) {
    vec v = {};
    if (n >= LANES) memcpy(&v, p, sizeof v);
    else memcpy(&v, p, 4 * n);
    return v;
}

extern "C" void arg_max(long entry, long strip, const float* x, long* out, long length, long cols) {
    long first = strip * WIDTH, width = cols - first < WIDTH ? cols - first : WIDTH;
    x += entry * length * cols + first;
    out += entry * cols + first;
    Champions best[WIDTH / LANES];
    for (long j = 0; j < width; j += LANES) best[j / LANES] = {load(x + j, width - j), ivec{}};
    long i = 1;
    for (; i + 4 <= length; i += 4)
        for (long j = 0; j < width; j += LANES) {
            const float* from = x + i * cols + j;
            Champions c = best[j / LANES];
            c.meet(load(from, width - j), i);
            c.meet(load(from + cols, width - j), i + 1);
            c.meet(load(from + 2 * cols, width - j), i + 2);
            c.meet(load(from + 3 * cols, width - j), i + 3);
            best[j / LANES] = c;
        }
    for (; i < length; i++)
        for (long j = 0; j < width; j += LANES) best[j / LANES].meet(load(x + i * cols + j, width - j), i);
    for (long j = 0; j < width; j++) out[j] = best[j / LANES].position[j % LANES];
}
