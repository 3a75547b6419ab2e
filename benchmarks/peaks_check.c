/* An independent measurement of peaks, sharing nothing with native/peaks.cpp: STREAM-like loops left to the
 * compiler, and a multiply-add loop in assembly whose operations are counted by hand. One thread, CPU time.
 *
 * usage: peaks_check BYTES...      prints "NAME value" or "NAME BYTES value" per line
 */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#ifdef __AVX512F__
#define REGISTER "%%zmm"
#define REGISTER_BYTES 64
#define REGISTER_TYPE __m512d
#define LOAD _mm512_load_pd
#define STREAM _mm512_stream_pd
#else
#define REGISTER "%%ymm"
#define REGISTER_BYTES 32
#define REGISTER_TYPE __m256d
#define LOAD _mm256_load_pd
#define STREAM _mm256_stream_pd
#endif

static volatile double sink;

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ten independent chains, twenty multiply-adds a round. */
#define ONE(KIND, R) "vfmadd213" KIND " " REGISTER "11, " REGISTER "10, " REGISTER #R "\n\t"
#define TEN(KIND) ONE(KIND, 0) ONE(KIND, 1) ONE(KIND, 2) ONE(KIND, 3) ONE(KIND, 4) \
                  ONE(KIND, 5) ONE(KIND, 6) ONE(KIND, 7) ONE(KIND, 8) ONE(KIND, 9)
#define CHAINS(NAME, KIND)                                                                                  \
    __attribute__((noinline)) static void NAME(long rounds) {                                              \
        __asm__ volatile("1:\n\t" TEN(KIND) TEN(KIND) "dec %0\n\tjnz 1b"                                    \
                         : "+r"(rounds)                                                                    \
                         :                                                                                 \
                         : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9"); \
    }
CHAINS(chains_f32, "ps")
CHAINS(chains_f64, "pd")

__attribute__((noinline)) static double sum(const double* a, long n, long repeat) {
    double s[64] = {0}, total = 0;
    for (long r = 0; r < repeat; ++r)
        for (long i = 0; i < n; i += 64)
            for (int k = 0; k < 64; ++k) s[k] += a[i + k];
    for (int k = 0; k < 64; ++k) total += s[k];
    return total;
}

/* The same from both halves at once, as more streams keep more requests to memory under way. */
__attribute__((noinline)) static double sum_of_halves(const double* a, long n, long repeat) {
    double s[64] = {0}, total = 0;
    const long half = n / 2;
    for (long r = 0; r < repeat; ++r)
        for (long i = 0; i < half; i += 32)
            for (int k = 0; k < 32; ++k) s[k] += a[i + k], s[k + 32] += a[half + i + k];
    for (int k = 0; k < 64; ++k) total += s[k];
    return total;
}

__attribute__((noinline)) static void fill(double* a, double value, long n) {
    double* aligned = __builtin_assume_aligned(a, 64);
#pragma GCC unroll 16
    for (long i = 0; i < n; ++i) aligned[i] = value;
}

__attribute__((noinline)) static void copy_around_caches(double* a, const double* b, long n) {
    for (long i = 0; i < n; i += 4) _mm256_stream_pd(a + i, _mm256_load_pd(b + i));
    _mm_sfence();
}

/* The same in bursts: sixteen registers are read, then sixteen written. */
__attribute__((noinline)) static void copy_in_bursts(double* a, const double* b, long n) {
    for (long i = 0; i < n; i += 16 * REGISTER_BYTES / 8) {
        REGISTER_TYPE burst[16];
#pragma GCC unroll 16
        for (int k = 0; k < 16; ++k) burst[k] = LOAD(b + i + k * REGISTER_BYTES / 8);
#pragma GCC unroll 16
        for (int k = 0; k < 16; ++k) STREAM(a + i + k * REGISTER_BYTES / 8, burst[k]);
    }
    _mm_sfence();
}

#define BEST(TRIALS, AMOUNT, ...) double best = 0; BETTER(TRIALS, AMOUNT, __VA_ARGS__)
#define BETTER(TRIALS, AMOUNT, ...)                            \
    for (int t = 0; t < (TRIALS); ++t) {                       \
        const double begin = cpu_s();                          \
        __VA_ARGS__;                                           \
        const double rate = (AMOUNT) / (cpu_s() - begin);      \
        if (rate > best) best = rate;                          \
    }

int main(int argc, char** argv) {
    enum { ROUNDS = 400000, MOST = 256 << 20 };
    double* memory;
    if (posix_memalign((void**)&memory, 2 << 20, MOST)) return 1;
    madvise(memory, MOST, MADV_HUGEPAGE);
    for (long i = 0; i < MOST / 8; ++i) memory[i] = 1.0 + 1e-9 * (double)i;
    {
        BEST(40, 2.0 * 20 * (REGISTER_BYTES / 4) * ROUNDS, chains_f32(ROUNDS))
        printf("f32 %.6g\n", best);
    }
    {
        BEST(40, 2.0 * 20 * (REGISTER_BYTES / 8) * ROUNDS, chains_f64(ROUNDS))
        printf("f64 %.6g\n", best);
    }
    for (int i = 1; i < argc; ++i) {
        const long bytes = atol(argv[i]) < MOST ? atol(argv[i]) : MOST, n = bytes / 8 / 128 * 128;
        const long repeat = 1 + (16L << 20) / bytes;
        const int trials = bytes > (64L << 20) ? 8 : 40;
        {
            BEST(trials, 8.0 * (double)(n * repeat), sink = sum(memory, n, repeat))
            BETTER(trials, 8.0 * (double)(n * repeat), sink = sum_of_halves(memory, n, repeat))
            printf("read %s %.6g\n", argv[i], best);
        }
        {
            BEST(trials, 8.0 * (double)(n * repeat), for (long r = 0; r < repeat; ++r) fill(memory, 1.5 + (double)r, n))
            printf("write %s %.6g\n", argv[i], best);
        }
        {
            BEST(trials, 8.0 * (double)(n * repeat), for (long r = 0; r < repeat; ++r)
                 copy_around_caches(memory, memory + n / 2, n / 2))
            BETTER(trials, 8.0 * (double)(n * repeat), for (long r = 0; r < repeat; ++r)
                   copy_in_bursts(memory, memory + n / 2, n / 2))
            printf("stream_copy %s %.6g\n", argv[i], best);
        }
    }
}
