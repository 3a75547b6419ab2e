// The largest (or smallest) of everything added so far and where it stands; NaN wins.
template <bool MAX, class V, class I>
struct Extreme {
    V best;
    I at;

    void add(V v, I where) {
        const auto take = (MAX ? v > best : v < best) | ((v != v) & (best == best));
        best = take ? v : best;
        at = take ? where : at;
    }
};
