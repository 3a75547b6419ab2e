// The approximate functions of the hardware's special function unit: right within CUDA's documented error, and
// deliberately a little off within it, by the launch's seed, so that nothing can depend on their last bits.
#include "families.h"
#include "numbers.h"

namespace emu {
namespace {

// A factor in 1 +- `ulps` / 2^24 that depends on the value and the seed.
inline f64 shake(f64 v, u64 seed, f64 ulps) {
    u64 h = (bits_as<u64>(v) ^ seed) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    const f64 unit = static_cast<f64>(static_cast<s64>(h * 0xbf58476d1ce4e5b9ull >> 11)) * 0x1p-52 - 1.0;  // [-1, 1)
    return v + v * (unit * ulps * 0x1p-24);
}

enum class Fn { kRcp, kSqrt, kRsqrt, kSin, kCos, kLg2, kEx2, kTanh };
template <Fn kFn> f64 exact(f64 v) {
    switch (kFn) {
        case Fn::kRcp: return 1.0 / v;
        case Fn::kSqrt: return std::sqrt(v);
        case Fn::kRsqrt: return 1.0 / std::sqrt(v);
        case Fn::kSin: return std::sin(v);
        case Fn::kCos: return std::cos(v);
        case Fn::kLg2: return std::log2(v);
        case Fn::kEx2: return std::exp2(v);
        default: return std::tanh(v);
    }
}
// Documented: rcp, sqrt 1 ulp; rsqrt 2 ulp; ex2 2 ulp; lg2 2^-22 absolute near 1; sin, cos 2^-20.9 absolute; tanh 2^-11.
template <Fn kFn> f64 perturbed(f64 r, u64 seed) {
    if (!std::isfinite(r) || r == 0) return r;
    if constexpr (kFn == Fn::kTanh) return std::fabs(r) == 1 ? r : shake(r, seed, 4096);
    if constexpr (kFn == Fn::kSin || kFn == Fn::kCos) return shake(r, seed, 1) + (shake(1, seed ^ bits_as<u64>(r), 4) - 1);
    if constexpr (kFn == Fn::kLg2) return shake(r, seed, 0.5);
    if constexpr (kFn == Fn::kEx2 || kFn == Fn::kRsqrt) return shake(r, seed, 1.2);
    return shake(r, seed, 0.4);
}

// The hardware handles these in full range whatever the flush flag; x carries kFlush.
template <Fn kFn> const Ins* approximate(Warp& w, const Ins* i) {
    const f32* a = reg<f32>(w, i->a);
    f32* d = reg<f32>(w, i->dst);
    const u64 seed = w.m->shape.seed;
    const bool flush = i->x & kFlush;
    each_active(w.mask, [&](int l) {
        const f32 v = flush ? flushed(a[l]) : a[l];
        const f32 r = static_cast<f32>(perturbed<kFn>(exact<kFn>(v), seed));
        d[l] = flush ? flushed(r) : r;
    });
    return i + 1;
}
// The same on halves (a register of one or two), rounded to the format.
template <Fn kFn, bool kBfloat, bool kTwo> const Ins* approximate_half(Warp& w, const Ins* i) {
    const u32* a = reg<u32>(w, i->a);
    u32* d = reg<u32>(w, i->dst);
    const u64 seed = w.m->shape.seed;
    const auto one = [=](u32 bits) -> u32 {
        const f32 v = kBfloat ? from_bfloat(static_cast<u16>(bits)) : from_half(static_cast<u16>(bits));
        const f64 r = perturbed<Fn::kRcp>(exact<kFn>(v), seed);
        return kBfloat ? bfloat_from_double(r, kNearest) : half_from_double(r, kNearest);
    };
    each_active(w.mask, [&](int l) { d[l] = one(a[l]) | (kTwo ? one(a[l] >> 16) << 16 : 0); });
    return i + 1;
}

// rcp and rsqrt of doubles, `.approx.ftz.f64`: the upper word of the result only.
template <Fn kFn> const Ins* coarse64(Warp& w, const Ins* i) {
    const f64* a = reg<f64>(w, i->a);
    f64* d = reg<f64>(w, i->dst);
    each_active(w.mask, [&](int l) {
        const f64 v = std::fabs(a[l]) < std::numeric_limits<f64>::min() ? std::copysign(0.0, a[l]) : a[l];
        const f64 r = exact<kFn>(bits_as<f64>(bits_as<u64>(v) & ~0xffffffffull));
        d[l] = std::isnan(r) ? r : bits_as<f64>(bits_as<u64>(r) & ~0xffffffffull);
    });
    return i + 1;
}
const Ins* rsqrt64(Warp& w, const Ins* i) {
    const f64* a = reg<f64>(w, i->a);
    each_active(w.mask, [&, d = reg<f64>(w, i->dst)](int l) { d[l] = 1.0 / std::sqrt(a[l]); });
    return i + 1;
}

// div.approx and div.full: 2 ulp. Quotients by huge divisors are 0 in div.approx (2^126 < |b| < 2^128).
template <bool kFull> const Ins* divide(Warp& w, const Ins* i) {
    const f32 *a = reg<f32>(w, i->a), *b = reg<f32>(w, i->b);
    f32* d = reg<f32>(w, i->dst);
    const bool flush = i->x & kFlush;
    each_active(w.mask, [&](int l) {
        const f32 x = flush ? flushed(a[l]) : a[l], y = flush ? flushed(b[l]) : b[l];
        f64 r = perturbed<Fn::kEx2>(static_cast<f64>(x) / y, w.m->shape.seed);
        if (!kFull && std::fabs(y) > 0x1p126f && std::isfinite(y))
            r = std::isinf(x) ? std::numeric_limits<f64>::quiet_NaN() : std::copysign(0.0, static_cast<f64>(x) * y);
        const f32 v = static_cast<f32>(r);
        d[l] = flush ? flushed(v) : v;
    });
    return i + 1;
}

}  // namespace

#define HALVES(name, fn) \
    {name ".f16", approximate_half<fn, false, false>}, {name ".f16x2", approximate_half<fn, false, true>}, \
    {name ".bf16", approximate_half<fn, true, false>}, {name ".bf16x2", approximate_half<fn, true, true>}
const std::vector<OpEntry> kSpecialOps = {
    {"rcp.approx.f32", approximate<Fn::kRcp>}, {"sqrt.approx.f32", approximate<Fn::kSqrt>},
    {"rsqrt.approx.f32", approximate<Fn::kRsqrt>}, {"sin.approx.f32", approximate<Fn::kSin>},
    {"cos.approx.f32", approximate<Fn::kCos>}, {"lg2.approx.f32", approximate<Fn::kLg2>},
    {"ex2.approx.f32", approximate<Fn::kEx2>}, {"tanh.approx.f32", approximate<Fn::kTanh>},
    HALVES("ex2.approx", Fn::kEx2), HALVES("tanh.approx", Fn::kTanh),
    {"rcp.approx.f64", coarse64<Fn::kRcp>}, {"rsqrt.coarse.f64", coarse64<Fn::kRsqrt>}, {"rsqrt.approx.f64", rsqrt64},
    {"div.approx.f32", divide<false>}, {"div.full.f32", divide<true>},
};

}  // namespace emu
