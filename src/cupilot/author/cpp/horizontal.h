// The lanes, the upper half of the first 2 * half under the lower.
static inline vec halved(vec v, int half) {
#if defined(__clang__)
    vec w = v;
    for (int l = 0; l < half; l++) w[l] = v[l + half];
    return w;
#else
    return __builtin_shuffle(v, lanes() ^ half);
#endif
}

static inline real total(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v += halved(v, half);
    return v[0];
}

static inline real product(vec v) {
    for (int l = 1; l < LANES; l++) v[0] *= v[l];
    return v[0];
}
