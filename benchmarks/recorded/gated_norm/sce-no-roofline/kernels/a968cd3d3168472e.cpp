/* cupilot 1
Residual sum, group normalisation and a gate from the channel before: chunk-wise moments of every group in one reading,
then runs of channels, tile by tile, with the normalised channel before kept in registers.
tune:
    LANES = 16 | 8
    TILE = 4 | 8 | 2
    RUN = 8 | 16 | 4
    CHUNK = 2048 | 1024
launch:
    batch, channels, length = x.shape
    width = channels // self.groups
    coef = scratch((batch, channels, 2), f32)
    moments[batch, self.groups](x, skip, coef, self.groups, width, length, self.eps)
    gate[batch, cdiv(channels, RUN)](x, skip, scale, shift, coef, out, channels, length)
*/
#include <math.h>
#include <string.h>

#define HALF (LANES / 2)
#define ACCS 4

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef unsigned uvec __attribute__((vector_size(4 * LANES)));
typedef float hvec __attribute__((vector_size(4 * HALF)));
typedef double dvec __attribute__((vector_size(8 * HALF)));

inline __attribute__((always_inline)) dvec both(const float* x, const float* skip) {
    hvec v, s;
    memcpy(&v, x, sizeof v);
    memcpy(&s, skip, sizeof s);
    v = v + s;
    return __builtin_convertvector(v, dvec);
}

inline __attribute__((always_inline)) double total(dvec v) {
    double t = 0;
    for (int k = 0; k < HALF; ++k) t += v[k];
    return t;
}

extern "C" void moments(long b, long g, const float* x, const float* skip, float* coef, long groups, long width,
                        long length, double eps) {
    long n = width * length, start = (b * groups + g) * n;
    x += start;
    skip += start;
    double count = 0, mean = 0, squares = 0;
    for (long from = 0; from < n; from += CHUNK) {
        long m = n - from < CHUNK ? n - from : CHUNK;
        const float* xs = x + from;
        const float* ss = skip + from;

        dvec part[ACCS] = {};
        long i = 0;
        for (; i + ACCS * HALF <= m; i += ACCS * HALF) {
#pragma GCC unroll 4
            for (int u = 0; u < ACCS; ++u) part[u] += both(xs + i + u * HALF, ss + i + u * HALF);
        }
        for (; i + HALF <= m; i += HALF) part[0] += both(xs + i, ss + i);
        double sum = total((part[0] + part[1]) + (part[2] + part[3]));
        for (; i < m; ++i) {
            float v = xs[i] + ss[i];
            sum += (double)v;
        }
        double here = sum / (double)m;

        dvec dev[ACCS] = {};
        i = 0;
        for (; i + ACCS * HALF <= m; i += ACCS * HALF) {
#pragma GCC unroll 4
            for (int u = 0; u < ACCS; ++u) {
                dvec d = both(xs + i + u * HALF, ss + i + u * HALF) - here;
                dev[u] += d * d;
            }
        }
        for (; i + HALF <= m; i += HALF) {
            dvec d = both(xs + i, ss + i) - here;
            dev[0] += d * d;
        }
        double found = total((dev[0] + dev[1]) + (dev[2] + dev[3]));
        for (; i < m; ++i) {
            float v = xs[i] + ss[i];
            double d = (double)v - here;
            found += d * d;
        }

        double all = count + (double)m;
        double delta = here - mean;
        double share = (double)m / all;
        mean += delta * share;
        squares += found + delta * delta * (count * share);
        count = all;
    }
    float centre = (float)mean;
    float inverse = (float)(1.0 / sqrt(squares / (double)n + eps));
    float* to = coef + (b * groups + g) * width * 2;
    for (long c = 0; c < width; ++c) {
        to[2 * c] = centre;
        to[2 * c + 1] = inverse;
    }
}

/* 1 / (1 + exp(-v)), with the exponential of -|v| so that it never overflows and small results keep their digits. */
inline __attribute__((always_inline)) vec sigmoid(vec v) {
    const vec zero = {};
    const vec one = zero + 1.0f;
    const vec low = zero - 104.0f;
    vec t = (vec)((uvec)v | 0x80000000u);
    t = t < low ? low : t;
    vec z = t * 1.44269504088896341f + 12582912.0f;
    vec n = z - 12582912.0f;
    vec r = t - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    vec rr = r * r;
    p = p * rr + r;
    p = p + 1.0f;
    vec power = (vec)(((uvec)z << 23) + (191u << 23));
    vec e = p * power;
    e = e * 0x1p-64f;
    vec top = v >= zero ? one : e;
    return top / (e + 1.0f);
}

template <bool PART>
inline __attribute__((always_inline)) vec load(const float* from, long count) {
    vec v = {};
    if (PART)
        memcpy(&v, from, 4 * count);
    else
        memcpy(&v, from, sizeof v);
    return v;
}

template <int N, bool PART>
inline __attribute__((always_inline)) void sweep(const float* x, const float* skip, const float* scale,
                                                 const float* shift, const float* coef, float* out, long first,
                                                 long last, long channels, long length, long i, long count) {
    vec before[N];
    {
        long p = first == 0 ? channels - 1 : first - 1;
        float mean = coef[2 * p], inverse = coef[2 * p + 1], a = scale[p], c = shift[p];
        const float* xs = x + p * length + i;
        const float* ss = skip + p * length + i;
#pragma GCC unroll 8
        for (int u = 0; u < N; ++u) {
            vec v = load<PART>(xs + u * LANES, count) + load<PART>(ss + u * LANES, count);
            before[u] = ((v - mean) * inverse) * a + c;
        }
    }
    for (long k = first; k < last; ++k) {
        float mean = coef[2 * k], inverse = coef[2 * k + 1], a = scale[k], c = shift[k];
        const float* xs = x + k * length + i;
        const float* ss = skip + k * length + i;
        float* to = out + k * length + i;
#pragma GCC unroll 8
        for (int u = 0; u < N; ++u) {
            vec s = load<PART>(ss + u * LANES, count);
            vec v = load<PART>(xs + u * LANES, count) + s;
            vec y = ((v - mean) * inverse) * a + c;
            vec result = y * sigmoid(before[u]) + s;
            before[u] = y;
            if (PART)
                memcpy(to + u * LANES, &result, 4 * count);
            else
                memcpy(to + u * LANES, &result, sizeof result);
        }
    }
}

extern "C" void gate(long b, long block, const float* x, const float* skip, const float* scale, const float* shift,
                     const float* coef, float* out, long channels, long length) {
    long first = block * RUN;
    long last = first + RUN < channels ? first + RUN : channels;
    x += b * channels * length;
    skip += b * channels * length;
    out += b * channels * length;
    coef += b * channels * 2;
    long i = 0;
    for (; i + TILE * LANES <= length; i += TILE * LANES)
        sweep<TILE, false>(x, skip, scale, shift, coef, out, first, last, channels, length, i, LANES);
    for (; i + LANES <= length; i += LANES)
        sweep<1, false>(x, skip, scale, shift, coef, out, first, last, channels, length, i, LANES);
    if (i < length)
        sweep<1, true>(x, skip, scale, shift, coef, out, first, last, channels, length, i, length - i);
}
