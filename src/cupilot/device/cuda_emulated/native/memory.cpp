// Loads and stores in every state space. a: address register; dst (b in stores), c, d, e: the values; imm: displacement.
// y: 1 = the address register is 64 bits wide. x: 1 = strong (volatile, relaxed), 2 = acquire, 4 = release.
#include "checks.h"
#include "families.h"
#include "request.h"

namespace emu {
namespace {

enum Order : u32 { kStrong = 1, kAcquire = 2, kRelease = 4 };

template <class T, int N> void gather_stored(Warp& w, const Ins* i, int lane, u8* to) {
    for (int k = 0; k < N; ++k) {
        const T value = static_cast<T>(reg<Slot<T>>(w, stored_part(i, k))[lane]);
        memcpy(to + k * sizeof(T), &value, sizeof value);
    }
}

// ---- shared ----
template <class T, int N, bool kStore> const Ins* check_shared(Warp& w, const Ins* i, const Site& s, u32 base, u32 mask) {
    constexpr u32 bytes = N * sizeof(T);
    const s64 low = static_cast<s64>(base) + s.min, high = static_cast<s64>(base) + s.max + bytes;
    if (low < 0 || high > w.m->shared_bytes) {
        for (u32 rest = mask; rest; rest &= rest - 1) {
            const int l = __builtin_ctz(rest);
            const s64 at = static_cast<s64>(base) + s.pattern[l];
            if (at < 0 || at + bytes > w.m->shared_bytes)
                return fault(w, i, "out-of-bounds-shared", l, static_cast<u64>(at), text("\"bytes\":%u,\"size\":%u", bytes, w.m->shared_bytes));
        }
    }
    if ((base | s.align) & (bytes - 1)) {
        for (u32 rest = mask; rest; rest &= rest - 1) {
            const int l = __builtin_ctz(rest);
            const u32 at = base + static_cast<u32>(s.pattern[l]);
            if (at & (bytes - 1)) return fault(w, i, "misaligned", l, at, text("\"bytes\":%u", bytes));
        }
    }
    return i;
}

// Shadow words of many lanes at once. False, having changed nothing, when some lane needs a closer look.
// `place(k)` is the k-th granule, `who(k)` its thread and kSeveral when it is not the only one.
template <bool kStore, class P, class W> bool mark_many(Warp& w, u32 count, P place, W who) {
    Block& block = *w.block;
    u32 *written = block.shared_written, *read = block.shared_read;
    const u32 now = w.clock << kClockShift | w.id * kLanes, base = block.epoch_base;
    const u32* known = w.known;
    const auto concurrent = [=](u32 entry, u32 me) -> u32 {
        return static_cast<u32>(entry >> kClockShift > base) & static_cast<u32>((entry & kWho) != (me & kThreadBits)) &
               static_cast<u32>(entry >> kClockShift > known[(entry & kThreadBits) / kLanes]);
    };
    u32 bad = 0;
    for (u32 k = 0; k < count; ++k) {
        const u32 entry = written[place(k)], me = now + who(k);
        bad |= concurrent(entry, me) | static_cast<u32>(entry == kInFlight);
        bad |= kStore ? concurrent(read[place(k)], me) : static_cast<u32>(entry >> kClockShift <= base);
    }
    if (bad) return false;
#pragma GCC ivdep
    for (u32 k = 0; k < count; ++k) {
        const u32 me = now + who(k);
        if (kStore) written[place(k)] = me;
        else read[place(k)] = me | (concurrent(read[place(k)], me) ? kSeveral : 0);
    }
    return true;
}

template <bool kStore> bool mark_request(Warp& w, const Site& s, u32 base, u32 granules) {
    const u32 shift = w.m->program->granule_shared_shift, first = base >> shift;
    if (s.kind == Kind::kContiguous) {
        const u32 lane_shift = static_cast<u32>(__builtin_ctz(granules));
        if (granules == 1) return mark_many<kStore>(w, kLanes, [=](u32 k) { return first + k; }, [](u32 k) { return k; });
        return mark_many<kStore>(w, kLanes * granules, [=](u32 k) { return first + k; }, [=](u32 k) { return k >> lane_shift; });
    }
    if (kStore && s.distinct != static_cast<u32>(__builtin_popcount(s.mask))) return false;
    for (u32 g = 0; g < granules; ++g) {
        const s32* at = s.distinct_at;
        const u32* lane = s.distinct_who;
        const auto place = [=](u32 k) { return static_cast<u32>(at[k] >> shift) + first + g; };
        if (!mark_many<kStore>(w, s.distinct, place, [=](u32 k) { return lane[k]; })) return false;
    }
    return true;
}

template <class T, int N, bool kStore> const Ins* shadow_shared(Warp& w, const Ins* i, const Site& s, u32 base, u32 mask) {
    constexpr u32 bytes = N * sizeof(T);
    const int shift = w.m->program->granule_shared_shift;
    if (i->x & kStrong && !kStore) return i;  // a strong read conflicts with no strong write, and plain ones will show
    const auto access = i->x & kStrong ? Access::kStrong : kStore ? Access::kWrite : Access::kRead;
    if (access != Access::kStrong && mark_request<kStore>(w, s, base, bytes >> shift)) return i;
    u32 other = 0;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        const u32 at = base + static_cast<u32>(s.pattern[l]);
        u8 stored[bytes];
        if constexpr (kStore) gather_stored<T, N>(w, i, l, stored);
        if (const char* kind = touch_shared(w, at, bytes, static_cast<u32>(l), access, false, kStore ? stored : nullptr, other))
            return fault(w, i, kind, l, at, text("\"other\":%u", other));
        if constexpr (kStore) memcpy(w.block->shared + at, stored, bytes);
    }
    return i;
}

template <class T, int N, bool kStore> const Ins* access_shared(Warp& w, const Ins* i, const u32* offsets, u32 mask) {
    if (!mask) return i + 1;
    const u32 base = offsets[__builtin_ctz(mask)];
    s32 relative[kLanes];
    for (int l = 0; l < kLanes; ++l) relative[l] = static_cast<s32>(offsets[l] - base);
    Site& s = site_of(w, i);
    recall<N * sizeof(T), true>(s, relative, mask, base);
    if (check_shared<T, N, kStore>(w, i, s, base, mask) != i) return nullptr;
    if (w.m->checks && shadow_shared<T, N, kStore>(w, i, s, base, mask) != i) return nullptr;
    if (i->x && w.m->program->synchronises) {
        each_active(mask, [&](int l) {
            const u64 address = kSharedWindow + base + static_cast<u32>(relative[l]);
            kStore ? signal(w, address, i->x & kRelease) : observe(w, address);
        });
    }
    if constexpr (kStore) put<T, N>(w, i, s, w.block->shared + base, relative, mask);
    else fetch<T, N>(w, i, s, w.block->shared + base, relative, mask);
    return i + 1;
}

template <class T, int N, bool kStore> const Ins* shared(Warp& w, const Ins* i) {
    alignas(64) u32 offsets[kLanes];
    const u32 displacement = static_cast<u32>(i->imm);
    if (i->y & 1) {
        const u64* a = reg<u64>(w, i->a);
        for (int l = 0; l < kLanes; ++l) offsets[l] = static_cast<u32>(a[l]) + displacement;
    } else {
        const u32* a = reg<u32>(w, i->a);
        for (int l = 0; l < kLanes; ++l) offsets[l] = a[l] + displacement;
    }
    return access_shared<T, N, kStore>(w, i, offsets, w.mask);
}

// ---- local ----
template <class T, int N, bool kStore> const Ins* access_local(Warp& w, const Ins* i, const u64* offsets, u32 mask) {
    constexpr u32 bytes = N * sizeof(T);
    const u64 size = w.m->program->local_bytes;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        const u64 offset = offsets[l];
        if (offset + bytes > size || offset > size)
            return fault(w, i, "out-of-bounds-local", l, offset, text("\"bytes\":%u,\"size\":%llu", bytes, static_cast<unsigned long long>(size)));
        if (offset & (bytes - 1)) return fault(w, i, "misaligned", l, offset, text("\"bytes\":%u", bytes));
        u8 *at = w.local + static_cast<u64>(l) * size + offset, *set = w.local_set + static_cast<u64>(l) * size + offset;
        if constexpr (kStore) {
            memset(set, 1, bytes);
            for (int k = 0; k < N; ++k) {
                const T value = static_cast<T>(reg<Slot<T>>(w, stored_part(i, k))[l]);
                memcpy(at + k * sizeof(T), &value, sizeof value);
            }
        } else {
            if (w.m->checks && memchr(set, 0, bytes)) return fault(w, i, "uninitialised-local", l, offset, text("\"bytes\":%u", bytes));
            for (int k = 0; k < N; ++k)
                if (part(i, k) != kNone) reg<Slot<T>>(w, part(i, k))[l] = read_as<T>(at + k * sizeof(T));
        }
    }
    return i + 1;
}
template <class T, int N, bool kStore> const Ins* local(Warp& w, const Ins* i) {
    u64 offsets[kLanes];
    for (int l = 0; l < kLanes; ++l)
        offsets[l] = (i->y & 1 ? reg<u64>(w, i->a)[l] : reg<u32>(w, i->a)[l]) + static_cast<u64>(i->imm);
    return access_local<T, N, kStore>(w, i, offsets, w.mask);
}

// ---- global ----
template <class T, int N> const Ins* race_check(Warp& w, const Ins* i, Buffer& buffer, const Site& s, u64 offset, u32 mask, bool store) {
    constexpr u32 bytes = N * sizeof(T);
    const auto access = i->x & kStrong ? Access::kStrong : store ? Access::kWrite : Access::kRead;
    if (access == Access::kStrong && !store) return i;
    u64 other = 0;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        u8 stored[bytes];
        if (store) gather_stored<T, N>(w, i, l, stored);
        const u64 at = offset + static_cast<u64>(static_cast<s64>(s.pattern[l]));
        const char* kind = touch_global(w, buffer, at, bytes, access, store ? stored : nullptr, other);
        if (kind)
            return fault(w, i, kind, l, at, text("\"buffer\":%ld,\"offset\":%llu,\"other\":%llu", &buffer - w.m->buffers.data(),
                                                 static_cast<unsigned long long>(at), static_cast<unsigned long long>(other)));
        if (s.kind == Kind::kUniform && !store) break;
    }
    return i;
}

void mark_sectors(Buffer& buffer, const Site& s, u64 offset, u32 mask, u32 bytes) {
    if (s.kind != Kind::kOther) {
        mark_touched(buffer, offset, static_cast<u64>(s.max) + bytes);
        return;
    }
    each_active(mask, [&](int l) { mark_touched(buffer, offset + static_cast<u64>(static_cast<s64>(s.pattern[l])), bytes); });
}

// All active lanes within 2^31 bytes of the first.
template <class T, int N, bool kStore> const Ins* access_near(Warp& w, const Ins* i, u64 base, const s32* relative, u32 mask) {
    constexpr u32 bytes = N * sizeof(T);
    Site& s = site_of(w, i);
    recall<bytes, false>(s, relative, mask, base);
    if ((base | s.align) & (bytes - 1)) {
        for (u32 rest = mask; rest; rest &= rest - 1) {
            const int l = __builtin_ctz(rest);
            const u64 at = base + static_cast<u64>(static_cast<s64>(relative[l]));
            if (at & (bytes - 1)) return fault(w, i, "misaligned", l, at, text("\"bytes\":%u", bytes));
        }
    }
    Machine& m = *w.m;
    const u64 slot = (base - kGlobalWindow) >> kSlotShift, offset = base & ((u64(1) << kSlotShift) - 1);
    const s64 low = static_cast<s64>(offset) + s.min, high = static_cast<s64>(offset) + s.max + bytes;
    if (slot >= m.buffers.size() || low < 0 || high > static_cast<s64>(m.buffers[slot].size) || !m.buffers[slot].given || (kStore && !m.buffers[slot].writable)) {
        for (u32 rest = mask; rest; rest &= rest - 1) {
            const int l = __builtin_ctz(rest);
            u64 unused;
            if (!find_buffer(w, i, base + static_cast<u64>(static_cast<s64>(relative[l])), bytes, l, kStore, unused)) return nullptr;
        }
    }
    Buffer& buffer = m.buffers[slot];
    mark_sectors(buffer, s, offset, mask, bytes);
    if (m.global_races && buffer.written && race_check<T, N>(w, i, buffer, s, offset, mask, kStore) != i) return nullptr;
    if (i->x && m.program->synchronises) {
        each_active(mask, [&](int l) {
            const u64 address = base + static_cast<u64>(static_cast<s64>(relative[l]));
            kStore ? signal(w, address, i->x & kRelease) : observe(w, address);
        });
    }
    if constexpr (kStore) put<T, N>(w, i, s, buffer.host + offset, relative, mask);
    else fetch<T, N>(w, i, s, buffer.host + offset, relative, mask);
    return i + 1;
}

template <class T, int N, bool kStore> const Ins* access_global(Warp& w, const Ins* i, const u64* addresses, u32 mask) {
    while (mask) {
        const u64 base = addresses[__builtin_ctz(mask)];
        alignas(64) s32 relative[kLanes];
        u64 far = 0;
        for (int l = 0; l < kLanes; ++l) {
            const u64 distance = addresses[l] - base;
            relative[l] = static_cast<s32>(distance);
            far |= mask >> l & 1 ? (distance + 0x40000000) >> 31 : 0;
        }
        if (!far) return access_near<T, N, kStore>(w, i, base, relative, mask);
        const u32 near = mask & lane_mask([&](int l) { return (addresses[l] - base + 0x40000000) >> 31 == 0; });
        if (!access_near<T, N, kStore>(w, i, base, relative, near)) return nullptr;
        mask &= ~near;
    }
    return i + 1;
}
inline void global_addresses(Warp& w, const Ins* i, u64* addresses) {
    const u64* a = reg<u64>(w, i->a);
    const u64 displacement = static_cast<u64>(i->imm);
    for (int l = 0; l < kLanes; ++l) addresses[l] = a[l] + displacement;
}
template <class T, int N, bool kStore> const Ins* global(Warp& w, const Ins* i) {
    alignas(64) u64 addresses[kLanes];
    global_addresses(w, i, addresses);
    return access_global<T, N, kStore>(w, i, addresses, w.mask);
}

// ---- generic: each lane's window says which space it means ----
template <class T, int N, bool kStore> const Ins* generic(Warp& w, const Ins* i) {
    alignas(64) u64 addresses[kLanes];
    global_addresses(w, i, addresses);
    u32 in[3] = {};
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        const Space space = space_of(addresses[l]);
        if (space == kNowhere) return fault(w, i, "wild-address", l, addresses[l], text("\"bytes\":%zu", N * sizeof(T)));
        in[space] |= 1u << l;
    }
    if (in[kGlobal] && !access_global<T, N, kStore>(w, i, addresses, in[kGlobal])) return nullptr;
    if (in[kShared]) {
        u32 offsets[kLanes];
        for (int l = 0; l < kLanes; ++l) offsets[l] = static_cast<u32>(addresses[l] - kSharedWindow);
        if (!access_shared<T, N, kStore>(w, i, offsets, in[kShared])) return nullptr;
    }
    if (in[kLocal]) {
        for (u64& address : addresses) address -= kLocalWindow;
        if (!access_local<T, N, kStore>(w, i, addresses, in[kLocal])) return nullptr;
    }
    return i + 1;
}

template <class T> const Ins* parameter(Warp& w, const Ins* i) {  // the same for all lanes of all blocks
    auto* d = reg<Slot<T>>(w, i->dst);
    const T value = read_as<T>(w.m->params.data() + i->imm);
    for (int l = 0; l < kLanes; ++l) d[l] = w.mask >> l & 1 ? value : d[l];
    return i + 1;
}

// isspacep: c = predicate out. x: the space.
const Ins* is_space(Warp& w, const Ins* i) {
    const u64* a = reg<u64>(w, i->a);
    set_pred(w, i->dst, lane_mask([&](int l) { return space_of(a[l]) == i->x; }));
    return i + 1;
}

}  // namespace

#define VECTORS(op, space, form, store)                                                                  \
    {op space ".b8", form<u8, 1, store>}, {op space ".b16", form<u16, 1, store>},                        \
    {op space ".b32", form<u32, 1, store>}, {op space ".b64", form<u64, 1, store>},                      \
    {op space ".v2.b8", form<u8, 2, store>}, {op space ".v2.b16", form<u16, 2, store>},                  \
    {op space ".v2.b32", form<u32, 2, store>}, {op space ".v2.b64", form<u64, 2, store>},                \
    {op space ".v4.b8", form<u8, 4, store>}, {op space ".v4.b16", form<u16, 4, store>},                  \
    {op space ".v4.b32", form<u32, 4, store>}
const std::vector<OpEntry> kMemoryOps = {
    VECTORS("ld", ".shared", shared, false), VECTORS("st", ".shared", shared, true),
    VECTORS("ld", ".global", global, false), VECTORS("st", ".global", global, true),
    VECTORS("ld", ".local", local, false), VECTORS("st", ".local", local, true),
    VECTORS("ld", ".generic", generic, false), VECTORS("st", ".generic", generic, true),
    {"ld.param.b8", parameter<u8>}, {"ld.param.b16", parameter<u16>}, {"ld.param.b32", parameter<u32>}, {"ld.param.b64", parameter<u64>},
    {"isspacep", is_space},
};

}  // namespace emu
