// Comparisons into predicates. x: how the result combines with predicate c (0 not, 1 and, 2 or, 3 xor).
#include <functional>

#include "families.h"
#include "numbers.h"

namespace emu {
namespace {

void put(Warp& w, const Ins* i, u32 result) {
    const u32 other = i->x ? pred(w, i->c) : 0;
    const auto combine = [&](u32 r) { return i->x == 0 ? r : i->x == 1 ? r & other : i->x == 2 ? r | other : r ^ other; };
    set_pred(w, i->dst, combine(result));
    set_pred(w, i->d, combine(~result));
}

template <class T, class F> const Ins* setp(Warp& w, const Ins* i) {
    const auto* a = reg<Slot<T>>(w, i->a);
    const auto* b = reg<Slot<T>>(w, i->b);
    put(w, i, lane_mask([=](int l) { return F()(static_cast<T>(a[l]), static_cast<T>(b[l])); }));
    return i + 1;
}

struct Half {
    u16 bits;
    explicit Half(u32 v) : bits(static_cast<u16>(v)) {}
    operator f32() const { return from_half(bits); }
};
struct Bfloat {
    u16 bits;
    explicit Bfloat(u32 v) : bits(static_cast<u16>(v)) {}
    operator f32() const { return from_bfloat(bits); }
};
template <class T, class F> const Ins* setp_narrow(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b);
    put(w, i, lane_mask([=](int l) { return F()(static_cast<f32>(T(a[l])), static_cast<f32>(T(b[l]))); }));
    return i + 1;
}

// Both halves at once: dst gets the low one, d the high one.
template <class T, class F> const Ins* setp_pair(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b);
    const u32 low = lane_mask([=](int l) { return F()(static_cast<f32>(T(a[l])), static_cast<f32>(T(b[l]))); });
    const u32 high = lane_mask([=](int l) { return F()(static_cast<f32>(T(a[l] >> 16)), static_cast<f32>(T(b[l] >> 16))); });
    const u32 other = i->x ? pred(w, i->c) : 0;
    const auto combine = [&](u32 r) { return i->x == 0 ? r : i->x == 1 ? r & other : i->x == 2 ? r | other : r ^ other; };
    set_pred(w, i->dst, combine(low));
    set_pred(w, i->d, combine(high));
    return i + 1;
}

const Ins* setp_ftz_operands(Warp& w, const Ins* i) {  // dst := flushed a, for a comparison that follows
    const f32* a = reg<f32>(w, i->a);
    each(w, reg<f32>(w, i->dst), [=](int l) { return flushed(a[l]); });
    return i + 1;
}

struct Eq { template <class T> bool operator()(T a, T b) const { return a == b; } };
struct Ne { template <class T> bool operator()(T a, T b) const { return (a < b) | (a > b); } };  // false for NaN
struct Lt { template <class T> bool operator()(T a, T b) const { return a < b; } };
struct Le { template <class T> bool operator()(T a, T b) const { return a <= b; } };
struct Gt { template <class T> bool operator()(T a, T b) const { return a > b; } };
struct Ge { template <class T> bool operator()(T a, T b) const { return a >= b; } };
template <class F> struct Or { template <class T> bool operator()(T a, T b) const { return (a != a) | (b != b) | F()(a, b); } };
struct Num { template <class T> bool operator()(T a, T b) const { return (a == a) & (b == b); } };
struct Nan { template <class T> bool operator()(T a, T b) const { return (a != a) | (b != b); } };

// set: a value of all ones or 1.0 where the predicate holds. a: predicate.
template <class T> const Ins* set_value(Warp& w, const Ins* i) {
    const u32 p = pred(w, i->a);
    const T yes = static_cast<T>(i->imm);
    each(w, reg<T>(w, i->dst), [=](int l) { return p >> l & 1 ? yes : T(0); });
    return i + 1;
}

}  // namespace

#define ORDERED(form, type, T) \
    {"setp.eq." type, form<T, Eq>}, {"setp.ne." type, form<T, Ne>}, {"setp.lt." type, form<T, Lt>}, \
    {"setp.le." type, form<T, Le>}, {"setp.gt." type, form<T, Gt>}, {"setp.ge." type, form<T, Ge>}
#define UNORDERED(form, type, T) \
    {"setp.equ." type, form<T, Or<Eq>>}, {"setp.neu." type, form<T, Or<Ne>>}, {"setp.ltu." type, form<T, Or<Lt>>}, \
    {"setp.leu." type, form<T, Or<Le>>}, {"setp.gtu." type, form<T, Or<Gt>>}, {"setp.geu." type, form<T, Or<Ge>>}, \
    {"setp.num." type, form<T, Num>}, {"setp.nan." type, form<T, Nan>}
const std::vector<OpEntry> kCompareOps = {
    ORDERED(setp, "u16", u16), ORDERED(setp, "s16", s16), ORDERED(setp, "u32", u32), ORDERED(setp, "s32", s32),
    ORDERED(setp, "u64", u64), ORDERED(setp, "s64", s64),
    ORDERED(setp, "f32", f32), UNORDERED(setp, "f32", f32), ORDERED(setp, "f64", f64), UNORDERED(setp, "f64", f64),
    ORDERED(setp_narrow, "f16", Half), UNORDERED(setp_narrow, "f16", Half),
    ORDERED(setp_narrow, "bf16", Bfloat), UNORDERED(setp_narrow, "bf16", Bfloat),
    ORDERED(setp_pair, "f16x2", Half), UNORDERED(setp_pair, "f16x2", Half),
    ORDERED(setp_pair, "bf16x2", Bfloat), UNORDERED(setp_pair, "bf16x2", Bfloat),
    {"flush.f32", setp_ftz_operands}, {"set.b32", set_value<u32>}, {"set.b64", set_value<u64>},
};

}  // namespace emu
