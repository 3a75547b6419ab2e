/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block walks the groups of a batch
item, and one loop writes a group while it takes the statistics of the next; the last two ask for the next item.
tune:
    LANES = 16
    STREAM = 1
    DIST = 1024
    NEXT = 1
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    line = scratch((batch, length), f32)
    gated[batch](x, skip, scale, shift, line, out, batch, self.groups, width, length, self.eps)
strategy:
    fuse-passes
    non-temporal-stores
    online-reduction
    prefetch
    vectorize
    One launch, one block per batch item, a software pipeline over its groups: one loop writes a row of group g and in the same iteration adds the same elements of group g+1 to that group's statistics, so DRAM reads of g+1 flow while g, in the second-level cache, does its exponentials.
    Prologue: statistics of the last group (kept for its own output), its last channel's sigmoid into a gate line in scratch, and statistics of group 0; the rows of the last two groups run the loop without statistics (a template flag).
    Prefetch: statistics ask DIST elements ahead, across page ends; the rows of the last two groups instead ask for the next batch item's last and first groups into the second-level cache (tunable NEXT).
    Statistics take one sweep: per row (in pieces of at most 4096), float sums of d and d*d around the group's mean so far (for its first row the mean of eight elements), in separate accumulators for the two vectors of an iteration; pieces are corrected and merged in double.
    A piece whose squares are not finite or too large, or whose sum(d)^2/n exceeds four times the squares that remain, is done again by two exact passes in double.
    Output: y = (x+skip-mean)*a+b, out = skip+y*gate[j], gate[j] = sigmoid(y) in place, the line carried into the next group; b also holds what rounding the mean to float loses.
    Sigmoid with few operations: NaN-keeping clamp, a rounding constant that carries the exponent bias so that one shift makes the power of two, Horner of degree 6, one vector division.
    Out is written in whole vectors after a head up to 64-byte alignment, non-temporally or plainly by the tunable STREAM; heads and tails go through zero-filled partial vectors, and a fence ends the block.
proof:
    identity: 8e4c077b0e0a4b51
    problem: gated_norm e2ca134e89ac59c290d01bd3702ab1e8
    right on 41 inputs at 7 shapes
    over eager: 4.33x [4.26, 4.41]
    over compile: 3.70x [3.66, 3.74]
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define PIECE 4096

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

struct Moments {
    double count, mean, squares;
};

struct Sums {
    vec one[2], two[2];
};

INLINE vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vec load_part(const float* p, long n) {
    vec v = {};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

INLINE void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

INLINE vec all(float f) { return (vec){} + f; }

INLINE vec mask_part(vec v, long n) {
    ivec number;
    for (int k = 0; k < LANES; ++k) number[k] = k;
    return number < ((ivec){} + (int)n) ? v : (vec){};
}

INLINE void stream(float* p, vec v) {
#if !STREAM
    memcpy(p, &v, sizeof v);
#elif LANES == 16 && defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif LANES == 16 && defined(__AVX__)
    __m256 half[2];
    memcpy(half, &v, sizeof v);
    _mm256_stream_ps(p, half[0]);
    _mm256_stream_ps(p + 8, half[1]);
#elif LANES == 8 && defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#else
    memcpy(p, &v, sizeof v);
#endif
}

// Both bounds keep a NaN: the instruction gives its second operand then.
INLINE vec clamp(vec y, vec low, vec high) {
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)y));
#elif LANES == 8 && defined(__AVX__)
    return (vec)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)y));
#else
    y = y < low ? low : y;
    return y > high ? high : y;
#endif
}

// 1 / (1 + exp(-y)). Below -89 the exponential overflows to infinity and the gate is 0, above 86 it is 1.
// The rounding constant carries the exponent's bias less one: its bits, shifted, are 2^(n-1).
INLINE vec sigmoid(vec y) {
    y = clamp(y, all(-89.0f), all(86.0f));
    vec t = y * -1.44269504088896341f + 12583038.0f;
    vec n = t - 12583038.0f;
    vec r = n * 0.693147180559945309f + y;  // exp(-y) = 2^n exp(-r)
    vec p = all(1.3981999507e-3f);
    p = p * r - 8.3752302700e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r - 1.6666414552e-1f;
    p = p * r + 0.5f;
    p = p * r - 1.0f;
    p = p * r + 1.0f;
    vec half = p * (vec)((ivec)t << 23);
    return 1.0f / (half * 2.0f + 1.0f);
}

// A value near the mean of what comes: the mean so far, or that of a few first elements.
INLINE float centre_of(const Moments* m, const float* x, const float* s, long n) {
    if (m->count > 0) return (float)m->mean;
    if (n < 8) return x[0] + s[0];
    float t[8];
    for (int k = 0; k < 8; ++k) t[k] = x[k] + s[k];
    return (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))) * 0.125f;
}

INLINE void merge(Moments* m, double count, double mean, double squares) {
    double both = m->count + count;
    double delta = mean - m->mean;
    m->mean += delta * (count / both);
    m->squares += squares + delta * delta * (m->count * count / both);
    m->count = both;
}

// Ends a piece: from sums around the centre, or exactly where these cancel or overflow or are not finite.
INLINE void finish(Moments* m, const Sums* sums, float centre, const float* x, const float* s, long n) {
    vec one = sums->one[0] + sums->one[1], two = sums->two[0] + sums->two[1];
    double d1 = 0, d2 = 0;
    for (int k = 0; k < LANES; ++k) {
        d1 += one[k];
        d2 += two[k];
    }
    double off = d1 / (double)n;
    double rest = d2 - d1 * off;
    if (d2 <= 1e38 && (d1 == 0 || d1 * off <= 4 * rest)) {
        merge(m, (double)n, (double)centre + off, rest > 0 ? rest : 0);
        return;
    }
    double mean = 0, squares = 0;
    for (long i = 0; i < n; ++i) mean += (double)(x[i] + s[i]);
    mean /= (double)n;
    for (long i = 0; i < n; ++i) {
        double d = (double)(x[i] + s[i]) - mean;
        squares += d * d;
    }
    merge(m, (double)n, mean, squares);
}

INLINE void add(Sums* sums, int k, vec d) {
    sums->one[k] += d;
    sums->two[k] += d * d;
}

// The statistics of a whole group by themselves.
INLINE void group_moments(Moments* m, const float* x, const float* s, long width, long length) {
    for (long c = 0; c < width; ++c)
        for (long start = 0; start < length; start += PIECE) {
            long n = length - start < PIECE ? length - start : PIECE;
            const float* px = x + c * length + start;
            const float* ps = s + c * length + start;
            float centre = centre_of(m, px, ps, n);
            Sums sums = {};
            long i = 0;
            for (; i + 2 * LANES <= n; i += 2 * LANES)
                for (int k = 0; k < 2; ++k) {
                    long j = i + k * LANES;
                    if (DIST && k * LANES % 16 == 0) {
                        __builtin_prefetch(px + j + DIST, 0, 3);
                        __builtin_prefetch(ps + j + DIST, 0, 3);
                    }
                    add(&sums, k, (load(px + j) + load(ps + j)) - centre);
                }
            while (i < n) {
                long part = n - i < LANES ? n - i : LANES;
                add(&sums, 0, mask_part((load_part(px + i, part) + load_part(ps + i, part)) - centre, part));
                i += part;
            }
            finish(m, &sums, centre, px, ps, n);
        }
}

INLINE double deviation(const Moments* m, double eps) { return 1.0 / sqrt(m->squares / m->count + eps); }

// y = (x + skip - mean) * a + b, where b also holds what rounding the mean to single precision lost
INLINE void coefficients(double mean, double rstd, float scale, float shift, float* a, float* b) {
    double factor = rstd * (double)scale;
    double lost = (mean - (double)(float)mean) * factor;
    *a = (float)factor;
    *b = lost > -1e300 && lost < 1e300 ? (float)((double)shift - lost) : shift;
}

template <bool STATS, bool MORE>
INLINE void some(const float* x, const float* s, float* out, float* gate, long n, long ahead, float mean, float a,
                 float b, float centre, Sums* sums) {
    if (STATS) add(sums, 0, mask_part((load_part(x + ahead, n) + load_part(s + ahead, n)) - centre, n));
    vec sv = load_part(s, n);
    vec y = ((load_part(x, n) + sv) - mean) * a + b;
    vec o = sv + y * load_part(gate, n);
    memcpy(out, &o, n * sizeof(float));
    if (MORE) {
        vec g = sigmoid(y);
        memcpy(gate, &g, n * sizeof(float));
    }
}

// Writes one row, and adds the row `ahead` to its group's statistics, or only asks for it.
template <bool STATS, bool MORE>
INLINE void row(const float* __restrict x, const float* __restrict s, float* __restrict out, float* __restrict gate,
                long length, long ahead, float mean, float a, float b, Moments* m) {
    for (long start = 0; start < length; start += PIECE) {
        long n = length - start < PIECE ? length - start : PIECE;
        const float* px = x + start;
        const float* ps = s + start;
        float* po = out + start;
        float* pg = gate + start;
        float centre = STATS ? centre_of(m, px + ahead, ps + ahead, n) : 0.0f;
        Sums sums = {};
        long head = (long)((64 - ((unsigned long)po & 63)) & 63) / 4;
        if (head > n) head = n;
        long i = 0;
        while (i < head) {
            long part = head - i < LANES ? head - i : LANES;
            some<STATS, MORE>(px + i, ps + i, po + i, pg + i, part, ahead, mean, a, b, centre, &sums);
            i += part;
        }
        for (; i + 2 * LANES <= n; i += 2 * LANES)
            for (int k = 0; k < 2; ++k) {
                long j = i + k * LANES;
                if (k * LANES % 16 == 0) {
                    if (STATS && DIST) {
                        __builtin_prefetch(px + j + ahead + DIST, 0, 3);
                        __builtin_prefetch(ps + j + ahead + DIST, 0, 3);
                    }
                    if (!STATS && NEXT) {
                        __builtin_prefetch(px + j + ahead, 0, 2);
                        __builtin_prefetch(ps + j + ahead, 0, 2);
                    }
                }
                if (STATS) add(&sums, k, (load(px + j + ahead) + load(ps + j + ahead)) - centre);
                vec sv = load(ps + j);
                vec y = ((load(px + j) + sv) - mean) * a + b;
                stream(po + j, sv + y * load(pg + j));
                if (MORE) store(pg + j, sigmoid(y));
            }
        while (i < n) {
            long part = n - i < LANES ? n - i : LANES;
            some<STATS, MORE>(px + i, ps + i, po + i, pg + i, part, ahead, mean, a, b, centre, &sums);
            i += part;
        }
        if (STATS) finish(m, &sums, centre, px + ahead, ps + ahead, n);
    }
}

extern "C" void gated(long item, const float* x, const float* skip, const float* scale, const float* shift, float* line,
                      float* out, long batch, long groups, long width, long length, double eps) {
    long n = width * length, channels = groups * width;
    x += item * channels * length;
    skip += item * channels * length;
    out += item * channels * length;
    float* gate = line + item * length;

    // the last group comes first: its last channel gates the first one
    Moments last = {0, 0, 0};
    group_moments(&last, x + (groups - 1) * n, skip + (groups - 1) * n, width, length);
    {
        const float* px = x + (channels - 1) * length;
        const float* ps = skip + (channels - 1) * length;
        float a, b, mean = (float)last.mean;
        coefficients(last.mean, deviation(&last, eps), scale[channels - 1], shift[channels - 1], &a, &b);
        long i = 0;
        for (; i + LANES <= length; i += LANES)
            store(gate + i, sigmoid(((load(px + i) + load(ps + i)) - mean) * a + b));
        if (i < length) {
            vec g = sigmoid(((load_part(px + i, length - i) + load_part(ps + i, length - i)) - mean) * a + b);
            memcpy(gate + i, &g, (length - i) * sizeof(float));
        }
    }

    Moments now = last;
    if (groups > 1) {
        now = Moments{0, 0, 0};
        group_moments(&now, x, skip, width, length);
    }
    for (long g = 0; g < groups; ++g) {
        if (g == groups - 1) now = last;
        bool stats = g + 1 < groups - 1;
        // without statistics to take: the next item's last group, then its first, are what will be read next
        long ask = item + 1 >= batch ? 0 : g == groups - 1 ? n : n + channels * length;
        Moments next = {0, 0, 0};
        double rstd = deviation(&now, eps);
        float mean = (float)now.mean;
        for (long c = g * width; c < (g + 1) * width; ++c) {
            float a, b;
            coefficients(now.mean, rstd, scale[c], shift[c], &a, &b);
            long at = c * length;
            if (stats)
                row<true, true>(x + at, skip + at, out + at, gate, length, n, mean, a, b, &next);
            else if (c + 1 < channels)
                row<false, true>(x + at, skip + at, out + at, gate, length, ask, mean, a, b, &next);
            else
                row<false, false>(x + at, skip + at, out + at, gate, length, ask, mean, a, b, &next);
        }
        now = next;
    }
    _mm_sfence();
}
