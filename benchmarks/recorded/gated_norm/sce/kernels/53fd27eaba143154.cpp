/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block goes round the groups of one
batch item, the last one first: statistics, then outputs from the cache, while the next group is being prefetched. The
channels are scanned line by line; the line of y that gates the next channel is carried from group to group.
tune:
    LANES = 16 | 8
    CHUNK = 1024 | 2048
    TILE = 2048 | 4096
launch:
    batch, channels, length = x.shape
    item[batch](x, skip, scale, shift, out, batch, self.groups, channels // self.groups, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

INLINE vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vec load_part(const float* p, long n) {
    vec v = {};
    memcpy(&v, p, 4 * n);
    return v;
}

INLINE vec splat(float f) {
    vec zero = {};
    return zero + f;
}

template <bool STREAM> INLINE void store(float* p, vec v) {
    if (STREAM) {
#if defined(__AVX512F__) && LANES == 16
        _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
        for (int k = 0; k < LANES; k += 8) {
            __m256 part;
            memcpy(&part, (const char*)&v + 4 * k, 32);
            _mm256_stream_ps(p + k, part);
        }
#else
        for (int k = 0; k < LANES; k += 4) {
            __m128 part;
            memcpy(&part, (const char*)&v + 4 * k, 16);
            _mm_stream_ps(p + k, part);
        }
#endif
    } else {
        memcpy(p, &v, sizeof v);
    }
}

// Sum of the lanes in double, as a tree.
INLINE double total(vec v) {
    double a[LANES];
    for (int k = 0; k < LANES; ++k) a[k] = v[k];
    for (int h = LANES / 2; h > 0; h /= 2)
        for (int k = 0; k < h; ++k) a[k] += a[k + h];
    return a[0];
}

// 1 / (1 + exp(-v)): 1 and 0 at the ends, NaN passes.
INLINE vec sigmoid(vec v) {
    vec high = splat(104.0f), low = splat(-104.0f);
#if defined(__AVX512F__) && LANES == 16
    v = (vec)_mm512_min_ps((__m512)high, (__m512)v);   // the second operand where one is NaN
    v = (vec)_mm512_max_ps((__m512)low, (__m512)v);
#elif defined(__AVX__) && LANES == 8
    v = (vec)_mm256_min_ps((__m256)high, (__m256)v);
    v = (vec)_mm256_max_ps((__m256)low, (__m256)v);
#else
    v = v > high ? high : v;
    v = v < low ? low : v;
#endif
    vec n = (v * -1.44269504088896341f + 12582912.0f) - 12582912.0f;
    // q is minus the reduced argument, hence the signs of the odd coefficients
    vec q = v + n * 0.693359375f;
    q = q - n * 2.12194440e-4f;
    vec p = q * 1.3888889e-3f - 8.3750300e-3f;
    p = p * q + 4.1666667e-2f;
    p = p * q - 1.6666416e-1f;
    p = p * q + 0.5f;
    p = p * q - 1.0f;
    p = p * q + 1.0f;
#if defined(__AVX512F__) && LANES == 16
    vec e = (vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    ivec k = __builtin_convertvector(n, ivec);
    ivec half = k >> 1;
    ivec one = (half + 127) << 23, two = (k - half + 127) << 23;
    vec e = p * (vec)one * (vec)two;
#endif
    return 1.0f / (1.0f + e);
}

INLINE double total4(const vec* v) { return total((v[0] + v[1]) + (v[2] + v[3])); }

// Rounded mean of a chunk.
INLINE float middle(const float* x, const float* s, long n) {
    vec sum[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < 4; ++k) sum[k] += load(x + i + k * LANES) + load(s + i + k * LANES);
    for (; i + LANES <= n; i += LANES) sum[0] += load(x + i) + load(s + i);
    if (i < n) sum[1] += load_part(x + i, n - i) + load_part(s + i, n - i);
    return (float)(total4(sum) / (double)n);
}

// The last of four vectors asks for its line of the next group; the output sweep asks for those of the others.
INLINE void fetch(const float* x, const float* s, long ahead) {
    __builtin_prefetch(x + 3 * LANES + ahead, 0, 2);
    __builtin_prefetch(s + 3 * LANES + ahead, 0, 2);
}

// Sums of d and d * d over a chunk, d = z - m.
INLINE void around(const float* x, const float* s, long n, long ahead, float m, double& one, double& two) {
    vec first[4] = {}, second[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        fetch(x + i, s + i, ahead);
        for (int k = 0; k < 4; ++k) {
            vec d = (load(x + i + k * LANES) + load(s + i + k * LANES)) - m;
            first[k] += d;
            second[k] += d * d;
        }
    }
    for (; i + LANES <= n; i += LANES) {
        vec d = (load(x + i) + load(s + i)) - m;
        first[0] += d;
        second[0] += d * d;
    }
    if (i < n) {
        vec z = load_part(x + i, n - i) + load_part(s + i, n - i);
        vec full = splat(m);
        memcpy(&full, &z, 4 * (n - i));
        vec d = full - m;
        first[1] += d;
        second[1] += d * d;
    }
    one = total4(first);
    two = total4(second);
}

// Both for two whole chunks in a row: the sums around m of the first, while the second comes in; its rounded mean.
INLINE float around_and_middle(const float* x, const float* s, long ahead, float m, double& one, double& two) {
    vec first[4] = {}, second[4] = {}, sum[4] = {};
    for (long i = 0; i < CHUNK; i += 4 * LANES) {
        fetch(x + i, s + i, ahead);
        for (int k = 0; k < 4; ++k) {
            const float* xk = x + i + k * LANES;
            const float* sk = s + i + k * LANES;
            sum[k] += load(xk + CHUNK) + load(sk + CHUNK);
            vec d = (load(xk) + load(sk)) - m;
            first[k] += d;
            second[k] += d * d;
        }
    }
    one = total4(first);
    two = total4(second);
    return (float)(total4(sum) / (double)CHUNK);
}

// A chunk in double: too large for single precision, or not finite.
inline __attribute__((noinline)) void in_double(const float* x, const float* s, long n, double& mean,
                                                double& squares) {
    double a = 0, b = 0;
    for (long j = 0; j < n; ++j) a += (double)(x[j] + s[j]);
    a /= (double)n;
    for (long j = 0; j < n; ++j) {
        double d = (double)(x[j] + s[j]) - a;
        b += d * d;
    }
    mean = a;
    squares = b;
}

struct Norm {
    float mean, rstd;
};

INLINE Norm statistics(const float* x, const float* s, long n, long ahead, double eps) {
    double count = 0, mean = 0, squares = 0;
    float now = middle(x, s, n < CHUNK ? n : CHUNK), then = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long m = n - i < CHUNK ? n - i : CHUNK;
        double one, two, cm, cs;
        if (n - i >= 2 * CHUNK) {
            then = around_and_middle(x + i, s + i, ahead, now, one, two);
        } else {
            around(x + i, s + i, m, ahead, now, one, two);
            if (i + CHUNK < n) then = middle(x + i + CHUNK, s + i + CHUNK, n - i - CHUNK);
        }
        if (two < 1e36) {
            double correction = one / (double)m;
            cm = (double)now + correction;
            cs = two - one * correction;
            if (cs < 0) cs = 0;
        } else {
            in_double(x + i, s + i, m, cm, cs);
        }
        now = then;
        double both = count + (double)m, delta = cm - mean;
        mean += delta * ((double)m / both);
        squares += cs + delta * delta * (count * (double)m / both);
        count = both;
    }
    Norm norm;
    norm.mean = (float)mean;
    norm.rstd = (float)(1.0 / sqrt(squares / (double)n + eps));
    return norm;
}

struct Line {
    float mean, rstd, scale, factor, shift;
    bool fold;   // rstd * scale is a normal number
};

INLINE Line line(Norm norm, float scale, float shift) {
    Line f;
    f.mean = norm.mean;
    f.rstd = norm.rstd;
    f.scale = scale;
    f.factor = norm.rstd * scale;
    f.shift = shift;
    float size = fabsf(f.factor);
    f.fold = size > 1e-30f && size < 1e37f;
    return f;
}

template <bool FOLD> INLINE vec affine(vec z, const Line& f) {
    vec d = z - f.mean;
    if (FOLD) return d * f.factor + f.shift;
    return (d * f.rstd) * f.scale + f.shift;
}

// y of the channel before, on a tile of columns
template <bool FOLD>
INLINE void begin(const float* x, const float* s, float* gate, long n, long ahead, const Line& f) {
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (ahead) {
            __builtin_prefetch(x + i + ahead, 0, 2);
            __builtin_prefetch(s + i + ahead, 0, 2);
        }
        vec y = affine<FOLD>(load(x + i) + load(s + i), f);
        memcpy(gate + i, &y, sizeof y);
    }
    if (i < n) {
        vec y = affine<FOLD>(load_part(x + i, n - i) + load_part(s + i, n - i), f);
        memcpy(gate + i, &y, sizeof y);
    }
}

template <bool FOLD, bool STREAM>
INLINE void cell(const float* x, const float* s, float* o, float* gate, const Line& f) {
    vec k = load(s);
    vec y = affine<FOLD>(load(x) + k, f);
    vec before = load(gate);
    memcpy(gate, &y, sizeof y);
    store<STREAM>(o, k + y * sigmoid(before));
}

template <bool FOLD, bool STREAM>
INLINE void row(const float* x, const float* s, float* o, float* gate, long n, long ahead, const Line& f) {
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) {
            long j = i + u * LANES;
            if (LANES >= 16 ? u < 3 : u == 0) {
                __builtin_prefetch(x + j + ahead, 0, 2);
                __builtin_prefetch(s + j + ahead, 0, 2);
            }
            cell<FOLD, STREAM>(x + j, s + j, o + j, gate + j, f);
        }
    }
    for (; i + LANES <= n; i += LANES) cell<FOLD, STREAM>(x + i, s + i, o + i, gate + i, f);
    if (i < n) {
        vec k = load_part(s + i, n - i);
        vec y = affine<FOLD>(load_part(x + i, n - i) + k, f);
        vec before = load(gate + i);
        memcpy(gate + i, &y, sizeof y);
        vec r = k + y * sigmoid(before);
        memcpy(o + i, &r, 4 * (n - i));
    }
}

// Channels first .. first + count - 1 with the statistics `own`; channel p, with `other`, comes before the first: `gate`
// already holds its y where it is carried.
INLINE void sweep(const float* x, const float* skip, const float* scale, const float* shift, float* out, float* gate,
                  bool carried, long first, long count, long p, Norm own, Norm other, long length, long aheadp,
                  long ahead) {
    Line before = line(other, scale[p], shift[p]);
    for (long j = 0; j < length; j += TILE) {
        long n = length - j < TILE ? length - j : TILE;
        if (carried)
            ;
        else if (before.fold)
            begin<true>(x + p * length + j, skip + p * length + j, gate, n, aheadp, before);
        else
            begin<false>(x + p * length + j, skip + p * length + j, gate, n, aheadp, before);
        for (long c = first; c < first + count; ++c) {
            Line f = line(own, scale[c], shift[c]);
            const float* xs = x + c * length + j;
            const float* ss = skip + c * length + j;
            float* os = out + c * length + j;
            bool stream = (unsigned long)os % (4 * LANES) == 0;
            if (f.fold) {
                if (stream)
                    row<true, true>(xs, ss, os, gate, n, ahead, f);
                else
                    row<true, false>(xs, ss, os, gate, n, ahead, f);
            } else {
                if (stream)
                    row<false, true>(xs, ss, os, gate, n, ahead, f);
                else
                    row<false, false>(xs, ss, os, gate, n, ahead, f);
            }
        }
    }
}

extern "C" void item(long b, const float* x, const float* skip, const float* scale, const float* shift, float* out,
                     long batch, long groups, long width, long length, double eps) {
    alignas(64) float gate[TILE];
    bool carried = false;
    long channels = groups * width, start = b * channels * length, n = width * length;
    x += start;
    skip += start;
    out += start;
    long last = (groups - 1) * width;
    // after the last round but one comes the next item's first: its last group
    long next = b + 1 < batch ? channels * length : 0;
    Norm end = {0, 0}, previous = {0, 0};
    // Round 0: the last group but for its channel 0; then the others in order; round `groups`: that channel 0.
    for (long k = 0; k <= groups; ++k) {
        long first, count, p, ahead, aheadp = 0;
        if (k == 0) {
            first = last + 1;
            count = width - 1;
            p = last;
            ahead = groups > 1 ? -last * length : next;
            aheadp = ahead;
        } else if (k < groups) {
            first = (k - 1) * width;
            count = width;
            p = first == 0 ? channels - 1 : first - 1;
            ahead = k + 1 < groups ? n : next ? next + n : 0;
        } else {
            first = last;
            count = 1;
            p = last == 0 ? channels - 1 : last - 1;
            ahead = 0;
        }
        Norm own = end;
        if (k < groups) {
            long g = k == 0 ? groups - 1 : k - 1;
            own = statistics(x + g * n, skip + g * n, n, ahead, eps);
        }
        if (k == 0) end = previous = own;
        sweep(x, skip, scale, shift, out, gate, carried, first, count, p, own, previous, length, aheadp, ahead);
        carried = length <= TILE;   // a strip as wide as the rows: it ends with the y that comes before the next round
        previous = own;
    }
    _mm_sfence();
}
