// log(1 + x); what rounding 1 + x loses comes back as a correction.
static inline vec fast_log1p(vec x) {
    const vec u = x + 1.0f;
    const vec lost = (x - (u - 1.0f)) / u;
    return fast_log(u) + (magnitude(lost) < 1.0f ? lost : splat(0.0f));
}
