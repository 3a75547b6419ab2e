// The natural logarithm, to about 1 ulp; denormals are scaled up first.
static inline vec fast_log(vec x) {
    const auto tiny = x < 1.17549435e-38f;
    const vec y = tiny ? x * 8388608.0f : x;
    ivec bits = __builtin_bit_cast(ivec, y) - 0x3F3504F3;  // sqrt(1/2): the mantissa goes to [sqrt(1/2), sqrt(2))
    const ivec k = bits >> 23;
    const vec f = __builtin_bit_cast(vec, (bits & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
    const vec n = as_real(k) - (tiny ? splat(23.0f) : splat(0.0f));
    vec p = splat(7.0376836292e-2f);
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    const vec square = f * f;
    const vec small = f * square * p - n * 2.12194440e-4f - square * 0.5f;
    vec result = f + small + n * 0.693359375f;
    result = x == __builtin_inff() ? x : result;
    result = x == 0.0f ? splat(-__builtin_inff()) : result;
    return (x < 0.0f) | (x != x) ? splat(__builtin_nanf("")) : result;
}
