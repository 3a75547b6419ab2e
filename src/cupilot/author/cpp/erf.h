// The error function as a quotient of polynomials, good to 6 units of 2^-24; it reaches 1 by itself.
static inline vec fast_erf(vec x) {
    const vec t = x * 1.41421356f;
    const vec s = at_most(t * t, 32.0f);
    vec p = s * 5.8724719309566353e-08f + 1.702369627309963e-05f;
    vec q = s * 1.5725821640444337e-06f + 1.0111387382494286e-04f;
    p = p * s + 4.703505546785891e-04f;
    q = q * s + 2.5893310084939003e-03f;
    p = p * s + 1.2739738449454308e-02f;
    q = q * s + 3.919981047511101e-02f;
    p = p * s + 9.321905672550201e-02f;
    q = q * s + 3.42396080493927e-01f;
    p = p * s + 1.0798437595367432f;
    q = q * s + 1.3533834218978882f;
    return at_least(at_most(t * (p / q), 1.0f), -1.0f);
}
