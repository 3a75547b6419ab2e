template <class T>
static inline vec load(const T* p) {
    typedef T stored __attribute__((vector_size(sizeof(T) * LANES)));
    stored v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vec);
}

// At most n elements; the lanes behind them are zero.
template <class T>
static inline vec load(const T* p, long n) {
    if (n >= LANES) return load(p);
    vec v = {};
    for (int l = 0; l < n; l++) v[l] = (real)p[l];
    return v;
}
#if defined(__AVX512F__) && LANES == 16
static inline vec load(const float* p, long n) {
    return (vec)_mm512_maskz_loadu_ps(n < 16 ? (1 << n) - 1 : 0xffff, p);
}
#elif defined(__AVX__) && LANES == 8
static inline vec load(const float* p, long n) { return (vec)_mm256_maskload_ps(p, (__m256i)(lanes() < (int)n)); }
#endif
