// NaN wins.
template <class V> static inline V larger(V a, V b) { return (a > b) | (a != a) ? a : b; }
template <class V> static inline V smaller(V a, V b) { return (a < b) | (a != a) ? a : b; }
