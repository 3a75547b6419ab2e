// Loops that do nothing but one kind of arithmetic on registers. Each returns how many operations it did.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "peaks_vector.h"

// Every loop over the accumulators is unrolled: one that is not would keep them all in memory.
#define EACH(COUNT) _Pragma("GCC unroll 32") for (int i = 0; i < COUNT; ++i)

template <class T, int BYTES>
[[gnu::noinline]] double multiply_add(long rounds) {
    using V = Vector<T, BYTES>;
    V sums[ACCUMULATORS], a = V{} + T(0.5), b = V{} + T(0.25);
    EACH(ACCUMULATORS) sums[i] = V{} + T(i);
    IN_REGISTER(a);
    IN_REGISTER(b);
    for (long r = 0; r < rounds; ++r) {
        EACH(ACCUMULATORS) {
            sums[i] = sums[i] * a + b;
            IN_REGISTER(sums[i]);
        }
    }
    EACH(ACCUMULATORS) USE(sums[i]);
    return 2.0 * (BYTES / sizeof(T)) * ACCUMULATORS * rounds;
}

// Dot-product instructions add a whole product of short vectors to every lane of a wider sum.
template <class V, V (*DOT)(V, V, V), int OPERATIONS>
[[gnu::noinline]] double dot(long rounds) {
    V sums[ACCUMULATORS] = {}, a{}, b{};
    IN_REGISTER(a);
    IN_REGISTER(b);
    for (long r = 0; r < rounds; ++r) {
        EACH(ACCUMULATORS) {
            sums[i] = DOT(sums[i], a, b);
            IN_REGISTER(sums[i]);
        }
    }
    EACH(ACCUMULATORS) USE(sums[i]);
    return double(OPERATIONS) * ACCUMULATORS * rounds;
}

#if defined(__AVX512BF16__)
inline __m512 dot_bf16(__m512 sum, __m512 a, __m512 b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#endif
#if defined(__AVX512VNNI__)
inline __m512i dot_i8(__m512i sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }
#elif defined(__AVXVNNI__)
inline __m256i dot_i8(__m256i sum, __m256i a, __m256i b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
#elif defined(__ARM_FEATURE_DOTPROD)
inline int32x4_t dot_i8(int32x4_t sum, int32x4_t a, int32x4_t b) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#endif

// exp(x) = 2^n p(r), x = n ln 2 + r, with p of degree 5: about single precision, no special cases.
[[gnu::noinline]] double exponentials(long rounds) {
    using F = Vector<float, WIDEST>;
    using I = Vector<int, WIDEST>;
    constexpr int CHAINS = 4;
    F x[CHAINS];
    EACH(CHAINS) x[i] = F{} + 0.1f * float(i + 1);
    for (long r = 0; r < rounds; ++r) {
        EACH(CHAINS) {
            const F magic = F{} + 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
            const F shifted = x[i] * 1.44269504f + magic;
            const F n = shifted - magic;
            const F part = n * -0.693147182f + x[i];
            F p = part * 0.00836313f + 0.04166646f;
            p = p * part + 0.16666667f;
            p = p * part + 0.5f;
            p = p * part + 1.0f;
            p = p * part + 1.0f;
            F e = (F)((I)p + ((I)shifted << 23));
            USE(e);
            IN_REGISTER(x[i]);  // the next round computes it again
        }
    }
    return double(WIDEST / sizeof(float)) * CHAINS * rounds;
}

#if defined(__AMX_TILE__) && defined(__linux__)
#define HAVE_TILES 1
struct alignas(64) TileShape {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

bool allow_tiles() {  // Linux hands out the large register state on request, for the whole process
    constexpr long ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

// Four sums from two times two operand tiles: 16 x 16 outputs, 64 bytes deep, a multiply and an add each.
// The barrier is there because GCC's _tile_loadconfig says it reads eight bytes of the 64 that it does read.
#define TILE_BODY(NAME, INSTRUCTION, DEPTH)                         \
    [[gnu::noinline]] double NAME(long rounds) {                    \
        const TileShape shape;                                      \
        asm volatile("" : : "r"(&shape) : "memory");                \
        _tile_loadconfig(&shape);                                   \
        _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3); \
        _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7); \
        for (long r = 0; r < rounds; ++r) {                         \
            INSTRUCTION(0, 4, 6);                                   \
            INSTRUCTION(1, 4, 7);                                   \
            INSTRUCTION(2, 5, 6);                                   \
            INSTRUCTION(3, 5, 7);                                   \
        }                                                           \
        _tile_release();                                            \
        return 4.0 * 16 * 16 * DEPTH * 2 * double(rounds);          \
    }
#if defined(__AMX_BF16__)
TILE_BODY(tiles_bf16, _tile_dpbf16ps, 32)
#endif
#if defined(__AMX_INT8__)
TILE_BODY(tiles_i8, _tile_dpbssd, 64)
#endif
#if defined(__AMX_FP16__)
TILE_BODY(tiles_f16, _tile_dpfp16ps, 32)
#endif
#endif
