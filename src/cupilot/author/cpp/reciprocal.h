// Two factors that together divide by b: neither overflows or loses bits where the quotient does not.
template <class V>
static inline V rescale(V b) {
    const V size = b < 0 ? -b : b + 0;
    return size < (real)7.9e-31 ? V{} + (real)18446744073709551616.0
                                : size > (real)1.2e30 ? V{} + (real)5.421010862427522e-20 : V{} + 1;
}
template <class V>
static inline V inverse(V b) { return 1 / (b * rescale(b)); }
