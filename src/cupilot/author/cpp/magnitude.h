template <class V> static inline V magnitude(V x) { return x < 0 ? -x : x + 0; }
