// The smaller, the larger of a vector and a number; NaN stays NaN.
static inline vec at_most(vec x, real high) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_minps512_mask(splat(high), x, x, -1, 4);
#else
    return x > high ? splat(high) : x;
#endif
}

static inline vec at_least(vec x, real low) {
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_maxps512_mask(splat(low), x, x, -1, 4);
#else
    return x < low ? splat(low) : x;
#endif
}
