// What the lanes of a warp do together: shuffles, votes, matches, reductions, and waiting for each other.
// Every form names its participants; lanes that have exited count as present. A value taken from a lane that does
// not take part is undefined in CUDA: here it is random.
#include <algorithm>

#include "checks.h"
#include "families.h"
#include "lanes.h"

namespace emu {
namespace {

u32 members(Warp& w, u32 operand) {
    const u32* masks = reg<u32>(w, operand);
    u32 all = 0;
    each_active(w.mask, [&](int l) { all |= masks[l]; });
    return all;
}
// Waits for all participants; i once they are here.
const Ins* together(Warp& w, const Ins* i, u32 operand) {
    const u32* masks = reg<u32>(w, operand);
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        if (!(masks[l] >> l & 1)) return fault(w, i, "not-a-member", l, 0, text("\"members\":%u", masks[l]));
    }
    return converge(w, i, members(w, operand));
}

enum Mode : u32 { kDown, kUp, kButterfly, kIndex };
const Ins* shfl(Warp& w, const Ins* i) {  // dst = a of the lane that b says, clamp d, members e; x: mode, c: whether it was in range
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    const u32 *a = reg<u32>(w, i->a), *b = reg<u32>(w, i->b), *clamp = reg<u32>(w, i->d);
    u32 result[kLanes], valid = 0;
    each_active(w.mask, [&](int l) {
        const int limit = static_cast<int>(clamp[l] & 31), segment = static_cast<int>(clamp[l] >> 8 & 31);
        const int by = static_cast<int>(b[l] & 31), highest = (l & segment) | (limit & ~segment), lowest = l & segment;
        int from = 0;
        bool inside = false;
        switch (i->x) {
            case kDown: from = l + by, inside = from <= highest; break;
            case kUp: from = l - by, inside = from >= highest; break;
            case kButterfly: from = l ^ by, inside = from <= highest; break;
            default: from = lowest | (by & ~segment), inside = from <= highest;
        }
        if (!inside) from = l;
        valid |= static_cast<u32>(inside) << l;
        result[l] = w.mask >> from & 1 ? a[from] : static_cast<u32>(w.m->next_random());
    });
    u32* d = reg<u32>(w, i->dst);
    each_active(w.mask, [&](int l) { d[l] = result[l]; });
    set_pred(w, i->c, valid);
    return i + 1;
}

enum Vote : u32 { kAny, kAll, kUniform, kBallot };
const Ins* vote(Warp& w, const Ins* i) {  // a: predicate, e: members, x: which
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    const u32 votes = pred(w, i->a) & w.mask;
    const u32* masks = reg<u32>(w, i->e);
    u32 result = 0, counts[kLanes];
    each_active(w.mask, [&](int l) {
        const u32 present = masks[l] & w.mask, yes = votes & present;
        counts[l] = yes;
        const bool r = i->x == kAny ? yes != 0 : i->x == kAll ? yes == present : yes == present || yes == 0;
        result |= static_cast<u32>(r) << l;
    });
    if (i->x != kBallot) set_pred(w, i->dst, result);
    else each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) { d[l] = counts[l]; });
    return i + 1;
}

template <class T, bool kEveryone> const Ins* match(Warp& w, const Ins* i) {  // c: predicate of match.all
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    const T* a = reg<T>(w, i->a);
    const u32* masks = reg<u32>(w, i->e);
    u32 result[kLanes], all = 0;
    each_active(w.mask, [&](int l) {
        u32 equal = 0;
        const u32 present = masks[l] & w.mask;
        each_active(present, [&](int k) { equal |= static_cast<u32>(a[k] == a[l]) << k; });
        const bool agree = equal == present;
        result[l] = kEveryone ? (agree ? present : 0) : equal;
        all |= static_cast<u32>(agree) << l;
    });
    each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) { d[l] = result[l]; });
    if (kEveryone) set_pred(w, i->c, all);
    return i + 1;
}

template <class T, T (*F)(T, T)> const Ins* redux(Warp& w, const Ins* i) {
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    const T* a = reg<T>(w, i->a);
    const u32* masks = reg<u32>(w, i->e);
    T result[kLanes];
    each_active(w.mask, [&](int l) {
        bool first = true;
        each_active(masks[l] & w.mask, [&](int k) {
            result[l] = first ? a[k] : F(result[l], a[k]);
            first = false;
        });
    });
    each_active(w.mask, [&, d = reg<T>(w, i->dst)](int l) { d[l] = result[l]; });
    return i + 1;
}
template <class T> T add(T a, T b) { return a + b; }
template <class T> T smaller(T a, T b) { return std::min(a, b); }
template <class T> T larger(T a, T b) { return std::max(a, b); }
u32 both(u32 a, u32 b) { return a & b; }
u32 either(u32 a, u32 b) { return a | b; }
u32 differ(u32 a, u32 b) { return a ^ b; }

const Ins* active(Warp& w, const Ins* i) {
    each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) { d[l] = w.mask; });
    return i + 1;
}
const Ins* elect(Warp& w, const Ins* i) {  // dst: the leader, c: whether it is me
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    const int leader = __builtin_ctz(w.mask);
    if (i->dst != kNone) each_active(w.mask, [&, d = reg<u32>(w, i->dst)](int l) { d[l] = static_cast<u32>(leader); });
    set_pred(w, i->c, 1u << leader);
    return i + 1;
}
const Ins* sync(Warp& w, const Ins* i) {
    if (const Ins* next = together(w, i, i->e); next != i) return next;
    join_lanes(w);
    return i + 1;
}

}  // namespace

const std::vector<OpEntry> kWarpOps = {
    {"shfl.sync.b32", shfl}, {"vote.sync", vote}, {"activemask.b32", active}, {"elect.sync", elect}, {"bar.warp.sync", sync},
    {"match.any.sync.b32", match<u32, false>}, {"match.any.sync.b64", match<u64, false>},
    {"match.all.sync.b32", match<u32, true>}, {"match.all.sync.b64", match<u64, true>},
    {"redux.sync.add.u32", redux<u32, add<u32>>}, {"redux.sync.add.s32", redux<s32, add<s32>>},
    {"redux.sync.min.u32", redux<u32, smaller<u32>>}, {"redux.sync.min.s32", redux<s32, smaller<s32>>},
    {"redux.sync.max.u32", redux<u32, larger<u32>>}, {"redux.sync.max.s32", redux<s32, larger<s32>>},
    {"redux.sync.and.b32", redux<u32, both>}, {"redux.sync.or.b32", redux<u32, either>}, {"redux.sync.xor.b32", redux<u32, differ>},
};

}  // namespace emu
