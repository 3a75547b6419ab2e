// Truth values as all ones or all zeros.
static inline ivec load_mask(const bool* p) {
    typedef signed char bytes __attribute__((vector_size(LANES)));
    bytes b;
    memcpy(&b, p, sizeof b);
    return __builtin_convertvector(b, ivec) != 0;
}
static inline ivec load_mask(const bool* p, long n) {
    ivec v = {};
    for (int l = 0; l < LANES && l < n; l++) v[l] = p[l] ? -1 : 0;
    return v;
}
