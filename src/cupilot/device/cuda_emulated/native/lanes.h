// Applying a function to all lanes of registers. Plain loops of constant length: the compiler makes vectors of them.
#pragma once

#include "machine.h"

namespace emu {

// Registers narrower than 32 bits live in 32-bit slots, zero-extended.
template <class T> struct SlotOf { using type = T; };
template <> struct SlotOf<u8> { using type = u32; };
template <> struct SlotOf<s8> { using type = u32; };
template <> struct SlotOf<u16> { using type = u32; };
template <> struct SlotOf<s16> { using type = u32; };
template <class T> using Slot = typename SlotOf<T>::type;

template <class T> struct UnsignedOf { using type = T; };
template <> struct UnsignedOf<s8> { using type = u8; };
template <> struct UnsignedOf<s16> { using type = u16; };
template <> struct UnsignedOf<s32> { using type = u32; };
template <> struct UnsignedOf<s64> { using type = u64; };

template <class T> inline Slot<T> to_slot(T value) {
    return static_cast<Slot<T>>(static_cast<typename UnsignedOf<T>::type>(value));
}

template <class D, class F> inline __attribute__((always_inline)) void each(Warp& w, D* d, F f) {
    if (w.full) {
#pragma GCC ivdep
        for (int l = 0; l < kLanes; ++l) d[l] = f(l);
    } else {
        const u32 mask = w.mask;
#pragma GCC ivdep
        for (int l = 0; l < kLanes; ++l) d[l] = mask >> l & 1 ? f(l) : d[l];
    }
}

// For functions too large to be worth executing on lanes that are not wanted.
template <class F> inline void each_active(u32 mask, F f) {
    for (u32 rest = mask; rest; rest &= rest - 1) f(__builtin_ctz(rest));
}

template <class R, class A, R (*F)(A)> const Ins* unary(Warp& w, const Ins* i) {
    const auto* a = reg<Slot<A>>(w, i->a);
    each(w, reg<Slot<R>>(w, i->dst), [=](int l) { return to_slot<R>(F(static_cast<A>(a[l]))); });
    return i + 1;
}

template <class R, class A, R (*F)(A, A)> const Ins* binary(Warp& w, const Ins* i) {
    const auto* a = reg<Slot<A>>(w, i->a);
    const auto* b = reg<Slot<A>>(w, i->b);
    each(w, reg<Slot<R>>(w, i->dst),
         [=](int l) { return to_slot<R>(F(static_cast<A>(a[l]), static_cast<A>(b[l]))); });
    return i + 1;
}

// The second operand is a 32-bit count, whatever the first one is.
template <class A, A (*F)(A, u32)> const Ins* shift(Warp& w, const Ins* i) {
    const auto* a = reg<Slot<A>>(w, i->a);
    const u32* b = reg<u32>(w, i->b);
    each(w, reg<Slot<A>>(w, i->dst), [=](int l) { return to_slot<A>(F(static_cast<A>(a[l]), b[l])); });
    return i + 1;
}

template <class R, class A, class C, R (*F)(A, A, C)> const Ins* ternary(Warp& w, const Ins* i) {
    const auto* a = reg<Slot<A>>(w, i->a);
    const auto* b = reg<Slot<A>>(w, i->b);
    const auto* c = reg<Slot<C>>(w, i->c);
    each(w, reg<Slot<R>>(w, i->dst), [=](int l) {
        return to_slot<R>(F(static_cast<A>(a[l]), static_cast<A>(b[l]), static_cast<C>(c[l])));
    });
    return i + 1;
}

template <class F> inline u32 lane_mask(F f) {
    u32 mask = 0;
    for (int l = 0; l < kLanes; ++l) mask |= static_cast<u32>(f(l)) << l;
    return mask;
}

inline void set_pred(Warp& w, u32 number, u32 bits) {
    if (number != kNone) w.preds[number] = (w.preds[number] & ~w.mask) | (bits & w.mask);
}

// A predicate operand: its number, and the top bit when it is negated.
inline u32 pred(const Warp& w, u32 operand) {
    return operand >> 31 ? ~w.preds[operand & 0x7fffffff] : w.preds[operand];
}

}  // namespace emu
