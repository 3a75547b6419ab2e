static inline real total(vec v) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) v[l] += v[l + half];
    return v[0];
}

static inline real product(vec v) {
    for (int l = 1; l < LANES; l++) v[0] *= v[l];
    return v[0];
}
