template <real (*F)(real, real)>
static inline vec each(vec x, vec y) {
    for (int l = 0; l < LANES; l++) x[l] = F(x[l], y[l]);
    return x;
}
