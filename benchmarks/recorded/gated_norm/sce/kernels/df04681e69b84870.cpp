/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block goes round the groups of one
batch item, the last one first: statistics, then outputs from the cache, while the next group is being prefetched.
tune:
    LANES = 16 | 8
    UNROLL = 1 | 2
    CHUNK = 2048 | 4096
    TILE = 2048 | 1024
    NEWTON = 0 | 1
launch:
    batch, channels, length = x.shape
    item[batch](x, skip, scale, shift, out, batch, self.groups, channels // self.groups, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#if defined(__AVX512F__) && LANES == 16
#define WIDE 1
#else
#define WIDE 0
#endif

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
#if WIDE
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
#if WIDE
    v = (vec)_mm512_min_ps((__m512)high, (__m512)v);   // the second operand where one is NaN
    v = (vec)_mm512_max_ps((__m512)low, (__m512)v);
    // -v = n ln 2 - q with n a multiple of 1/16, whose fraction is in the lowest four bits of t
    const vec table = {1.0f,          1.0442737824f, 1.0905077327f, 1.1387886348f, 1.1892071150f, 1.2418578121f,
                       1.2968395547f, 1.3542555469f, 1.4142135624f, 1.4768261459f, 1.5422108254f, 1.6104903319f,
                       1.6817928305f, 1.7562521604f, 1.8340080864f, 1.9152065614f};
    vec t = v * -1.44269504088896341f + 786432.0f;
    vec n = t - 786432.0f;
    vec root = (vec)_mm512_permutexvar_ps((__m512i)t, (__m512)table);
    root = (vec)_mm512_scalef_ps((__m512)root, (__m512)n);   // times 2 to the floor of n
    vec q = v + n * 0.693359375f;
    q = q - n * 2.12194440e-4f;
    vec p = q * -1.6666667e-1f + 0.5f;
    p = p * q - 1.0f;
    p = p * q + 1.0f;
    vec d = root * p + 1.0f;
#if NEWTON
    __m512 r = _mm512_rcp14_ps((__m512)d);
    __m512 miss = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    // beyond 2^126, and at infinity, the first approximation stays
    __mmask16 inside = _mm512_cmp_ps_mask((__m512)d, _mm512_set1_ps(8.507059e37f), _CMP_NGE_UQ);
    return (vec)_mm512_mask_fmadd_ps(r, inside, miss, r);
#else
    return 1.0f / d;
#endif
#else
#if defined(__AVX__) && LANES == 8
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
    ivec k = __builtin_convertvector(n, ivec);
    ivec half = k >> 1;
    ivec one = (half + 127) << 23, two = (k - half + 127) << 23;
    vec e = p * (vec)one * (vec)two;
    return 1.0f / (1.0f + e);
#endif
}

// Rounded mean of a chunk.
INLINE float middle(const float* x, const float* s, long n) {
    vec sum[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < 4; ++k) sum[k] += load(x + i + k * LANES) + load(s + i + k * LANES);
    for (; i + LANES <= n; i += LANES) sum[0] += load(x + i) + load(s + i);
    if (i < n) sum[1] += load_part(x + i, n - i) + load_part(s + i, n - i);
    return (float)(total((sum[0] + sum[1]) + (sum[2] + sum[3])) / (double)n);
}

// Sums of d and of d * d for d = z - m.
INLINE void around(const float* x, const float* s, long n, float m, double& one, double& two) {
    vec first[4] = {}, second[4] = {};
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < 4; ++k) {
            vec d = (load(x + i + k * LANES) + load(s + i + k * LANES)) - m;
            first[k] += d;
            second[k] += d * d;
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
    one = total((first[0] + first[1]) + (first[2] + first[3]));
    two = total((second[0] + second[1]) + (second[2] + second[3]));
}

// The chunk again: around its own rounded mean, and in double where single precision does not hold the squares.
inline __attribute__((noinline)) void careful(const float* x, const float* s, long n, double& mean, double& squares) {
    double one, two;
    float m = middle(x, s, n);
    around(x, s, n, m, one, two);
    if (two < 1e36) {
        double correction = one / (double)n;
        mean = (double)m + correction;
        squares = two - one * correction;
        if (squares < 0) squares = 0;
        return;
    }
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

// Each chunk is first summed around the mean known so far, in one sweep; where that mean is no good for it, carefully.
INLINE Norm statistics(const float* x, const float* s, long n, double eps, float guess) {
    double count = 0, mean = 0, squares = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long m = n - i < CHUNK ? n - i : CHUNK;
        double one, two, cm, cs;
        around(x + i, s + i, m, guess, one, two);
        double correction = one / (double)m;
        if (two < 1e36 && one * correction <= 0.5 * two) {
            cm = (double)guess + correction;
            cs = two - one * correction;
        } else {
            careful(x + i, s + i, m, cm, cs);
        }
        double both = count + (double)m, delta = cm - mean;
        mean += delta * ((double)m / both);
        squares += cs + delta * delta * (count * (double)m / both);
        count = both;
        guess = (float)mean;
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
INLINE void row(const float* x, const float* s, float* o, float* gate, long n, long ahead, const Line& f) {
    long i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES) {
        vec k[UNROLL], y[UNROLL], w[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            const float* xu = x + i + u * LANES;
            const float* su = s + i + u * LANES;
            if (LANES >= 16 || u % 2 == 0) {
                __builtin_prefetch(xu + ahead, 0, 2);
                __builtin_prefetch(su + ahead, 0, 2);
            }
            w[u] = load(gate + i + u * LANES);
            k[u] = load(su);
            y[u] = affine<FOLD>(load(xu) + k[u], f);
        }
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            memcpy(gate + i + u * LANES, &y[u], sizeof(vec));
            w[u] = sigmoid(w[u]);
        }
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) store<STREAM>(o + i + u * LANES, k[u] + y[u] * w[u]);
    }
    for (; i + LANES <= n; i += LANES) {
        vec k = load(s + i);
        vec y = affine<FOLD>(load(x + i) + k, f);
        vec before = load(gate + i);
        memcpy(gate + i, &y, sizeof y);
        store<STREAM>(o + i, k + y * sigmoid(before));
    }
    if (i < n) {
        vec k = load_part(s + i, n - i);
        vec y = affine<FOLD>(load_part(x + i, n - i) + k, f);
        vec before = load(gate + i);
        memcpy(gate + i, &y, sizeof y);
        vec r = k + y * sigmoid(before);
        memcpy(o + i, &r, 4 * (n - i));
    }
}

// Channels first .. first + count - 1 with the statistics `own`; channel p, with `other`, comes before the first:
// its y is in `gate` already where `kept`.
INLINE void sweep(const float* x, const float* skip, const float* scale, const float* shift, float* out, float* gate,
                  bool kept, long first, long count, long p, Norm own, Norm other, long length, long aheadp,
                  long ahead) {
    Line before = line(other, scale[p], shift[p]);
    for (long j = 0; j < length; j += TILE) {
        long n = length - j < TILE ? length - j : TILE;
        if (!kept) {
            if (before.fold)
                begin<true>(x + p * length + j, skip + p * length + j, gate, n, aheadp, before);
            else
                begin<false>(x + p * length + j, skip + p * length + j, gate, n, aheadp, before);
        }
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
    long channels = groups * width, start = b * channels * length, n = width * length;
    x += start;
    skip += start;
    out += start;
    long last = (groups - 1) * width;
    // after the last round but one comes the next item's first: its last group
    long next = b + 1 < batch ? channels * length : 0;
    Norm end = {0, 0}, previous = {0, 0};
    bool kept = false;   // the channel before is the last one that was written, and a tile holds the whole of it
    // Round 0: the last group but for its channel 0; then the others in order; round `groups`: that channel 0.
    for (long k = 0; k <= groups; ++k) {
        long first, count, p, ahead, aheadp = 0;
        Norm own;
        if (k < groups) {
            long g = k == 0 ? groups - 1 : k - 1;
            own = statistics(x + g * n, skip + g * n, n, eps, previous.mean);
        } else {
            own = end;
        }
        if (k == 0) {
            end = own;
            previous = own;
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
        if (count > 0) {
            sweep(x, skip, scale, shift, out, gate, kept, first, count, p, own, previous, length, aheadp, ahead);
            kept = length <= TILE;
        }
        previous = own;
    }
    _mm_sfence();
}
