// Writes around the caches where machine and address allow it, so that the line is not read first.
template <class T>
static inline void stream(T* p, vec v) {
#if defined(__x86_64__) && !defined(__clang__)
    if constexpr (sizeof(T) == sizeof(real)) {
        if ((unsigned long)p % sizeof v != 0) return store(p, v);
#if defined(__AVX512F__)
        typedef long long wide __attribute__((vector_size(64)));
        if constexpr (sizeof v == 64) return __builtin_ia32_movntdq512((wide*)p, *(const wide*)&v);
#endif
#if defined(__AVX__)
        typedef long long half __attribute__((vector_size(32)));
        if constexpr (sizeof v == 32) return __builtin_ia32_movntdq256((half*)p, *(const half*)&v);
#endif
    }
#endif
    store(p, v);
}
template <class T>
static inline void stream(T* p, vec v, long n) { store(p, v, n); }

// How many of the n elements come before the first whole aligned vector.
template <class T>
static inline long unaligned(const T* p, long n) {
    long ahead = (sizeof(T) * LANES - (unsigned long)p % (sizeof(T) * LANES)) / sizeof(T) % LANES;
    return ahead < n ? ahead : n;
}

static inline void drain() {
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}
