template <class T>
static inline void store(T* p, vec v) {
    typedef T stored __attribute__((vector_size(sizeof(T) * LANES)));
    stored w = __builtin_convertvector(v, stored);
    memcpy(p, &w, sizeof w);
}

// At most n elements.
template <class T>
static inline void store(T* p, vec v, long n) {
    if (n >= LANES) return store(p, v);
    for (int l = 0; l < n; l++) p[l] = (T)v[l];
}
#if defined(__AVX512F__) && LANES == 16
static inline void store(float* p, vec v, long n) {
    _mm512_mask_storeu_ps(p, n < 16 ? (1 << n) - 1 : 0xffff, (__m512)v);
}
#elif defined(__AVX__) && LANES == 8
static inline void store(float* p, vec v, long n) { _mm256_maskstore_ps(p, (__m256i)(lanes() < (int)n), (__m256)v); }
#endif
