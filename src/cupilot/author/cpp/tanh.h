static inline vec fast_tanh(vec x) {
    const vec t = fast_expm1(magnitude(x) * -2.0f);
    const vec y = t / (t + 2.0f);
    return x < 0.0f ? y : -y;
}
