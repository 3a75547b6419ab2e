// Truth values as all ones or all zeros.
static inline ivec load_mask(const bool* p, long n = LANES) {
    ivec v = {};
    for (int l = 0; l < LANES && l < n; l++) v[l] = p[l] ? -1 : 0;
    return v;
}
