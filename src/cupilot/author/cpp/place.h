// What the lanes found, as places from `start` on.
template <bool MAX>
static inline void settle(Extreme<MAX, real, long>& all, const Extreme<MAX, vec, ivec>& lane, long start) {
    for (int l = 0; l < LANES; l++) all.add(lane.best[l], start + lane.at[l]);
}
