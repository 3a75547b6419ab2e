// Atomic operations, one lane after the other, starting at a random one. a: address, b: value, c: value to store if
// equal to b (cas), dst: the old value or none. y: 1 = 64-bit address register, 2 = shared space. x: order, as in memory.cpp.
#include <algorithm>

#include "checks.h"
#include "families.h"
#include "numbers.h"
#include "request.h"

namespace emu {
namespace {

template <class T> T add(T a, T b) { return a + b; }
template <class T> T smaller(T a, T b) { return b < a ? b : a; }
template <class T> T larger(T a, T b) { return a < b ? b : a; }
template <class T> T both(T a, T b) { return a & b; }
template <class T> T either(T a, T b) { return a | b; }
template <class T> T differ(T a, T b) { return a ^ b; }
template <class T> T exchange(T, T b) { return b; }
u32 increment(u32 a, u32 b) { return a >= b ? 0 : a + 1; }
u32 decrement(u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; }
u16 add_half(u16 a, u16 b) { return to_half(from_half(a) + from_half(b)); }
u16 add_bfloat(u16 a, u16 b) { return to_bfloat(from_bfloat(a) + from_bfloat(b)); }
u32 add_half2(u32 a, u32 b) { return add_half(static_cast<u16>(a), static_cast<u16>(b)) | add_half(a >> 16, b >> 16) << 16; }
u32 add_bfloat2(u32 a, u32 b) { return add_bfloat(static_cast<u16>(a), static_cast<u16>(b)) | add_bfloat(a >> 16, b >> 16) << 16; }
f32 add_flush(f32 a, f32 b) { return flushed(flushed(a) + flushed(b)); }

void count(Warp& w, const Ins* i, const u64* addresses) {
    u64 sorted[kLanes];
    u32 n = 0;
    each_active(w.mask, [&](int l) { sorted[n++] = addresses[l]; });
    std::sort(sorted, sorted + n);
    const auto distinct = static_cast<u32>(std::unique(sorted, sorted + n) - sorted);
    Site& s = site_of(w, i);
    ++s.requests;
    s.lanes += n;
    s.units += distinct;
    w.m->atomics += n;
    w.m->atomic_conflicts += n - distinct;
}

template <class T, class F> const Ins* each_atomic(Warp& w, const Ins* i, F f) {
    u64 addresses[kLanes];
    each_active(w.mask, [&](int l) {
        const u64 a = i->y & 1 ? reg<u64>(w, i->a)[l] : reg<u32>(w, i->a)[l];
        const u64 sum = a + static_cast<u64>(i->imm);
        addresses[l] = i->y & 2 ? kSharedWindow + static_cast<u32>(sum) : sum;
    });
    count(w, i, addresses);
    const int start = static_cast<int>(w.m->next_random() % kLanes);
    for (int k = 0; k < kLanes; ++k) {
        const int l = (start + k) % kLanes;
        if (!(w.mask >> l & 1)) continue;
        u8* at = locate(w, i, addresses[l], sizeof(T), l, static_cast<u32>(Access::kStrong));
        if (!at) return nullptr;
        if (w.m->program->synchronises) observe(w, addresses[l]);
        T old;
        memcpy(&old, at, sizeof old);
        const T fresh = f(old, l);
        memcpy(at, &fresh, sizeof fresh);
        if (w.m->program->synchronises) signal(w, addresses[l], i->x & 4);
        if (i->dst != kNone) reg<Slot<T>>(w, i->dst)[l] = old;
    }
    return i + 1;
}

template <class T, T (*F)(T, T)> const Ins* atom(Warp& w, const Ins* i) {
    const auto* b = reg<Slot<T>>(w, i->b);
    T operands[kLanes];  // the destination may be the register that holds the value
    for (int l = 0; l < kLanes; ++l) operands[l] = static_cast<T>(b[l]);
    return each_atomic<T>(w, i, [&](T old, int l) { return F(old, operands[l]); });
}
template <class T> const Ins* cas(Warp& w, const Ins* i) {
    const auto *b = reg<Slot<T>>(w, i->b), *c = reg<Slot<T>>(w, i->c);
    T expected[kLanes], desired[kLanes];
    for (int l = 0; l < kLanes; ++l) expected[l] = static_cast<T>(b[l]), desired[l] = static_cast<T>(c[l]);
    return each_atomic<T>(w, i, [&](T old, int l) { return old == expected[l] ? desired[l] : old; });
}

}  // namespace

const std::vector<OpEntry> kAtomicOps = {
    {"atom.add.u32", atom<u32, add<u32>>}, {"atom.add.s32", atom<u32, add<u32>>}, {"atom.add.u64", atom<u64, add<u64>>}, {"atom.add.s64", atom<u64, add<u64>>},
    {"atom.add.f32", atom<f32, add<f32>>}, {"atom.add.ftz.f32", atom<f32, add_flush>}, {"atom.add.f64", atom<f64, add<f64>>},
    {"atom.add.f16", atom<u16, add_half>}, {"atom.add.bf16", atom<u16, add_bfloat>}, {"atom.add.f16x2", atom<u32, add_half2>}, {"atom.add.bf16x2", atom<u32, add_bfloat2>},
    {"atom.min.u32", atom<u32, smaller<u32>>}, {"atom.min.s32", atom<s32, smaller<s32>>}, {"atom.min.u64", atom<u64, smaller<u64>>}, {"atom.min.s64", atom<s64, smaller<s64>>},
    {"atom.max.u32", atom<u32, larger<u32>>}, {"atom.max.s32", atom<s32, larger<s32>>}, {"atom.max.u64", atom<u64, larger<u64>>}, {"atom.max.s64", atom<s64, larger<s64>>},
    {"atom.and.b32", atom<u32, both<u32>>}, {"atom.or.b32", atom<u32, either<u32>>}, {"atom.xor.b32", atom<u32, differ<u32>>}, {"atom.exch.b32", atom<u32, exchange<u32>>},
    {"atom.and.b64", atom<u64, both<u64>>}, {"atom.or.b64", atom<u64, either<u64>>}, {"atom.xor.b64", atom<u64, differ<u64>>}, {"atom.exch.b64", atom<u64, exchange<u64>>},
    {"atom.inc.u32", atom<u32, increment>}, {"atom.dec.u32", atom<u32, decrement>},
    {"atom.cas.b16", cas<u16>}, {"atom.cas.b32", cas<u32>}, {"atom.cas.b64", cas<u64>},
};

}  // namespace emu
