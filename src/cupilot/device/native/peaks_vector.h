// Vectors of the widest kind this machine has, and how to keep the compiler from tidying a measurement away.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
constexpr int WIDEST = 64;
#elif defined(__AVX__)
constexpr int WIDEST = 32;
#else
constexpr int WIDEST = 16;
#endif

#if defined(__AVX512VL__) || defined(__aarch64__)
constexpr int ACCUMULATORS = 24;  // of 32 registers; latency 4 on up to 4 units needs 16
#else
constexpr int ACCUMULATORS = 12;  // of 16 registers; latency 5 on 2 units needs 10
#endif

#if defined(__aarch64__)
#define IN_REGISTER(v) asm volatile("" : "+w"(v))
#define USE(v) asm volatile("" : : "w"(v))
#else
#define IN_REGISTER(v) asm volatile("" : "+v"(v))
#define USE(v) asm volatile("" : : "v"(v))
#endif

template <class T, int BYTES>
using Vector [[gnu::vector_size(BYTES)]] = T;

using Line = Vector<long long, WIDEST>;
