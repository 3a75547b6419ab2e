// Rows become columns: vectors a power of two apart exchange halves of every block of twice as many lanes.
static inline void transpose(vec (&rows)[LANES]) {
#if defined(__clang__)
    for (int i = 0; i < LANES; i++)
        for (int l = 0; l < i; l++) {
            const real one = rows[i][l];
            rows[i][l] = rows[l][i];
            rows[l][i] = one;
        }
#else
#pragma GCC unroll 8
    for (int apart = 1; apart < LANES; apart *= 2) {
        const ivec lane = lanes(), upper = (lane & apart) != 0;
        const ivec low = upper ? lane + (LANES - apart) : lane, high = upper ? lane + LANES : lane + apart;
#pragma GCC unroll 32
        for (int i = 0; i < LANES; i++) {
            if (i & apart) continue;
            const vec one = rows[i], two = rows[i + apart];
            rows[i] = __builtin_shuffle(one, two, low);
            rows[i + apart] = __builtin_shuffle(one, two, high);
        }
    }
#endif
}
