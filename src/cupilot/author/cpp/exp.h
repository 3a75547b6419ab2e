// e to the power of x, to about 1 ulp over the whole range, denormal results included; NaN stays NaN.
static inline vec fast_exp(vec x) {
    x = at_least(at_most(x, 89.0f), -104.0f);  // from 88.73 on: infinity, from -104 down: zero
    const vec shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the low bits become round(x / ln 2)
    const vec n = shifted - 12582912.0f;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
#if defined(__AVX512F__) && !defined(__clang__) && LANES == 16
    return __builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
#else
    const ivec k = __builtin_bit_cast(ivec, shifted) - 0x4B400000, half = k >> 1;
    const vec one = __builtin_bit_cast(vec, (half + 127) << 23), two = __builtin_bit_cast(vec, (k - half + 127) << 23);
    return p * one * two;
#endif
}
