/* cupilot 1
Residual sum, group normalisation and a gate from the channel before, in one launch: a block goes round the groups of one
batch item, the last one first; the sweep that writes a group's outputs also gathers the next group's statistics.
tune:
    LANES = 16 | 8
    AHEAD = 1024 | 512
    TABLE = 1 | 0
    NEWTON = 0 | 1
    AROUND = 1 | 0
    TILE = 2048
    CHUNK = 2048
    FIRST = 256
where:
    LANES == 16 or TABLE + NEWTON == 0
launch:
    batch, channels, length = x.shape
    item[batch](x, skip, scale, shift, out, batch, self.groups, channels // self.groups, length, self.eps)
*/
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define APART inline __attribute__((noinline))
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
    if (STREAM && AROUND) {
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
#elif defined(__AVX__) && LANES == 8
    v = (vec)_mm256_min_ps((__m256)high, (__m256)v);
    v = (vec)_mm256_max_ps((__m256)low, (__m256)v);
#else
    v = v > high ? high : v;
    v = v < low ? low : v;
#endif
    // q is minus the reduced argument, hence the signs of the odd coefficients
#if WIDE && TABLE
    // -v = n ln 2 - q with n a multiple of 1/16, whose fraction is in the lowest four bits of t
    const vec roots = {1.0f,          1.0442737824f, 1.0905077327f, 1.1387886348f, 1.1892071150f, 1.2418578121f,
                       1.2968395547f, 1.3542555469f, 1.4142135624f, 1.4768261459f, 1.5422108254f, 1.6104903319f,
                       1.6817928305f, 1.7562521604f, 1.8340080864f, 1.9152065614f};
    vec t = v * -1.44269504088896341f + 786432.0f;
    vec n = t - 786432.0f;
    vec root = (vec)_mm512_permutexvar_ps((__m512i)t, (__m512)roots);
    root = (vec)_mm512_scalef_ps((__m512)root, (__m512)n);   // times 2 to the floor of n
    vec q = v + n * 0.693147182464599609f;                   // the product is exact; ln 2 is good to 2e-9
    vec p = q * -1.6666667e-1f + 0.5f;
    p = p * q - 1.0f;
    p = p * q + 1.0f;
    vec d = root * p + 1.0f;
#else
    vec n = (v * -1.44269504088896341f + 12582912.0f) - 12582912.0f;
    vec q = v + n * 0.693359375f;
    q = q - n * 2.12194440e-4f;
    vec p = q * 1.3888889e-3f - 8.3750300e-3f;
    p = p * q + 4.1666667e-2f;
    p = p * q - 1.6666416e-1f;
    p = p * q + 0.5f;
    p = p * q - 1.0f;
    p = p * q + 1.0f;
#if WIDE
    vec d = (vec)_mm512_scalef_ps((__m512)p, (__m512)n) + 1.0f;
#else
    ivec k = __builtin_convertvector(n, ivec);
    ivec half = k >> 1;
    ivec one = (half + 127) << 23, two = (k - half + 127) << 23;
    vec d = p * (vec)one * (vec)two + 1.0f;
#endif
#endif
#if WIDE && NEWTON
    __m512 r = _mm512_rcp14_ps((__m512)d);
    __m512 miss = _mm512_fnmadd_ps((__m512)d, r, _mm512_set1_ps(1.0f));
    // beyond 2^126, and at infinity, the first approximation stays
    __mmask16 inside = _mm512_cmp_ps_mask((__m512)d, _mm512_set1_ps(8.507059e37f), _CMP_NGE_UQ);
    return (vec)_mm512_mask_fmadd_ps(r, inside, miss, r);
#else
    return 1.0f / d;
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

// z of the last n < LANES elements, and m in the other lanes
INLINE vec rest(const float* x, const float* s, long n, float m) {
    vec z = load_part(x, n) + load_part(s, n);
    vec full = splat(m);
    memcpy(&full, &z, 4 * n);
    return full;
}

// Mean, and sum of squares around it, of one chunk.
INLINE void chunk(const float* x, const float* s, long n, double& mean, double& squares) {
    float m = middle(x, s, n);
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
        vec d = rest(x + i, s + i, n - i, m) - m;
        first[1] += d;
        second[1] += d * d;
    }
    double one = total((first[0] + first[1]) + (first[2] + first[3]));
    double two = total((second[0] + second[1]) + (second[2] + second[3]));
    if (two < 1e36) {
        double correction = one / (double)n;
        mean = (double)m + correction;
        squares = two - one * correction;
        if (squares < 0) squares = 0;
        return;
    }
    // Too large for single precision, or not finite: again in double.
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

INLINE Norm norm_of(double mean, double squares, long n, double eps) {
    Norm norm;
    norm.mean = (float)mean;
    norm.rstd = (float)(1.0 / sqrt(squares / (double)n + eps));
    return norm;
}

// A group's statistics in a sweep of their own.
APART Norm statistics(const float* x, const float* s, long n, double eps) {
    double count = 0, mean = 0, squares = 0;
    for (long i = 0; i < n; i += CHUNK) {
        long m = n - i < CHUNK ? n - i : CHUNK;
        double cm, cs;
        chunk(x + i, s + i, m, cm, cs);
        double both = count + (double)m, delta = cm - mean;
        mean += delta * ((double)m / both);
        squares += cs + delta * delta * (count * (double)m / both);
        count = both;
    }
    return norm_of(mean, squares, n, eps);
}

// The same in one sweep around the mean of the first elements; where that is no good, as above.
APART Norm opening(const float* x, const float* s, long n, double eps) {
    float m = middle(x, s, n < FIRST ? n : FIRST);
    double one = 0, two = 0;
    for (long j = 0; j < n; j += CHUNK) {
        long end = n - j < CHUNK ? n : j + CHUNK, i = j;
        vec first[4] = {}, second[4] = {};
        for (; i + 4 * LANES <= end; i += 4 * LANES)
            for (int k = 0; k < 4; ++k) {
                vec d = (load(x + i + k * LANES) + load(s + i + k * LANES)) - m;
                first[k] += d;
                second[k] += d * d;
            }
        for (; i + LANES <= end; i += LANES) {
            vec d = (load(x + i) + load(s + i)) - m;
            first[0] += d;
            second[0] += d * d;
        }
        if (i < end) {
            vec d = rest(x + i, s + i, end - i, m) - m;
            first[1] += d;
            second[1] += d * d;
        }
        one += total((first[0] + first[1]) + (first[2] + first[3]));
        two += total((second[0] + second[1]) + (second[2] + second[3]));
    }
    double correction = one / (double)n;
    if (two < 1e36 && one * correction <= 0.75 * two)
        return norm_of((double)m + correction, two - one * correction, n, eps);
    return statistics(x, s, n, eps);
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

// The next group's statistics around `middle`, gathered so far.
struct Sums {
    double one, two;
    float middle;
};

template <bool STATS> INLINE void gather(const float* x, const float* s, float middle, vec& one, vec& two) {
    if (STATS) {
        __builtin_prefetch(x + AHEAD, 0, 3);
        __builtin_prefetch(s + AHEAD, 0, 3);
        vec d = (load(x) + load(s)) - middle;
        one += d;
        two += d * d;
    } else {
        __builtin_prefetch(x, 0, 2);
        __builtin_prefetch(s, 0, 2);
    }
}

template <bool STATS> INLINE void finish(const float* x, const float* s, long n, vec* one, vec* two, Sums& sums) {
    if (STATS) {
        if (n > 0) {
            vec d = rest(x, s, n, sums.middle) - sums.middle;
            one[1] += d;
            two[1] += d * d;
        }
        sums.one += total(one[0] + one[1]);
        sums.two += total(two[0] + two[1]);
    }
}

// y of the channel before, on a tile of columns; `next` elements further on is the same place in the next group
template <bool FOLD, bool STATS>
INLINE void begin(const float* x, const float* s, float* gate, long n, long next, const Line& f, Sums& sums) {
    vec one[2] = {}, two[2] = {};
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (STATS) gather<STATS>(x + i + next, s + i + next, sums.middle, one[0], two[0]);
        vec y = affine<FOLD>(load(x + i) + load(s + i), f);
        memcpy(gate + i, &y, sizeof y);
    }
    if (i < n) {
        vec y = affine<FOLD>(load_part(x + i, n - i) + load_part(s + i, n - i), f);
        memcpy(gate + i, &y, sizeof y);
    }
    finish<STATS>(x + i + next, s + i + next, n - i, one, two, sums);
}

template <bool FOLD, bool STREAM, bool STATS>
INLINE void cell(const float* x, const float* s, float* o, float* gate, long next, const Line& f, float middle, vec& one,
                 vec& two) {
    gather<STATS>(x + next, s + next, middle, one, two);
    vec k = load(s);
    vec y = affine<FOLD>(load(x) + k, f);
    vec before = load(gate);
    memcpy(gate, &y, sizeof y);
    store<STREAM>(o, k + y * sigmoid(before));
}

template <bool FOLD, bool STREAM, bool STATS>
APART void row(const float* x, const float* s, float* o, float* gate, long n, long next, const Line& line, Sums& sums) {
    const Line f = line;
    const float middle = sums.middle;
    vec one[2] = {}, two[2] = {};
    long i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        cell<FOLD, STREAM, STATS>(x + i, s + i, o + i, gate + i, next, f, middle, one[0], two[0]);
        cell<FOLD, STREAM, STATS>(x + i + LANES, s + i + LANES, o + i + LANES, gate + i + LANES, next, f, middle, one[1],
                                  two[1]);
    }
    if (i + LANES <= n) {
        cell<FOLD, STREAM, STATS>(x + i, s + i, o + i, gate + i, next, f, middle, one[0], two[0]);
        i += LANES;
    }
    if (i < n) {
        vec k = load_part(s + i, n - i);
        vec y = affine<FOLD>(load_part(x + i, n - i) + k, f);
        vec before = load(gate + i);
        memcpy(gate + i, &y, sizeof y);
        vec r = k + y * sigmoid(before);
        memcpy(o + i, &r, 4 * (n - i));
    }
    finish<STATS>(x + i + next, s + i + next, n - i, one, two, sums);
}

template <bool STATS>
INLINE void any_row(const float* x, const float* s, float* o, float* gate, long n, long next, const Line& f,
                    Sums& sums) {
    bool stream = (unsigned long)o % (4 * LANES) == 0;
    if (f.fold && stream)
        row<true, true, STATS>(x, s, o, gate, n, next, f, sums);
    else if (f.fold)
        row<true, false, STATS>(x, s, o, gate, n, next, f, sums);
    else if (stream)
        row<false, true, STATS>(x, s, o, gate, n, next, f, sums);
    else
        row<false, false, STATS>(x, s, o, gate, n, next, f, sums);
}

extern "C" void item(long b, const float* x, const float* skip, const float* scale, const float* shift, float* out,
                     long batch, long groups, long width, long length, double eps) {
    alignas(64) float gate[TILE];
    long channels = groups * width, start = b * channels * length, n = width * length;
    x += start;
    skip += start;
    out += start;
    long last = (groups - 1) * width;
    long item = b + 1 < batch ? channels * length : 0;
    Norm end = opening(x + last * length, skip + last * length, n, eps);
    Norm own = end, previous = end;
    bool kept = false;   // the channel before was written last, and a tile holds the whole of its y
    // Round 0: the last group but for its channel 0; then the others in order; round `groups`: that channel 0.
    for (long k = 0; k <= groups; ++k) {
        long first, count, next;
        bool gathers = k + 1 < groups;   // the next group in the ring still lacks its statistics
        if (k == 0) {
            first = last + 1;
            count = width - 1;
            next = groups > 1 ? -last * length : item;
        } else if (k < groups) {
            first = (k - 1) * width;
            count = width;
            next = gathers ? n : item ? item + n : 0;
        } else {
            own = end;
            first = last;
            count = 1;
            next = 0;
        }
        long p = k == 0 ? last : first == 0 ? channels - 1 : first - 1;
        const float* xg = x + k * n;   // the next group's, where it gathers
        const float* sg = skip + k * n;
        Sums sums = {0, 0, 0};
        if (gathers) sums.middle = middle(xg, sg, n < FIRST ? n : FIRST);
        Line before = line(previous, scale[p], shift[p]);
        for (long j = 0; j < length; j += TILE) {
            long m = length - j < TILE ? length - j : TILE;
            const float* xp = x + p * length + j;
            const float* sp = skip + p * length + j;
            if (k == 0 && gathers) {
                // the last group's channel 0, with the statistics of group 0's channel 0
                if (before.fold)
                    begin<true, true>(xp, sp, gate, m, next, before, sums);
                else
                    begin<false, true>(xp, sp, gate, m, next, before, sums);
            } else if (!kept) {
                if (before.fold)
                    begin<true, false>(xp, sp, gate, m, 0, before, sums);
                else
                    begin<false, false>(xp, sp, gate, m, 0, before, sums);
            }
            for (long c = first; c < first + count; ++c) {
                Line f = line(own, scale[c], shift[c]);
                long at = c * length + j;
                if (gathers)
                    any_row<true>(x + at, skip + at, out + at, gate, m, next, f, sums);
                else
                    any_row<false>(x + at, skip + at, out + at, gate, m, next, f, sums);
            }
        }
        kept = count > 0 && length <= TILE;
        previous = own;
        if (gathers) {
            double correction = sums.one / (double)n;
            if (sums.two < 1e36 && sums.one * correction <= 0.75 * sums.two)
                own = norm_of((double)sums.middle + correction, sums.two - sums.one * correction, n, eps);
            else
                own = statistics(xg, sg, n, eps);
        }
    }
    _mm_sfence();
}
