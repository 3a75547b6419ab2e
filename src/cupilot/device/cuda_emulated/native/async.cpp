// Asynchronous copies from global to shared memory, and the barriers in shared memory (mbarrier).
// A copy's data arrive as late as the model allows: when its thread waits. Until then nobody may touch the target.
#include "checks.h"
#include "families.h"
#include "request.h"

namespace emu {
namespace {

// y: 1 = the address register is 64 bits wide. imm: displacement. An address with or without its window.
u64 shared_address(Warp& w, const Ins* i, int l) {
    const u64 base = i->y & 1 ? reg<u64>(w, i->a)[l] : reg<u32>(w, i->a)[l];
    return kSharedWindow + static_cast<u32>(base + static_cast<u64>(i->imm));
}

void fly(Block& block, int shift, u32 offset, u32 bytes) {
    for (u32 g = offset >> shift; g <= (offset + bytes - 1) >> shift; ++g) block.shared_written[g] = kInFlight;
}
void land(Block& block, int shift, u32 offset, u32 bytes) {  // so that the write that follows is an ordinary one
    for (u32 g = offset >> shift; g <= (offset + bytes - 1) >> shift; ++g) block.shared_written[g] = 0;
}

void deliver(Warp& w, int lane, u32 before_group) {
    auto& copies = w.copies[lane];
    const int shift = w.m->program->granule_shared_shift;
    size_t kept = 0;
    for (const AsyncCopy& copy : copies) {
        if (copy.group >= before_group) {
            copies[kept++] = copy;
            continue;
        }
        u8* to = w.block->shared + copy.target;
        memcpy(to, copy.source, copy.source_bytes);
        memset(to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
        if (!w.m->checks) continue;
        u32 other;
        land(*w.block, shift, copy.target, copy.bytes);
        touch_shared(w, copy.target, copy.bytes, static_cast<u32>(lane), Access::kWrite, false, nullptr, other);
    }
    copies.resize(kept);
}

template <u32 kBytes> void count_request(Warp& w, const Ins* i, u32 mask) {
    const u64* source = reg<u64>(w, i->b);
    const u64 base = source[__builtin_ctz(mask)] + static_cast<u64>(static_cast<s32>(i->e));
    s32 relative[kLanes];
    for (int l = 0; l < kLanes; ++l) relative[l] = static_cast<s32>(source[l] - source[__builtin_ctz(mask)]);
    recall<kBytes, false>(site_of(w, i), relative, mask, base);
}

// a: target, b: source (e: its displacement), c: bytes to take from the source or none for all, x: bytes to write
const Ins* copy(Warp& w, const Ins* i) {
    const u32 bytes = i->x;
    const u64* source = reg<u64>(w, i->b);
    u32 reading = 0;
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        const u64 from = source[l] + static_cast<u64>(static_cast<s64>(static_cast<s32>(i->e)));
        const u64 to = shared_address(w, i, l);
        const u32 wanted = i->c == kNone ? bytes : reg<u32>(w, i->c)[l], taken = wanted < bytes ? wanted : bytes;
        if ((to | (taken ? from : 0)) % bytes)
            return fault(w, i, "async-alignment", l, to % bytes ? to - kSharedWindow : from, text("\"bytes\":%u", bytes));
        u8* target = locate(w, i, to, bytes, l, static_cast<u32>(Access::kWrite));
        if (!target) return nullptr;
        const u8* data = target;
        if (taken) {
            if (space_of(from) != kGlobal)
                return fault(w, i, "wild-address", l, from, text("\"bytes\":%u", taken));
            u64 offset, other = 0;
            Buffer* buffer = find_buffer(w, i, from, taken, l, false, offset);
            if (!buffer) return nullptr;
            mark_touched(*buffer, offset, taken);
            if (w.m->global_races)
                if (const char* kind = touch_global(w, *buffer, offset, taken, Access::kRead, nullptr, other))
                    return fault(w, i, kind, l, from,
                                 text("\"buffer\":%ld,\"offset\":%llu,\"other\":%llu", buffer - w.m->buffers.data(),
                                      static_cast<unsigned long long>(offset), static_cast<unsigned long long>(other)));
            data = buffer->host + offset;
            reading |= 1u << l;
        }
        const u32 place = static_cast<u32>(target - w.block->shared);
        if (w.m->checks) fly(*w.block, w.m->program->granule_shared_shift, place, bytes);
        w.copies[l].push_back({data, place, bytes, taken, w.open_group[l]});
    }
    if (reading) bytes == 16 ? count_request<16>(w, i, reading) : bytes == 8 ? count_request<8>(w, i, reading) : count_request<4>(w, i, reading);
    return i + 1;
}
const Ins* commit(Warp& w, const Ins* i) {
    each_active(w.mask, [&](int l) { ++w.open_group[l]; });
    return i + 1;
}
const Ins* wait_group(Warp& w, const Ins* i) {  // x: how many of the latest groups may stay in flight
    each_active(w.mask, [&](int l) { if (w.open_group[l] > i->x) deliver(w, l, w.open_group[l] - i->x); });
    return i + 1;
}
const Ins* wait_all(Warp& w, const Ins* i) {
    each_active(w.mask, [&](int l) { deliver(w, l, kNone); });
    return i + 1;
}

// ---- mbarrier: phase | magic (23 bits) | expected (20 bits) | pending (20 bits) ----
constexpr u64 kMagic = 0x2cafe5ull << 40, kMagicMask = 0x7fffffull << 40, kPhase = 1ull << 63, kCount = 0xfffff;
u64 expected(u64 word) { return word >> 20 & kCount; }
u64 fresh(u64 count) { return kMagic | count << 20 | count; }

const Ins* wrong(Warp& w, const Ins* i, int l, const char* why) {
    return fault(w, i, "mbarrier", l, shared_address(w, i, l) - kSharedWindow, text("\"why\":\"%s\"", why));
}
u64* barrier_word(Warp& w, const Ins* i, int l, Access access) {
    return reinterpret_cast<u64*>(locate(w, i, shared_address(w, i, l), 8, l, static_cast<u32>(access)));
}
u64* live_barrier(Warp& w, const Ins* i, int l) {
    u64* word = barrier_word(w, i, l, Access::kStrong);
    if (word && (*word & kMagicMask) != kMagic) {
        wrong(w, i, l, "it was not initialised");
        return nullptr;
    }
    return word;
}

const Ins* init(Warp& w, const Ins* i) {  // b: count
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        const u32 count = reg<u32>(w, i->b)[l];
        if (count == 0 || count > kCount) return wrong(w, i, l, "its count is not in 1 to 2^20-1");
        u64* word = barrier_word(w, i, l, Access::kWrite);
        if (!word) return nullptr;
        *word = fresh(count);
    }
    return i + 1;
}
const Ins* invalidate(Warp& w, const Ins* i) {
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        u64* word = live_barrier(w, i, __builtin_ctz(rest));
        if (!word) return nullptr;
        *word = 0;
    }
    return i + 1;
}
bool arrive_one(Warp& w, const Ins* i, int l, u64 count, bool drop, bool stays) {
    u64* word = live_barrier(w, i, l);
    if (!word) return false;
    const u64 pending = *word & kCount;
    if (count > pending) {
        wrong(w, i, l, "more arrivals than it expects in this phase");
        return false;
    }
    if (stays && count == pending) {
        wrong(w, i, l, "an arrival that must not complete the phase completes it");
        return false;
    }
    if (i->dst != kNone) reg<u64>(w, i->dst)[l] = *word;
    const u64 left = expected(*word) - (drop ? count : 0);
    *word = (*word & kPhase) | kMagic | left << 20 | (pending - count);
    if (pending == count) *word = ((*word & kPhase) ^ kPhase) | fresh(left);
    return true;
}
const Ins* publish(Warp& w, const Ins* i) {
    u64 last = 0;
    each_active(w.mask, [&](int l) {
        const u64 address = shared_address(w, i, l);
        if (address != last) arrive_clocks(w, address);
        last = address;
    });
    return i + 1;
}
const Ins* arrive(Warp& w, const Ins* i) {  // dst: the state before, b: count, x: 1 = drop out, 2 = the phase goes on
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        if (!arrive_one(w, i, l, reg<u32>(w, i->b)[l], i->x & 1, i->x & 2)) return nullptr;
    }
    return publish(w, i);
}
const Ins* arrive_after_copies(Warp& w, const Ins* i) {  // x: 1 = the arrival is one that the barrier expects
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        deliver(w, l, kNone);
        if (i->x & 1 ? !arrive_one(w, i, l, 1, false, false) : !live_barrier(w, i, l)) return nullptr;
    }
    return publish(w, i);
}
const Ins* test(Warp& w, const Ins* i) {  // dst: predicate, b: a state, or the parity of a phase (x: 1). x: 2 = may sleep
    u32 done = 0;
    for (u32 rest = w.mask; rest; rest &= rest - 1) {
        const int l = __builtin_ctz(rest);
        u64* word = live_barrier(w, i, l);
        if (!word) return nullptr;
        const u64 phase = *word >> 63, asked = i->x & 1 ? reg<u32>(w, i->b)[l] & 1 : reg<u64>(w, i->b)[l] >> 63;
        if (phase == asked) continue;
        done |= 1u << l;
        depart_clocks(w, shared_address(w, i, l));
    }
    set_pred(w, i->dst, done);
    return (i->x & 2) && done != w.mask ? pause(w, i) : i + 1;
}
const Ins* pending(Warp& w, const Ins* i) {  // of the state b
    each_active(w.mask, [&](int l) { reg<u32>(w, i->dst)[l] = static_cast<u32>(reg<u64>(w, i->b)[l] & kCount); });
    return i + 1;
}

}  // namespace

const std::vector<OpEntry> kAsyncOps = {
    {"cp.async", copy}, {"cp.async.commit", commit}, {"cp.async.wait", wait_group}, {"cp.async.wait.all", wait_all},
    {"cp.async.arrive", arrive_after_copies}, {"mbarrier.init", init}, {"mbarrier.inval", invalidate},
    {"mbarrier.arrive", arrive}, {"mbarrier.test", test}, {"mbarrier.pending", pending},
};

}  // namespace emu
