// Single and double precision arithmetic. Plain operations round to nearest; the `.x` forms take a rounding mode,
// flushing of denormals and saturation at run time. Compiled so that nothing is contracted or reassociated.
#include "families.h"
#include "numbers.h"

namespace emu {
namespace {

constexpr f32 kNan32 = std::numeric_limits<f32>::quiet_NaN();

template <class T> T add(T a, T b) { return a + b; }
template <class T> T sub(T a, T b) { return a - b; }
template <class T> T mul(T a, T b) { return a * b; }
template <class T> T divide(T a, T b) { return a / b; }
inline f32 multiply_add(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
inline f64 multiply_add(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
template <class T> T fma(T a, T b, T c) { return multiply_add(a, b, c); }
template <class T> T sqrt_of(T a) { return std::sqrt(a); }
template <class T> T reciprocal(T a) { return T(1) / a; }
template <f32 (*F)(f32, f32)> f32 ftz2(f32 a, f32 b) { return flushed(F(flushed(a), flushed(b))); }
f32 ftz_fma(f32 a, f32 b, f32 c) { return flushed(multiply_add(flushed(a), flushed(b), flushed(c))); }

template <class T> T negate(T a) { return -a; }
template <class T> T absolute(T a) { return std::fabs(a); }
f32 ftz_negate(f32 a) { return -flushed(a); }
f32 ftz_absolute(f32 a) { return std::fabs(flushed(a)); }
// The number, when one of the two is not one; -0 counts as less than +0.
template <class T> T smaller(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T larger(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
}
f32 smaller_nan(f32 a, f32 b) { return a != a || b != b ? kNan32 : smaller(a, b); }
f32 larger_nan(f32 a, f32 b) { return a != a || b != b ? kNan32 : larger(a, b); }
template <class T> T copysign_of(T a, T b) { return std::copysign(b, a); }

// One function for all modes: kOp chooses the operation, i->x the mode.
enum class Op { kAdd, kSub, kMul, kFma, kDiv, kSqrt, kRcp };
template <Op kOp, class T> __attribute__((noinline)) T compute(T a, T b, T c) {
    volatile T x = a, y = b, z = c;  // keeps the compiler from evaluating ahead of the rounding mode
    if constexpr (kOp == Op::kAdd) return x + y;
    if constexpr (kOp == Op::kSub) return x - y;
    if constexpr (kOp == Op::kMul) return x * y;
    if constexpr (kOp == Op::kFma) return multiply_add(T(x), T(y), T(z));
    if constexpr (kOp == Op::kDiv) return x / y;
    if constexpr (kOp == Op::kSqrt) return std::sqrt(T(x));
    return T(1) / x;
}
template <Op kOp, class T> const Ins* moded(Warp& w, const Ins* i) {
    const bool flush = sizeof(T) == 4 && (i->x & kFlush);
    T* d = reg<T>(w, i->dst);
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b), *c = reg<T>(w, i->c);
    const WithRounding mode(i->x & kRoundMask);
    each_active(w.mask, [&](int l) {
        const auto in = [&](T v) { return flush ? static_cast<T>(flushed(static_cast<f32>(v))) : v; };
        T r = compute<kOp, T>(in(a[l]), in(b[l]), in(c[l]));
        r = flush ? in(r) : r;
        d[l] = i->x & kSaturate ? saturated(r) : r;
    });
    return i + 1;
}

enum Test : u32 { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class T> const Ins* testp(Warp& w, const Ins* i) {
    const T* a = reg<T>(w, i->a);
    set_pred(w, i->dst, lane_mask([&](int l) {
                 const T v = a[l];
                 switch (i->x) {
                     case kFinite: return std::isfinite(v);
                     case kInfinite: return std::isinf(v);
                     case kNumber: return !std::isnan(v);
                     case kNotANumber: return std::isnan(v);
                     case kNormal: return std::isnormal(v);
                     default: return std::fpclassify(v) == FP_SUBNORMAL;
                 }
             }));
    return i + 1;
}

}  // namespace

#define MODED(name, op) {name ".f32.x", moded<op, f32>}, {name ".f64.x", moded<op, f64>}
const std::vector<OpEntry> kFloatOps = {
    {"add.f32", binary<f32, f32, add<f32>>}, {"add.f64", binary<f64, f64, add<f64>>},
    {"sub.f32", binary<f32, f32, sub<f32>>}, {"sub.f64", binary<f64, f64, sub<f64>>},
    {"mul.f32", binary<f32, f32, mul<f32>>}, {"mul.f64", binary<f64, f64, mul<f64>>},
    {"div.f32", binary<f32, f32, divide<f32>>}, {"div.f64", binary<f64, f64, divide<f64>>},
    {"fma.f32", ternary<f32, f32, f32, fma<f32>>}, {"fma.f64", ternary<f64, f64, f64, fma<f64>>},
    {"add.ftz.f32", binary<f32, f32, ftz2<add<f32>>>}, {"sub.ftz.f32", binary<f32, f32, ftz2<sub<f32>>>},
    {"mul.ftz.f32", binary<f32, f32, ftz2<mul<f32>>>}, {"div.ftz.f32", binary<f32, f32, ftz2<divide<f32>>>},
    {"fma.ftz.f32", ternary<f32, f32, f32, ftz_fma>},
    {"sqrt.f32", unary<f32, f32, sqrt_of<f32>>}, {"sqrt.f64", unary<f64, f64, sqrt_of<f64>>},
    {"rcp.f32", unary<f32, f32, reciprocal<f32>>}, {"rcp.f64", unary<f64, f64, reciprocal<f64>>},
    MODED("add", Op::kAdd), MODED("sub", Op::kSub), MODED("mul", Op::kMul), MODED("fma", Op::kFma),
    MODED("div", Op::kDiv), MODED("sqrt", Op::kSqrt), MODED("rcp", Op::kRcp),
    {"neg.f32", unary<f32, f32, negate<f32>>}, {"neg.f64", unary<f64, f64, negate<f64>>}, {"neg.ftz.f32", unary<f32, f32, ftz_negate>},
    {"abs.f32", unary<f32, f32, absolute<f32>>}, {"abs.f64", unary<f64, f64, absolute<f64>>}, {"abs.ftz.f32", unary<f32, f32, ftz_absolute>},
    {"min.f32", binary<f32, f32, smaller<f32>>}, {"min.f64", binary<f64, f64, smaller<f64>>},
    {"max.f32", binary<f32, f32, larger<f32>>}, {"max.f64", binary<f64, f64, larger<f64>>},
    {"min.ftz.f32", binary<f32, f32, ftz2<smaller<f32>>>}, {"max.ftz.f32", binary<f32, f32, ftz2<larger<f32>>>},
    {"min.NaN.f32", binary<f32, f32, smaller_nan>}, {"max.NaN.f32", binary<f32, f32, larger_nan>},
    {"min.ftz.NaN.f32", binary<f32, f32, ftz2<smaller_nan>>}, {"max.ftz.NaN.f32", binary<f32, f32, ftz2<larger_nan>>},
    {"copysign.f32", binary<f32, f32, copysign_of<f32>>}, {"copysign.f64", binary<f64, f64, copysign_of<f64>>},
    {"testp.f32", testp<f32>}, {"testp.f64", testp<f64>},
};

}  // namespace emu
