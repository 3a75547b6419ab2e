// A function of the mathematics library on every element.
template <real (*F)(real)>
static inline vec each(vec x) {
    for (int l = 0; l < LANES; l++) x[l] = F(x[l]);
    return x;
}
