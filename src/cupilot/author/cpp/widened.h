// A half as a number. The barrier keeps compilers from comparing halves by calls of a library.
static inline real widened(_Float16 h) {
#if __has_builtin(__builtin_assoc_barrier)
    return __builtin_assoc_barrier((real)h);
#else
    return (real)h;
#endif
}
