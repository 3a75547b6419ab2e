// Running sums or products within a vector: every lane together with all before it, or BACK, behind it.
struct Sums {
    typedef vec wide;
    static constexpr real none = 0;
    template <class V> static V of(V a, V b) { return a + b; }
};

// In double precision, since a product of lanes alone may overflow where the running product does not.
struct Products {
    typedef double wide __attribute__((vector_size(sizeof(double) * LANES)));
    static constexpr double none = 1;
    template <class V> static V of(V a, V b) { return a * b; }
};

template <class Op, bool BACK, int DISTANCE>
static inline typename Op::wide moved(typename Op::wide v) {
    typedef decltype(v < v) places;
    places from;
    for (int l = 0; l < LANES; l++) {
        int source = BACK ? l + DISTANCE : l - DISTANCE;
        from[l] = source < 0 || source >= LANES ? LANES : source;
    }
    return __builtin_shuffle(v, Op::none - typename Op::wide{}, from);
}

template <class Op, bool BACK, int DISTANCE = 1>
static inline typename Op::wide scanned(typename Op::wide v) {
    if constexpr (DISTANCE < LANES)
        return scanned<Op, BACK, DISTANCE * 2>(Op::of(v, moved<Op, BACK, DISTANCE>(v)));
    else
        return v;
}
