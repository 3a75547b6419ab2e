template <class T>
static inline void store_strided(T* p, long stride, vec v, long n = LANES) {
    for (int l = 0; l < LANES && l < n; l++) p[l * stride] = (T)v[l];
}
