static inline vec root(vec x) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#else
    real a[LANES];
    memcpy(a, &x, sizeof a);
    for (int l = 0; l < LANES; l++) a[l] = __builtin_sqrt(a[l]);
    memcpy(&x, a, sizeof a);
    return x;
#endif
}
