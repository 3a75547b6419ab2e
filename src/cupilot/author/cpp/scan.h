// Running sums or products within a vector: every lane together with all before it, or BACK, behind it.
template <bool BACK, int DISTANCE, class V>
static inline V moved(V v, V fill) {
    constexpr int COUNT = sizeof(V) / sizeof(v[0]);
    decltype(v < v) from;
    for (int l = 0; l < COUNT; l++) {
        int source = BACK ? l + DISTANCE : l - DISTANCE;
        from[l] = source < 0 || source >= COUNT ? COUNT : source;
    }
    return __builtin_shuffle(v, fill, from);
}

struct Sums {
    vec lane;
    template <bool BACK, int DISTANCE = 1>
    static vec scanned(vec v) {
        if constexpr (DISTANCE < LANES) return scanned<BACK, DISTANCE * 2>(v + moved<BACK, DISTANCE>(v, vec{}));
        return v;
    }
    template <bool BACK>
    static Sums of(vec v) { return {scanned<BACK>(v)}; }
    vec after(double carry) const { return lane + (real)carry; }
    template <bool BACK>
    vec up_to(double carry) const { return moved<BACK, 1>(lane, vec{}) + (real)carry; }
    template <bool BACK>
    double all() const { return lane[BACK ? 0 : LANES - 1]; }
};

// In double precision, since a product of lanes alone may overflow where the running product does not.
struct Products {
    typedef double half __attribute__((vector_size(sizeof(double) * LANES / 2)));
    typedef real narrow __attribute__((vector_size(sizeof(real) * LANES / 2)));
    half low, high;
    template <bool BACK, int DISTANCE = 1>
    static half scanned(half v) {
        if constexpr (DISTANCE < LANES / 2)
            return scanned<BACK, DISTANCE * 2>(v * moved<BACK, DISTANCE>(v, 1 - half{}));
        return v;
    }
    template <bool BACK>
    static Products of(vec v) {
        narrow parts[2];
        memcpy(parts, &v, sizeof v);
        half low = scanned<BACK>(__builtin_convertvector(parts[0], half));
        half high = scanned<BACK>(__builtin_convertvector(parts[1], half));
        if (BACK) low *= high[0];
        else high *= low[LANES / 2 - 1];
        return {low, high};
    }
    vec after(double carry) const {
        narrow parts[2] = {__builtin_convertvector(low * carry, narrow), __builtin_convertvector(high * carry, narrow)};
        vec v;
        memcpy(&v, parts, sizeof v);
        return v;
    }
    template <bool BACK>
    double all() const { return BACK ? low[0] : high[LANES / 2 - 1]; }
};
