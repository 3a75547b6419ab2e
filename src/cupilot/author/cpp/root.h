static inline vec root(vec x) {
#if defined(__AVX512F__)
    if constexpr (sizeof x == 64 && sizeof(real) == 4) return (vec)_mm512_sqrt_ps(__builtin_bit_cast(__m512, x));
#endif
    real a[LANES];
    memcpy(a, &x, sizeof a);
    for (int l = 0; l < LANES; l++) a[l] = __builtin_sqrt(a[l]);
    memcpy(&x, a, sizeof a);
    return x;
}
