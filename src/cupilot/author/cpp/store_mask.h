static inline void store_mask(bool* p, ivec v, long n = LANES) {
    for (int l = 0; l < LANES && l < n; l++) p[l] = v[l] != 0;
}
