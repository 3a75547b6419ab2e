// One request of a warp to memory: how its lanes lie to each other, remembered per instruction because it rarely
// changes from one execution to the next. All per-request checks and counters follow from the remembered shape.
#pragma once

#include "checks.h"
#include "lanes.h"

namespace emu {

// Of a shared request: wavefronts, the passes the banks need. Of a global one: 32-byte sectors.
u32 count_wavefronts(const s32* relative, u32 base, u32 mask, u32 bytes);
u32 count_sectors(const s32* relative, u32 low, u32 mask, u32 bytes);

void find_distinct(Site& s);

template <u32 kBytes, bool kShared>
__attribute__((noinline)) void learn(Site& s, const s32* relative, u32 mask, u32 low) {
    memcpy(s.pattern, relative, sizeof s.pattern);
    s.mask = mask;
    s.low = low;
    s.min = s.max = 0;
    s.align = 0;
    bool uniform = true, contiguous = mask == ~0u;
    each_active(mask, [&](int l) {
        const s32 r = relative[l];
        s.min = r < s.min ? r : s.min;
        s.max = r > s.max ? r : s.max;
        s.align |= static_cast<u32>(r);
        uniform &= r == 0;
        contiguous &= r == l * static_cast<s32>(kBytes);
    });
    s.kind = uniform ? Kind::kUniform : contiguous ? Kind::kContiguous : Kind::kOther;
    s.units_now = kShared ? count_wavefronts(relative, low, mask, kBytes) : count_sectors(relative, low, mask, kBytes);
    if (kShared) find_distinct(s);
    s.known = true;
}

// Makes the site describe this request; `relative` holds each lane's distance from the first active one.
template <u32 kBytes, bool kShared> inline void recall(Site& s, const s32* relative, u32 mask, u64 base) {
    const u32 low = static_cast<u32>(base) & (kShared ? 3 : 31);
    u32 differs = (s.mask ^ mask) | (s.low ^ low) | !s.known;
    if (mask == ~0u) {
        for (int l = 0; l < kLanes; ++l) differs |= static_cast<u32>(relative[l] ^ s.pattern[l]);
    } else {
        for (int l = 0; l < kLanes; ++l) differs |= mask >> l & 1 ? static_cast<u32>(relative[l] ^ s.pattern[l]) : 0;
    }
    if (differs) learn<kBytes, kShared>(s, relative, mask, low);
    ++s.requests;
    s.lanes += static_cast<u32>(__builtin_popcount(mask));
    s.units += s.units_now;
}

template <class T> inline T read_as(const u8* from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

// The registers of an access of up to four values: what a load writes, what a store reads.
inline u32 part(const Ins* i, int k) { return k == 0 ? i->dst : k == 1 ? i->c : k == 2 ? i->d : i->e; }
inline u32 stored_part(const Ins* i, int k) { return k == 0 ? i->b : part(i, k); }

template <class T, int N> inline void fetch(Warp& w, const Ins* i, const Site& s, const u8* first, const s32* relative, u32 mask) {
    for (int k = 0; k < N; ++k) {
        if (part(i, k) == kNone) continue;
        auto* d = reg<Slot<T>>(w, part(i, k));
        const u8* from = first + k * sizeof(T);
        if (s.kind == Kind::kContiguous) {
            for (int l = 0; l < kLanes; ++l) d[l] = read_as<T>(from + l * (N * static_cast<int>(sizeof(T))));
        } else if (s.kind == Kind::kUniform && mask == w.live) {
            const T value = read_as<T>(from);
            for (int l = 0; l < kLanes; ++l) d[l] = value;
        } else {
            each_active(mask, [&](int l) { d[l] = read_as<T>(from + relative[l]); });
        }
    }
}

template <class T, int N> inline void put(Warp& w, const Ins* i, const Site& s, u8* first, const s32* relative, u32 mask) {
    for (int k = 0; k < N; ++k) {
        const auto* v = reg<Slot<T>>(w, stored_part(i, k));
        u8* to = first + k * sizeof(T);
        if (s.kind == Kind::kContiguous) {
            for (int l = 0; l < kLanes; ++l) {
                const T value = static_cast<T>(v[l]);
                memcpy(to + l * (N * static_cast<int>(sizeof(T))), &value, sizeof value);
            }
        } else {
            each_active(mask, [&](int l) {
                const T value = static_cast<T>(v[l]);
                memcpy(to + relative[l], &value, sizeof value);
            });
        }
    }
}

inline Site& site_of(Warp& w, const Ins* i) { return w.m->program->sites[i->site]; }

enum Space : u32 { kShared, kLocal, kGlobal, kNowhere };
inline Space space_of(u64 address) {
    if (address >= kGlobalWindow) return kGlobal;
    if (address - kSharedWindow < u64(1) << kSlotShift) return kShared;
    if (address - kLocalWindow < u64(1) << kSlotShift) return kLocal;
    return kNowhere;
}

// Where an address of the global window lives. Null, after reporting the fault, when it lives nowhere.
Buffer* find_buffer(Warp& w, const Ins* i, u64 address, u64 bytes, int lane, bool store, u64& offset);
// For atomics, asynchronous copies and the like: any space, checked and marked, one lane at a time.
u8* locate(Warp& w, const Ins* i, u64 address, u32 bytes, int lane, u32 access);
void mark_touched(Buffer& buffer, u64 offset, u64 bytes);

}  // namespace emu
