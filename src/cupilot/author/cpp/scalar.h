typedef real vec;  // one element at a time
typedef whole ivec;

static inline vec splat(real value) { return value; }
static inline vec as_real(ivec k) { return (real)k; }
