static inline real highest(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v = larger(v, halved(v, half));
    return v[0];
}

static inline real lowest(vec v) {
#pragma GCC unroll 16
    for (int half = LANES / 2; half > 0; half /= 2) v = smaller(v, halved(v, half));
    return v[0];
}
