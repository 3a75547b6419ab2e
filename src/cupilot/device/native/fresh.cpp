// Fills memory with new data of a known distribution, as fast as memory allows: short runs of genuine draws in an
// order nobody can foresee, with the low bits of every floating number replaced. See evaluate/fresh.py for why.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace {

constexpr size_t kRun = 16;  // consecutive elements taken from one place of the pool

inline uint64_t mix(uint64_t& state) {  // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

inline uint64_t below(uint64_t& state, uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(mix(state)) * bound) >> 64);
}

// Numbers whose low bits are all zero (0, 1, 0.5, powers of two, small integers) mean something: they stay.
template <class T> void fill(T* out, size_t count, const T* pool, size_t pool_count, T low_bits, uint64_t state) {
    size_t run = pool_count < kRun ? pool_count : kRun;
    for (size_t at = 0; at < count; at += run) {
        const T* from = pool + below(state, pool_count - run + 1);
        size_t size = count - at < run ? count - at : run;
        uint64_t key = mix(state);
        T base = static_cast<T>(key), step = static_cast<T>(key >> 32) | 1;
        for (size_t i = 0; i < size; ++i) {
            T value = from[i];
            T noise = static_cast<T>(static_cast<T>(base + static_cast<T>(i) * step) * static_cast<T>(0x9e3779b1));
            noise = static_cast<T>(noise ^ (noise >> (4 * sizeof(T)))) & low_bits;
            out[at + i] = (value & low_bits) != 0 ? static_cast<T>((value & ~low_bits) | noise) : value;
        }
    }
}

}  // namespace

extern "C" void cupilot_fresh(void* out, size_t count, int width, const void* pool, size_t pool_count,
                              uint64_t low_bits, uint64_t seed) {
    if (pool_count == 0) return;
    switch (width) {
        case 1: return fill<uint8_t>((uint8_t*)out, count, (const uint8_t*)pool, pool_count, low_bits, seed);
        case 2: return fill<uint16_t>((uint16_t*)out, count, (const uint16_t*)pool, pool_count, low_bits, seed);
        case 4: return fill<uint32_t>((uint32_t*)out, count, (const uint32_t*)pool, pool_count, low_bits, seed);
        case 8: return fill<uint64_t>((uint64_t*)out, count, (const uint64_t*)pool, pool_count, low_bits, seed);
    }
}
