// Conversions between number types, with every rounding mode, saturation and flushing (i->x, see numbers.h).
#include "families.h"
#include "numbers.h"

namespace emu {
namespace {

struct Half { using Bits = u16; };
struct Bfloat { using Bits = u16; };
template <class T> struct Storage { using type = T; };
template <> struct Storage<Half> { using type = u16; };
template <> struct Storage<Bfloat> { using type = u16; };
template <class T> using Stored = typename Storage<T>::type;
template <class T> constexpr bool kIsFloat = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat> || std::is_floating_point_v<T>;

template <class T> f64 value_of(Stored<T> bits) {
    if constexpr (std::is_same_v<T, Half>) return from_half(bits);
    else if constexpr (std::is_same_v<T, Bfloat>) return from_bfloat(bits);
    else return static_cast<f64>(bits);
}

// Floating point to integer: out-of-range values go to the nearest end, NaN to zero (the top bit alone for 64 bits
// would be hardware's choice; PTX says zero for narrower targets, and the minimum for s64 and 2^63 for u64).
template <class To> To whole_from(f64 v) {
    constexpr f64 low = static_cast<f64>(std::numeric_limits<To>::min());
    constexpr f64 high = static_cast<f64>(std::numeric_limits<To>::max());
    if (std::isnan(v)) return sizeof(To) == 8 ? static_cast<To>(u64(1) << 63) : 0;
    if (v <= low) return std::numeric_limits<To>::min();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
}
inline f64 to_whole(f64 v, u32 mode) {
    return mode == kNearest ? std::nearbyint(v) : mode == kZero ? std::trunc(v) : mode == kDown ? std::floor(v) : std::ceil(v);
}

template <class To> Stored<To> narrow(f64 v, u32 mode) {
    if constexpr (std::is_same_v<To, Half>) return half_from_double(v, mode);
    else if constexpr (std::is_same_v<To, Bfloat>) return bfloat_from_double(v, mode);
    else if constexpr (std::is_same_v<To, f64>) return v;
    else {
        if (mode == kNearest) return static_cast<f32>(v);
        const WithRounding rounding(mode);
        volatile f64 x = v;
        return static_cast<f32>(x);
    }
}

template <class To, class From> Stored<To> convert(Stored<From> a, u32 x) {
    const u32 mode = x & kRoundMask;
    if constexpr (!kIsFloat<To> && !kIsFloat<From>) {
        if (x & kSaturate) {
            const auto wide = static_cast<__int128>(a);
            if (wide < static_cast<__int128>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
            if (wide > static_cast<__int128>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
        }
        return static_cast<To>(a);
    } else if constexpr (!kIsFloat<To>) {
        f64 v = value_of<From>(a);
        if constexpr (std::is_same_v<From, f32>) v = x & kFlush ? flushed(a) : a;
        return whole_from<To>(to_whole(v, mode));
    } else if constexpr (!kIsFloat<From> && sizeof(From) == 8) {
        if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Bfloat>) {
            // Beyond 2^53 a sticky bit stands for what is cut off.
            const bool huge = a >= (From(1) << 53) || (std::is_signed_v<From> && a <= -(From(1) << 53));
            return narrow<To>(static_cast<f64>(huge ? static_cast<From>((a >> 11 << 11) | (a & 2047 ? 2048 : 0)) : a), mode);
        } else {
            if (mode == kNearest) return static_cast<To>(a);
            const WithRounding rounding(mode);
            volatile From v = a;
            return static_cast<To>(v);
        }
    } else {
        f64 v = value_of<From>(a);
        if constexpr (std::is_same_v<From, f32>) v = x & kFlush ? flushed(a) : a;
        if (x & kInteger) v = to_whole(v, mode);
        if (x & kSaturate) v = saturated(v);
        if (x & kRelu) v = v > 0 ? v : std::isnan(v) ? v : 0;
        auto r = narrow<To>(v, mode);
        if constexpr (std::is_same_v<To, f32>) r = x & kFlush ? flushed(r) : r;
        return r;
    }
}

template <class To, class From> const Ins* cvt(Warp& w, const Ins* i) {
    auto* d = reg<Slot<Stored<To>>>(w, i->dst);
    const auto* a = reg<Slot<Stored<From>>>(w, i->a);
    const u32 x = i->x;
    each_active(w.mask, [&](int l) { d[l] = to_slot<Stored<To>>(convert<To, From>(static_cast<Stored<From>>(a[l]), x)); });
    return i + 1;
}

// The frequent ones, without modes.
template <class To, class From> To plain(From a) { return static_cast<To>(a); }
template <class To> To chop(f32 a) {
    if (a != a) return 0;
    const f64 v = a, low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return static_cast<To>(v < low ? low : v > high ? high : v);
}

// Two values into one register: a is the upper half.
template <u16 (*F)(f64, u32)> const Ins* pair(Warp& w, const Ins* i) {
    const f32 *a = reg<f32>(w, i->a), *b = reg<f32>(w, i->b);
    const u32 x = i->x;
    const auto one = [=](f32 v) {
        if (x & kRelu) v = v > 0 || v != v ? v : 0;
        if (x & kSaturate) v = saturated(v);
        return static_cast<u32>(F(v, x & kRoundMask));
    };
    each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) { d[l] = one(a[l]) << 16 | one(b[l]); });
    return i + 1;
}
u16 half_now(f32 a) { return to_half(a); }
u16 bfloat_now(f32 a) { return to_bfloat(a); }
f32 half_back(u16 a) { return from_half(a); }
f32 bfloat_back(u16 a) { return from_bfloat(a); }
u32 to_tf32(f32 a) {  // round to nearest, ties away: 10 bits of mantissa
    const u32 bits = bits_as<u32>(a);
    return (bits & 0x7fffffff) >= 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}
u32 to_tf32_even(f32 a) {
    const u32 bits = bits_as<u32>(a);
    return (bits & 0x7fffffff) >= 0x7f800000 ? bits : (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}
template <u16 (*F)(f32)> const Ins* pair_now(Warp& w, const Ins* i) {
    const f32 *a = reg<f32>(w, i->a), *b = reg<f32>(w, i->b);
    each(w, reg<u32>(w, i->dst), [=](int l) { return static_cast<u32>(F(a[l])) << 16 | F(b[l]); });
    return i + 1;
}

}  // namespace

#define FROM(to, T)                                                                                              \
    {"cvt." to ".u8", cvt<T, u8>}, {"cvt." to ".s8", cvt<T, s8>}, {"cvt." to ".u16", cvt<T, u16>},               \
    {"cvt." to ".s16", cvt<T, s16>}, {"cvt." to ".u32", cvt<T, u32>}, {"cvt." to ".s32", cvt<T, s32>},           \
    {"cvt." to ".u64", cvt<T, u64>}, {"cvt." to ".s64", cvt<T, s64>}, {"cvt." to ".f16", cvt<T, Half>},          \
    {"cvt." to ".bf16", cvt<T, Bfloat>}, {"cvt." to ".f32", cvt<T, f32>}, {"cvt." to ".f64", cvt<T, f64>}
const std::vector<OpEntry> kConvertOps = {
    FROM("u8", u8), FROM("s8", s8), FROM("u16", u16), FROM("s16", s16), FROM("u32", u32), FROM("s32", s32),
    FROM("u64", u64), FROM("s64", s64), FROM("f16", Half), FROM("bf16", Bfloat), FROM("f32", f32), FROM("f64", f64),
    {"cvt.now.f32.s32", unary<f32, s32, plain<f32, s32>>}, {"cvt.now.f32.u32", unary<f32, u32, plain<f32, u32>>},
    {"cvt.now.s32.f32", unary<s32, f32, chop<s32>>}, {"cvt.now.u32.f32", unary<u32, f32, chop<u32>>},
    {"cvt.now.f64.f32", unary<f64, f32, plain<f64, f32>>}, {"cvt.now.f32.f64", unary<f32, f64, plain<f32, f64>>},
    {"cvt.now.f64.s32", unary<f64, s32, plain<f64, s32>>}, {"cvt.now.f64.u32", unary<f64, u32, plain<f64, u32>>},
    {"cvt.now.s64.s32", unary<s64, s32, plain<s64, s32>>}, {"cvt.now.u64.u32", unary<u64, u32, plain<u64, u32>>},
    {"cvt.now.u32.u64", unary<u32, u64, plain<u32, u64>>},
    {"cvt.now.f16.f32", unary<u16, f32, half_now>}, {"cvt.now.f32.f16", unary<f32, u16, half_back>},
    {"cvt.now.bf16.f32", unary<u16, f32, bfloat_now>}, {"cvt.now.f32.bf16", unary<f32, u16, bfloat_back>},
    {"cvt.now.f16x2.f32", pair_now<half_now>}, {"cvt.now.bf16x2.f32", pair_now<bfloat_now>},
    {"cvt.f16x2.f32", pair<half_from_double>}, {"cvt.bf16x2.f32", pair<bfloat_from_double>},
    {"cvt.rna.tf32.f32", unary<u32, f32, to_tf32>}, {"cvt.rn.tf32.f32", unary<u32, f32, to_tf32_even>},
};

}  // namespace emu
