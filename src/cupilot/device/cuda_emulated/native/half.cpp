// Half and bfloat arithmetic, scalar and packed. Results are the exact ones rounded once.
#include "families.h"
#include "numbers.h"

namespace emu {
namespace {

struct Half {
    static f32 load(u32 bits) { return from_half(static_cast<u16>(bits)); }
    static u32 store(f32 v) { return v != v ? 0x7fff : to_half(v); }
    static u32 store_odd(f64 v) { return std::isnan(v) ? 0x7fff : half_from_double(v, kNearest); }
    static constexpr f32 kTiny = 0x1p-14f;
};
struct Bfloat {
    static f32 load(u32 bits) { return from_bfloat(static_cast<u16>(bits)); }
    static u32 store(f32 v) { return to_bfloat(v); }
    static u32 store_odd(f64 v) { return bfloat_from_double(v, kNearest); }
    static constexpr f32 kTiny = 0x1p-126f;
};

// Add, subtract and multiply are exact enough in single precision that rounding twice is rounding once.
struct Add { static f32 of(f32 a, f32 b) { return a + b; } };
struct Sub { static f32 of(f32 a, f32 b) { return a - b; } };
struct Mul { static f32 of(f32 a, f32 b) { return a * b; } };
template <bool kNan, bool kMin> struct Extreme {
    static f32 of(f32 a, f32 b) {
        if (a != a || b != b) return kNan || (a != a && b != b) ? std::numeric_limits<f32>::quiet_NaN() : a != a ? b : a;
        const bool first = kMin ? a < b || (a == b && std::signbit(a)) : a > b || (a == b && !std::signbit(a));
        return first ? a : b;
    }
};

template <class F> f32 finish(f32 v, u32 x) {
    if (x & kSaturate) v = saturated(v);
    if (x & kRelu) v = v > 0 || v != v ? v : 0;
    return (x & kFlush) && std::fabs(v) < F::kTiny ? std::copysign(0.0f, v) : v;
}
template <class F> f32 take(u32 bits, u32 x) {
    const f32 v = F::load(bits);
    return (x & kFlush) && std::fabs(v) < F::kTiny ? std::copysign(0.0f, v) : v;
}

template <class F, class Op, bool kTwo> const Ins* two_operands(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b);
    const u32 x = i->x;
    const auto one = [=](u32 p, u32 q) { return F::store(finish<F>(F::load(F::store(Op::of(take<F>(p, x), take<F>(q, x)))), x)); };
    each(w, reg<u32>(w, i->dst), [=](int l) { return one(a[l], b[l]) | (kTwo ? one(a[l] >> 16, b[l] >> 16) << 16 : 0); });
    return i + 1;
}
template <class F, bool kTwo> const Ins* fused(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b), *c = reg<u32>(w, i->c);
    const u32 x = i->x;
    const auto one = [=](u32 p, u32 q, u32 r) {
        return F::store(finish<F>(F::load(F::store_odd(fma_to_odd(take<F>(p, x), take<F>(q, x), take<F>(r, x)))), x));
    };
    each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) {
        d[l] = one(a[l], b[l], c[l]) | (kTwo ? one(a[l] >> 16, b[l] >> 16, c[l] >> 16) << 16 : 0);
    });
    return i + 1;
}
template <bool kTwo, bool kAbs> u32 sign_change(u32 a) {
    constexpr u32 bits = kTwo ? 0x80008000 : 0x8000;
    return kAbs ? a & ~bits : a ^ bits;
}

}  // namespace

#define FORMATS(name, Op)                                                                            \
    {name ".f16", two_operands<Half, Op, false>}, {name ".f16x2", two_operands<Half, Op, true>},     \
    {name ".bf16", two_operands<Bfloat, Op, false>}, {name ".bf16x2", two_operands<Bfloat, Op, true>}
#define SIGNS(name, abs)                                                                             \
    {name ".f16", unary<u32, u32, sign_change<false, abs>>}, {name ".f16x2", unary<u32, u32, sign_change<true, abs>>}, \
    {name ".bf16", unary<u32, u32, sign_change<false, abs>>}, {name ".bf16x2", unary<u32, u32, sign_change<true, abs>>}
using Smaller = Extreme<false, true>;
using Larger = Extreme<false, false>;
using SmallerNan = Extreme<true, true>;
using LargerNan = Extreme<true, false>;
const std::vector<OpEntry> kHalfOps = {
    FORMATS("add", Add), FORMATS("sub", Sub), FORMATS("mul", Mul), FORMATS("min", Smaller), FORMATS("max", Larger),
    FORMATS("min.NaN", SmallerNan), FORMATS("max.NaN", LargerNan), SIGNS("neg", false), SIGNS("abs", true),
    {"fma.f16", fused<Half, false>}, {"fma.f16x2", fused<Half, true>},
    {"fma.bf16", fused<Bfloat, false>}, {"fma.bf16x2", fused<Bfloat, true>},
};

}  // namespace emu
