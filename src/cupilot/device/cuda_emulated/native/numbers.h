// Number formats and rounding shared by the floating-point families.
#pragma once

#include <cfenv>
#include <cmath>
#include <limits>

#include "lanes.h"

namespace emu {

template <class To, class From> inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// Rounding modes as PTX names them, in the order the encoder uses.
enum Rounding : u32 { kNearest, kZero, kDown, kUp };
enum Flag : u32 { kRoundMask = 3, kFlush = 4, kSaturate = 8, kInteger = 16, kRelu = 32, kNanOut = 64 };

class WithRounding {
    int before_ = fegetround();

  public:
    explicit WithRounding(u32 mode) {
        static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        fesetround(kModes[mode & 3]);
    }
    ~WithRounding() { fesetround(before_); }
    WithRounding(const WithRounding&) = delete;
};

inline f32 flushed(f32 v) { return std::fabs(v) < std::numeric_limits<f32>::min() ? std::copysign(0.0f, v) : v; }
template <class T> inline T saturated(T v) { return v > T(0) ? (v < T(1) ? v : T(1)) : T(0); }  // NaN becomes 0

inline f32 from_half(u16 h) { return static_cast<f32>(bits_as<_Float16>(h)); }
inline u16 to_half(f32 v) { return bits_as<u16>(static_cast<_Float16>(v)); }
inline f32 from_bfloat(u16 b) { return bits_as<f32>(static_cast<u32>(b) << 16); }
inline u16 to_bfloat(f32 v) {
    const u32 bits = bits_as<u32>(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// One rounding from a double to a narrower format with `digits` significant bits, exact for every input:
// the double's last kept bit decides ties, and exponents below the format's range lose bits first.
inline f64 round_to_format(f64 v, int digits, int min_exponent, u32 mode) {
    if (v == 0 || !std::isfinite(v)) return v;
    int exponent;
    std::frexp(v, &exponent);
    const int unit = (exponent < min_exponent ? min_exponent : exponent) - digits;
    const f64 scaled = std::ldexp(v, -unit);
    f64 whole = std::trunc(scaled);
    const f64 rest = std::fabs(scaled - whole), away = std::copysign(1.0, v);
    const bool odd = std::fmod(std::fabs(whole), 2.0) == 1.0;
    if (rest > 0) {
        if (mode == kNearest ? rest > 0.5 || (rest == 0.5 && odd) : mode == kDown ? v < 0 : mode == kUp ? v > 0 : false)
            whole += away;
    }
    return std::ldexp(whole, unit);
}

// Beyond the largest finite value: infinity, or the largest value when rounding does not point there.
inline f64 limit_to_format(f64 v, f64 largest, u32 mode) {
    if (std::fabs(v) <= largest || !std::isfinite(v)) return v;
    const bool to_infinity = mode == kNearest || (mode == kUp && v > 0) || (mode == kDown && v < 0);
    return std::copysign(to_infinity ? std::numeric_limits<f64>::infinity() : largest, v);
}
inline u16 half_from_double(f64 v, u32 mode) {
    return to_half(static_cast<f32>(limit_to_format(round_to_format(v, 11, -13, mode), 65504.0, mode)));
}
inline u16 bfloat_from_double(f64 v, u32 mode) {
    if (std::isnan(v)) return 0x7fff;
    const f64 largest = 3.3895313892515355e38;
    const f64 rounded = limit_to_format(round_to_format(v, 8, -125, mode), largest, mode);
    return static_cast<u16>(bits_as<u32>(static_cast<f32>(rounded)) >> 16);
}

// a * b + c with a single rounding to odd, so that a later rounding to a narrower format is right.
inline f64 fma_to_odd(f64 a, f64 b, f64 c) {  // a * b must be exact in double
    const f64 product = a * b, sum = product + c;
    if (!std::isfinite(sum)) return sum;
    const f64 part = sum - product, error = (product - (sum - part)) + (c - part);
    u64 bits = bits_as<u64>(sum);
    if (error != 0 && !(bits & 1)) {
        if (sum == 0) return error;
        bits += (error > 0) == (sum > 0) ? 1 : -1;
    }
    return bits_as<f64>(bits);
}

}  // namespace emu
