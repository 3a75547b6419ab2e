// e to the power of x, less one: without cancellation near zero.
static inline vec fast_expm1(vec x) {
    x = at_least(at_most(x, 89.0f), -20.0f);  // from -17.4 down: -1
    const vec shifted = x * 1.44269504f + 12582912.0f;
    const vec n = shifted - 12582912.0f;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    const ivec k = __builtin_bit_cast(ivec, shifted) - 0x4B400000;
    const vec half = __builtin_bit_cast(vec, (k + 126) << 23);  // half the power, which cannot overflow
    return (p * half + (half - 0.5f)) * 2.0f;
}
