// Integer arithmetic, logic, shifts, bit fields and selection.
#include "families.h"
#include "lanes.h"

namespace emu {
namespace {

template <class T> using U = typename UnsignedOf<T>::type;
template <class T> constexpr int kBits = 8 * sizeof(T);

template <class T> T add(T a, T b) { return a + b; }
template <class T> T sub(T a, T b) { return a - b; }
template <class T> T mul_lo(T a, T b) { return static_cast<T>(1u * a * b); }
template <class T> T mad_lo(T a, T b, T c) { return static_cast<T>(mul_lo(a, b) + c); }
template <class T> T mul_hi(T a, T b) {
    if constexpr (sizeof(T) == 8) {
        using W = std::conditional_t<(T(-1) < T(0)), __int128, unsigned __int128>;
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b) >> 64);
    } else {
        using W = std::conditional_t<(T(-1) < T(0)), s64, u64>;
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b) >> kBits<T>);
    }
}
template <class T> T mad_hi(T a, T b, T c) { return static_cast<T>(static_cast<U<T>>(mul_hi(a, b)) + static_cast<U<T>>(c)); }
template <class R, class T> R mul_wide(T a, T b) { return static_cast<R>(a) * static_cast<R>(b); }
template <class R, class T> R mad_wide(T a, T b, R c) {
    return static_cast<R>(static_cast<U<R>>(mul_wide<R>(a, b)) + static_cast<U<R>>(c));
}
template <class T> T low24(T a) { return T(-1) < T(0) ? static_cast<T>(static_cast<s32>(a << 8) >> 8) : a & 0xffffff; }
template <class T> T mul24(T a, T b) { return static_cast<T>(static_cast<s64>(low24(a)) * static_cast<s64>(low24(b))); }
template <class T> T mul24_hi(T a, T b) {
    return static_cast<T>(static_cast<s64>(low24(a)) * static_cast<s64>(low24(b)) >> 16);
}
template <class T> T mad24(T a, T b, T c) { return static_cast<T>(static_cast<u32>(mul24(a, b)) + static_cast<u32>(c)); }
template <class T> T sad(T a, T b, T c) { return static_cast<T>(static_cast<U<T>>(c) + static_cast<U<T>>(a < b ? b - a : a - b)); }
// Division by zero is all ones in hardware; the most negative number over -1 wraps.
template <class T> T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (T(-1) < T(0) && b == static_cast<T>(-1)) return static_cast<T>(U<T>(0) - static_cast<U<T>>(a));
    return static_cast<T>(a / b);
}
template <class T> T remain(T a, T b) {
    if (b == 0) return a;
    if (T(-1) < T(0) && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
}
template <class T> T absolute(T a) { return a < 0 ? static_cast<T>(U<T>(0) - static_cast<U<T>>(a)) : a; }
template <class T> T negate(T a) { return static_cast<T>(U<T>(0) - static_cast<U<T>>(a)); }
template <class T> T smaller(T a, T b) { return a < b ? a : b; }
template <class T> T larger(T a, T b) { return a < b ? b : a; }
template <class T> u32 popc(T a) { return static_cast<u32>(__builtin_popcountll(a)); }
template <class T> u32 clz(T a) { return a ? static_cast<u32>(__builtin_clzll(a)) - (64 - kBits<T>) : kBits<T>; }
template <class T> u32 bfind(T a) {
    const U<T> v = T(-1) < T(0) && a < 0 ? static_cast<U<T>>(~a) : static_cast<U<T>>(a);
    return v ? kBits<T> - 1 - clz<U<T>>(v) : ~0u;
}
template <class T> u32 bfind_shift(T a) {
    const u32 found = bfind(a);
    return found == ~0u ? found : kBits<T> - 1 - found;
}
template <class T> T brev(T a) {
    T r = 0;
    for (int k = 0; k < kBits<T>; ++k) r |= (a >> k & 1) << (kBits<T> - 1 - k);
    return r;
}
template <class T> T bfe(T a, u32 b, u32 c) {
    const u32 pos = b & 255, len = c & 255;
    if (len == 0) return 0;
    const u32 sign_at = pos + len - 1 < kBits<T> - 1u ? pos + len - 1 : kBits<T> - 1u;
    const bool negative = T(-1) < T(0) && (static_cast<U<T>>(a) >> sign_at & 1);
    const U<T> shifted = pos < kBits<T> ? static_cast<U<T>>(a) >> pos : 0;
    const u32 kept = pos >= kBits<T> ? 0 : (len < kBits<T> - pos ? len : kBits<T> - pos);
    const U<T> ones = kept >= kBits<T> ? ~U<T>(0) : (U<T>(1) << kept) - 1;
    return static_cast<T>((shifted & ones) | (negative ? ~ones : U<T>(0)));
}
template <class T> T bfi(T a, T b, u32 c, u32 d) {
    const u32 pos = c & 255, len = d & 255;
    if (pos >= kBits<T> || len == 0) return b;
    const T ones = (len >= kBits<T> ? ~T(0) : (T(1) << len) - 1) << pos;
    return (a << pos & ones) | (b & ~ones);
}
template <class T> T both(T a, T b) { return a & b; }
template <class T> T either(T a, T b) { return a | b; }
template <class T> T differ(T a, T b) { return a ^ b; }
template <class T> T invert(T a) { return static_cast<T>(~a); }
template <class T> T cnot(T a) { return a == 0; }
template <class T> T shl(T a, u32 b) { return b >= kBits<T> ? 0 : static_cast<T>(static_cast<U<T>>(a) << b); }
template <class T> T shr(T a, u32 b) { return b >= kBits<T> ? (a < 0 ? static_cast<T>(-1) : 0) : static_cast<T>(a >> b); }
template <class T> T same(T a) { return a; }
template <int kBytes, class T> T extend(T a) {  // sign extension of the low bytes
    if constexpr (kBytes == 1) return static_cast<T>(static_cast<s64>(static_cast<s8>(a)));
    else if constexpr (kBytes == 2) return static_cast<T>(static_cast<s64>(static_cast<s16>(a)));
    else return static_cast<T>(static_cast<s64>(static_cast<s32>(a)));
}
u64 widen(u32 a) { return a; }
u32 shf_l_wrap(u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(b) << 32 | a) << (c & 31) >> 32); }
u32 shf_r_wrap(u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(b) << 32 | a) >> (c & 31)); }
u32 shf_l_clamp(u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(b) << 32 | a) << (c < 32 ? c : 32) >> 32); }
u32 shf_r_clamp(u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(b) << 32 | a) >> (c < 32 ? c : 32)); }
u32 prmt(u32 a, u32 b, u32 c) {
    const u64 bytes = static_cast<u64>(b) << 32 | a;
    u32 r = 0;
    for (int k = 0; k < 4; ++k) {
        const u32 choice = c >> (4 * k);
        const u32 byte = static_cast<u32>(bytes >> (8 * (choice & 7))) & 255;
        r |= (choice & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * k);
    }
    return r;
}
template <class A, class B> u32 dp4a(u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k)
        c += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> 8 * k)) * static_cast<s32>(static_cast<B>(b >> 8 * k)));
    return c;
}

const Ins* lop3(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b), *c = reg<u32>(w, i->c);
    u32 on[8];
    for (int k = 0; k < 8; ++k) on[k] = i->x >> k & 1 ? ~0u : 0;
    each(w, reg<u32>(w, i->dst), [=](int l) {
        const u32 x = a[l], y = b[l], z = c[l];
        return (~x & ~y & ~z & on[0]) | (~x & ~y & z & on[1]) | (~x & y & ~z & on[2]) | (~x & y & z & on[3]) |
               (x & ~y & ~z & on[4]) | (x & ~y & z & on[5]) | (x & y & ~z & on[6]) | (x & y & z & on[7]);
    });
    return i + 1;
}

template <class T> const Ins* insert(Warp& w, const Ins* i) {
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b);
    const u32 *c = reg<u32>(w, i->c), *d = reg<u32>(w, i->d);
    each(w, reg<T>(w, i->dst), [=](int l) { return bfi<T>(a[l], b[l], c[l], d[l]); });
    return i + 1;
}
template <class T> const Ins* extract(Warp& w, const Ins* i) {
    const T* a = reg<T>(w, i->a);
    const u32 *b = reg<u32>(w, i->b), *c = reg<u32>(w, i->c);
    each(w, reg<T>(w, i->dst), [=](int l) { return bfe<T>(a[l], b[l], c[l]); });
    return i + 1;
}

template <class T> const Ins* select(Warp& w, const Ins* i) {
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b);
    const u32 p = pred(w, i->c);
    each(w, reg<T>(w, i->dst), [=](int l) { return p >> l & 1 ? a[l] : b[l]; });
    return i + 1;
}
template <class T, class C> const Ins* select_by_sign(Warp& w, const Ins* i) {  // slct
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b);
    const C* c = reg<C>(w, i->c);
    each(w, reg<T>(w, i->dst), [=](int l) { return c[l] >= 0 ? a[l] : b[l]; });
    return i + 1;
}

// Carry chains. The carry is a bit per lane; x: 1 = takes it in, 2 = gives it out.
template <class T, bool kSubtract> const Ins* carry_add(Warp& w, const Ins* i) {
    using W = unsigned __int128;
    T* d = reg<T>(w, i->dst);
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b);
    each_active(w.mask, [&](int l) {
        const W in = i->x & 1 ? w.carry >> l & 1 : 0;
        const W r = kSubtract ? static_cast<W>(a[l]) - b[l] - in : static_cast<W>(a[l]) + b[l] + in;
        d[l] = static_cast<T>(r);
        if (i->x & 2) w.carry = (w.carry & ~(1u << l)) | static_cast<u32>(r >> kBits<T> & 1) << l;
    });
    return i + 1;
}
template <class T, bool kHigh> const Ins* carry_mad(Warp& w, const Ins* i) {
    using W = unsigned __int128;
    T* d = reg<T>(w, i->dst);
    const T *a = reg<T>(w, i->a), *b = reg<T>(w, i->b), *c = reg<T>(w, i->c);
    each_active(w.mask, [&](int l) {
        const T product = kHigh ? mul_hi(a[l], b[l]) : mul_lo(a[l], b[l]);
        const W r = static_cast<W>(product) + c[l] + (i->x & 1 ? w.carry >> l & 1 : 0);
        d[l] = static_cast<T>(r);
        if (i->x & 2) w.carry = (w.carry & ~(1u << l)) | static_cast<u32>(r >> kBits<T> & 1) << l;
    });
    return i + 1;
}

// Predicates are masks. x says which operation.
const Ins* pred_op(Warp& w, const Ins* i) {
    const u32 a = pred(w, i->a), b = i->b == kNone ? 0 : pred(w, i->b);
    set_pred(w, i->dst, i->x == 0 ? a : i->x == 1 ? a & b : i->x == 2 ? a | b : i->x == 3 ? a ^ b : ~a);
    return i + 1;
}

// Packing: d = {a, b} of half its width, or of four 16-bit parts; and back.
const Ins* pack_16x2(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b);
    each(w, reg<u32>(w, i->dst), [=](int l) { return (a[l] & 0xffff) | b[l] << 16; });
    return i + 1;
}
const Ins* pack_32x2(Warp& w, const Ins* i) {
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b);
    each(w, reg<u64>(w, i->dst), [=](int l) { return static_cast<u64>(b[l]) << 32 | a[l]; });
    return i + 1;
}
template <class T, int kShift> const Ins* unpack(Warp& w, const Ins* i) {  // x: how many bits further to the right
    const T* a = reg<T>(w, i->a);
    const u32 shift = i->x;
    each(w, reg<u32>(w, i->dst), [=](int l) { return static_cast<u32>(a[l] >> shift) & (~0u >> kShift); });
    return i + 1;
}

}  // namespace

#define WIDTHS(name, f, shape) {name ".b16", shape<u16, u16, f<u16>>}, {name ".b32", shape<u32, u32, f<u32>>}, {name ".b64", shape<u64, u64, f<u64>>}
#define TYPES(name, f, shape)                                                                              \
    {name ".u16", shape<u16, u16, f<u16>>}, {name ".s16", shape<s16, s16, f<s16>>},                        \
        {name ".u32", shape<u32, u32, f<u32>>}, {name ".s32", shape<s32, s32, f<s32>>},                    \
        {name ".u64", shape<u64, u64, f<u64>>}, {name ".s64", shape<s64, s64, f<s64>>}
#define TYPES3(name, f)                                                                                    \
    {name ".u16", ternary<u16, u16, u16, f<u16>>}, {name ".s16", ternary<s16, s16, s16, f<s16>>},          \
        {name ".u32", ternary<u32, u32, u32, f<u32>>}, {name ".s32", ternary<s32, s32, s32, f<s32>>},      \
        {name ".u64", ternary<u64, u64, u64, f<u64>>}, {name ".s64", ternary<s64, s64, s64, f<s64>>}

const std::vector<OpEntry> kIntegerOps = {
    WIDTHS("add", add, binary), WIDTHS("sub", sub, binary), WIDTHS("mul.lo", mul_lo, binary),
    WIDTHS("and", both, binary), WIDTHS("or", either, binary), WIDTHS("xor", differ, binary),
    WIDTHS("not", invert, unary), WIDTHS("cnot", cnot, unary), WIDTHS("mov", same, unary),
    {"mad.lo.b16", ternary<u16, u16, u16, mad_lo<u16>>}, {"mad.lo.b32", ternary<u32, u32, u32, mad_lo<u32>>},
    {"mad.lo.b64", ternary<u64, u64, u64, mad_lo<u64>>},
    TYPES("mul.hi", mul_hi, binary), TYPES3("mad.hi", mad_hi), TYPES3("sad", sad),
    TYPES("div", divide, binary), TYPES("rem", remain, binary), TYPES("min", smaller, binary), TYPES("max", larger, binary),
    {"mul.wide.u16", binary<u32, u16, mul_wide<u32, u16>>}, {"mul.wide.s16", binary<s32, s16, mul_wide<s32, s16>>},
    {"mul.wide.u32", binary<u64, u32, mul_wide<u64, u32>>}, {"mul.wide.s32", binary<s64, s32, mul_wide<s64, s32>>},
    {"mad.wide.u16", ternary<u32, u16, u32, mad_wide<u32, u16>>}, {"mad.wide.s16", ternary<s32, s16, s32, mad_wide<s32, s16>>},
    {"mad.wide.u32", ternary<u64, u32, u64, mad_wide<u64, u32>>}, {"mad.wide.s32", ternary<s64, s32, s64, mad_wide<s64, s32>>},
    {"mul24.lo.u32", binary<u32, u32, mul24<u32>>}, {"mul24.lo.s32", binary<s32, s32, mul24<s32>>},
    {"mul24.hi.u32", binary<u32, u32, mul24_hi<u32>>}, {"mul24.hi.s32", binary<s32, s32, mul24_hi<s32>>},
    {"mad24.lo.u32", ternary<u32, u32, u32, mad24<u32>>}, {"mad24.lo.s32", ternary<s32, s32, s32, mad24<s32>>},
    {"abs.s16", unary<s16, s16, absolute<s16>>}, {"abs.s32", unary<s32, s32, absolute<s32>>}, {"abs.s64", unary<s64, s64, absolute<s64>>},
    {"neg.s16", unary<s16, s16, negate<s16>>}, {"neg.s32", unary<s32, s32, negate<s32>>}, {"neg.s64", unary<s64, s64, negate<s64>>},
    {"popc.b32", unary<u32, u32, popc<u32>>}, {"popc.b64", unary<u32, u64, popc<u64>>},
    {"clz.b32", unary<u32, u32, clz<u32>>}, {"clz.b64", unary<u32, u64, clz<u64>>},
    {"brev.b32", unary<u32, u32, brev<u32>>}, {"brev.b64", unary<u64, u64, brev<u64>>},
    {"bfind.u32", unary<u32, u32, bfind<u32>>}, {"bfind.s32", unary<u32, s32, bfind<s32>>},
    {"bfind.u64", unary<u32, u64, bfind<u64>>}, {"bfind.s64", unary<u32, s64, bfind<s64>>},
    {"bfind.shiftamt.u32", unary<u32, u32, bfind_shift<u32>>}, {"bfind.shiftamt.s32", unary<u32, s32, bfind_shift<s32>>},
    {"bfind.shiftamt.u64", unary<u32, u64, bfind_shift<u64>>}, {"bfind.shiftamt.s64", unary<u32, s64, bfind_shift<s64>>},
    {"bfe.u32", extract<u32>}, {"bfe.s32", extract<s32>}, {"bfe.u64", extract<u64>}, {"bfe.s64", extract<s64>},
    {"bfi.b32", insert<u32>}, {"bfi.b64", insert<u64>},
    {"shl.b16", shift<u16, shl<u16>>}, {"shl.b32", shift<u32, shl<u32>>}, {"shl.b64", shift<u64, shl<u64>>},
    {"shr.u16", shift<u16, shr<u16>>}, {"shr.u32", shift<u32, shr<u32>>}, {"shr.u64", shift<u64, shr<u64>>},
    {"shr.s16", shift<s16, shr<s16>>}, {"shr.s32", shift<s32, shr<s32>>}, {"shr.s64", shift<s64, shr<s64>>},
    {"shf.l.wrap.b32", ternary<u32, u32, u32, shf_l_wrap>}, {"shf.r.wrap.b32", ternary<u32, u32, u32, shf_r_wrap>},
    {"shf.l.clamp.b32", ternary<u32, u32, u32, shf_l_clamp>}, {"shf.r.clamp.b32", ternary<u32, u32, u32, shf_r_clamp>},
    {"prmt.b32", ternary<u32, u32, u32, prmt>}, {"lop3.b32", lop3},
    {"dp4a.u32.u32", ternary<u32, u32, u32, dp4a<u8, u8>>}, {"dp4a.s32.s32", ternary<u32, u32, u32, dp4a<s8, s8>>},
    {"dp4a.u32.s32", ternary<u32, u32, u32, dp4a<u8, s8>>}, {"dp4a.s32.u32", ternary<u32, u32, u32, dp4a<s8, u8>>},
    {"selp.b32", select<u32>}, {"selp.b64", select<u64>},
    {"slct.b32.s32", select_by_sign<u32, s32>}, {"slct.b64.s32", select_by_sign<u64, s32>},
    {"slct.b32.f32", select_by_sign<u32, f32>}, {"slct.b64.f32", select_by_sign<u64, f32>},
    {"add.carry.b32", carry_add<u32, false>}, {"add.carry.b64", carry_add<u64, false>},
    {"sub.carry.b32", carry_add<u32, true>}, {"sub.carry.b64", carry_add<u64, true>},
    {"mad.lo.carry.b32", carry_mad<u32, false>}, {"mad.lo.carry.b64", carry_mad<u64, false>},
    {"mad.hi.carry.u32", carry_mad<u32, true>}, {"mad.hi.carry.u64", carry_mad<u64, true>},
    {"pred", pred_op}, {"pack.16x2", pack_16x2}, {"pack.32x2", pack_32x2},
    {"unpack.b32.16", unpack<u32, 16>}, {"unpack.b64.16", unpack<u64, 16>}, {"unpack.b64.32", unpack<u64, 0>}, {"unpack.b32.8", unpack<u32, 24>},
    {"sext8.b16", unary<u16, u16, extend<1, u16>>}, {"sext8.b32", unary<u32, u32, extend<1, u32>>}, {"sext8.b64", unary<u64, u32, [](u32 a) { return extend<1, u64>(a); }>},
    {"sext16.b32", unary<u32, u32, extend<2, u32>>}, {"sext16.b64", unary<u64, u32, [](u32 a) { return extend<2, u64>(a); }>},
    {"sext32.b64", unary<u64, u32, [](u32 a) { return extend<4, u64>(a); }>}, {"zext.b64", unary<u64, u32, widen>},
};

}  // namespace emu
