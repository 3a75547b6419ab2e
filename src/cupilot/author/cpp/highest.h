static inline real highest(vec v) {
    real best = v[0];
    for (int l = 1; l < LANES; l++) best = larger(best, v[l]);
    return best;
}

static inline real lowest(vec v) {
    real best = v[0];
    for (int l = 1; l < LANES; l++) best = smaller(best, v[l]);
    return best;
}
