/* cupilot 1
GELU, exact. The error function is a quotient of two polynomials of degree five in x^2, good to 6 units of 2^-24, without
a branch or a call. The result goes around the caches where the machine can. One block is BLOCK elements.
tune:
    LANES = 16 | 8 | 4
    BLOCK = 16384 | 4096 | 32768
launch:
    n = x.numel
    gelu[cdiv(n, BLOCK)](x, out, n)
*/
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }

// Writes around the caches where the machine can, so that the line is not read first; p must be aligned for it.
static inline void stream(float* p, vec v) {
#if defined(__AVX512F__) && LANES == 16
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__) && LANES == 8
    _mm256_stream_ps(p, (__m256)v);
#else
    store(p, v);
#endif
}

static inline bool is_aligned(const float* p) { return (unsigned long)p % sizeof(vec) == 0; }

static inline vec gelu_of(vec x) {
    // From |x| = 5.5 on erf(x / sqrt(2)) is 1 in float. With s held at its bound the quotient reaches 1 by itself.
    vec s = x * x;
    s = s > 32.0f ? vec{} + 32.0f : s;
    vec p = s * 5.8724719309566353e-08f + 1.702369627309963e-05f;
    vec q = s * 1.5725821640444337e-06f + 1.0111387382494286e-04f;
    p = p * s + 4.703505546785891e-04f;
    q = q * s + 2.5893310084939003e-03f;
    p = p * s + 1.2739738449454308e-02f;
    q = q * s + 3.919981047511101e-02f;
    p = p * s + 9.321905672550201e-02f;
    q = q * s + 3.42396080493927e-01f;
    p = p * s + 1.0798437595367432f;
    q = q * s + 1.3533834218978882f;
    vec erf = x * (p / q);
    erf = erf > 1.0f ? vec{} + 1.0f : erf;
    erf = erf < -1.0f ? vec{} - 1.0f : erf;
    vec half = x * 0.5f;
    return half * erf + half;
}

extern "C" void gelu(long block, const float* x, float* out, long n) {
    long i = block * BLOCK, end = i + BLOCK < n ? i + BLOCK : n;
    if (is_aligned(out))
        for (; i + LANES <= end; i += LANES) stream(out + i, gelu_of(load(x + i)));
    for (; i + LANES <= end; i += LANES) store(out + i, gelu_of(load(x + i)));
    if (i < end) {
        vec v = {};
        memcpy(&v, x + i, 4 * (end - i));
        v = gelu_of(v);
        memcpy(out + i, &v, 4 * (end - i));
    }
#if defined(__SSE__)
    _mm_sfence();
#endif
}
