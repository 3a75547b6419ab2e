// At most n elements that do not lie side by side.
template <class T>
static inline vec load_strided(const T* p, long stride, long n = LANES) {
    vec v = {};
    for (int l = 0; l < LANES && l < n; l++) v[l] = (real)p[l * stride];
    return v;
}
