// The maximum of everything added so far, and the sum of the exponentials below it.
struct Peak {
    real high = -(real)__builtin_inf();
    double sum = 0;

    void add(real h, double s) {
        if (h > high || h != h) {
            sum = (high == -(real)__builtin_inf() ? 0 * sum : sum * std::exp((double)high - h)) + s;
            high = h;
        } else {
            sum += high == h ? s : s * std::exp((double)h - high);
        }
    }
};

// The sum of exponentials knows of NaN; the maximum need not.
template <class V> static inline V above(V a, V b) { return a > b ? a : b; }

// What to subtract before exponentials: with nothing but -inf they are all zero.
static inline real below(real high) { return high == -(real)__builtin_inf() ? 0 : high; }
