// Loops that do nothing but walk memory. Bodies take a destination, two sources and a count of lines that is
// a multiple of 4 * UNROLL.
#pragma once

#include <atomic>
#include <cstddef>

#include "peaks_vector.h"

constexpr size_t UNROLL = 16;

#define EVERY_LINE(STATEMENT)                      \
    for (size_t i = 0; i < lines; i += UNROLL) {   \
        _Pragma("GCC unroll 16")                   \
        for (size_t j = i; j < i + UNROLL; ++j) {  \
            STATEMENT;                             \
        }                                          \
    }

inline Line some_data() { return Line{} + 0x3f9d70a43f8ccccd; }

inline void put(Line* at, Line value) { *(volatile Line*)at = value; }

#if defined(__AVX512F__)
inline void stream(Line* at, Line value) { _mm512_stream_si512((__m512i*)at, (__m512i)value); }
#elif defined(__AVX__)
inline void stream(Line* at, Line value) { _mm256_stream_si256((__m256i*)at, (__m256i)value); }
#elif defined(__SSE2__)
inline void stream(Line* at, Line value) { _mm_stream_si128((__m128i*)at, (__m128i)value); }
#elif defined(__aarch64__)
inline void stream(Line* at, Line value) {  // the only non-temporal store there is: a pair of halves
    asm volatile("stnp %d1, %d2, %0" : "=Q"(*at) : "w"(value[0]), "w"(value[1]));
}
#endif
inline void drain() { std::atomic_thread_fence(std::memory_order_seq_cst); }

[[gnu::noinline]] void read_one(Line*, const Line* a, const Line*, size_t lines) { EVERY_LINE(USE(a[j])) }
[[gnu::noinline]] void read_four(Line*, const Line* a, const Line*, size_t lines) {
    const size_t quarter = lines / 4;  // four places at once keep more prefetchers busy
    for (size_t i = 0; i < quarter; i += UNROLL / 4) {
        for (size_t s = 0; s < 4; ++s) {
#pragma GCC unroll 4
            for (size_t j = i; j < i + UNROLL / 4; ++j) USE(a[s * quarter + j]);
        }
    }
}
[[gnu::noinline]] void write_plain(Line* d, const Line*, const Line*, size_t lines) {
    const Line data = some_data();
    EVERY_LINE(put(d + j, data))
}
[[gnu::noinline]] void write_stream(Line* d, const Line*, const Line*, size_t lines) {
    const Line data = some_data();
    EVERY_LINE(stream(d + j, data))
    drain();
}
// Lines of zeros have a fast way of their own on some machines: three times as fast on Zen 4.
[[gnu::noinline]] void zero_stream(Line* d, const Line*, const Line*, size_t lines) {
    EVERY_LINE(stream(d + j, Line{}))
    drain();
}
[[gnu::noinline]] void copy_plain(Line* d, const Line* a, const Line*, size_t lines) {
    EVERY_LINE(put(d + j, a[j]))
}
[[gnu::noinline]] void copy_stream(Line* d, const Line* a, const Line*, size_t lines) {
    EVERY_LINE(stream(d + j, a[j]))
    drain();
}
[[gnu::noinline]] void copy_stream_ahead(Line* d, const Line* a, const Line*, size_t lines) {
    EVERY_LINE(__builtin_prefetch((const char*)(a + j) + 2048, 0, 0); stream(d + j, a[j]))
    drain();
}
[[gnu::noinline]] void triad(Line* d, const Line* a, const Line* b, size_t lines) {
    using F = Vector<float, WIDEST>;
    EVERY_LINE(put(d + j, (Line)((F)a[j] * 1.5f + (F)b[j])))
}
#if defined(__x86_64__)
[[gnu::noinline]] void write_string(Line* d, const Line*, const Line*, size_t lines) {
    size_t bytes = lines * sizeof(Line);
    asm volatile("rep stosb" : "+D"(d), "+c"(bytes) : "a"(0x5a) : "memory");
}
[[gnu::noinline]] void zero_string(Line* d, const Line*, const Line*, size_t lines) {
    size_t bytes = lines * sizeof(Line);
    asm volatile("rep stosb" : "+D"(d), "+c"(bytes) : "a"(0) : "memory");
}
[[gnu::noinline]] void copy_string(Line* d, const Line* a, const Line*, size_t lines) {
    size_t bytes = lines * sizeof(Line);
    asm volatile("rep movsb" : "+D"(d), "+S"(a), "+c"(bytes) : : "memory");
}
#endif

struct Walk {
    const char* pattern;
    int arrays;
    void (*body)(Line*, const Line*, const Line*, size_t);
};

constexpr Walk WALKS[] = {
    {"read", 1, read_one},
    {"read", 1, read_four},
    {"write", 1, write_plain},
    {"stream_write", 1, write_stream},
    {"zero", 1, zero_stream},
    {"copy", 2, copy_plain},
    {"stream_copy", 2, copy_stream},
    {"stream_copy", 2, copy_stream_ahead},
    {"triad", 3, triad},
#if defined(__x86_64__)  // long string instructions do not read what they overwrite either
    {"stream_write", 1, write_string},
    {"zero", 1, zero_string},
    {"stream_copy", 2, copy_string},
#endif
};
