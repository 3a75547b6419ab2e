// Writes around the caches where machine and address allow it, so that the line is not read first.
template <class T>
static inline void stream(T* p, vec v) {
    if ((unsigned long)p % sizeof v != 0 || sizeof(T) != sizeof(real)) return store(p, v);
#if defined(__AVX512F__)
    if constexpr (sizeof v == 64) return _mm512_stream_si512((__m512i*)p, (__m512i)v);
#endif
#if defined(__AVX__)
    if constexpr (sizeof v == 32) return _mm256_stream_si256((__m256i*)p, (__m256i)v);
#endif
#if defined(__SSE2__)
    if constexpr (sizeof v == 16) return _mm_stream_si128((__m128i*)p, (__m128i)v);
#endif
    store(p, v);
}

// How many of the n elements come before the first whole aligned vector.
template <class T>
static inline long unaligned(const T* p, long n) {
    long ahead = (sizeof(T) * LANES - (unsigned long)p % (sizeof(T) * LANES)) / sizeof(T) % LANES;
    return ahead < n ? ahead : n;
}

static inline void drain() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}
