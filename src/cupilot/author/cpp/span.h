static inline long span() { return LANES; }
static inline long span(long n) { return n; }
