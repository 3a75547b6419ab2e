// NaN wins. The machine's own maximum returns its second operand where one of them is NaN.
template <class V> static inline V larger(V a, V b) {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (sizeof(V) == 64 && sizeof(real) == 4) {
        const V found = __builtin_ia32_maxps512_mask(a, b, b, -1, 4);
        return a != a ? a : found;
    }
#endif
    return (a > b) | (a != a) ? a : b;
}
template <class V> static inline V smaller(V a, V b) {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (sizeof(V) == 64 && sizeof(real) == 4) {
        const V found = __builtin_ia32_minps512_mask(a, b, b, -1, 4);
        return a != a ? a : found;
    }
#endif
    return (a < b) | (a != a) ? a : b;
}
