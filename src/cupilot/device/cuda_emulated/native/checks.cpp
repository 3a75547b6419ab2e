// Vector clocks and shadow memory: see checks.h. Follows FastTrack (Flanagan and Freund, 2009) with one reader per
// granule and a mark for several, which misses a few races that are ordered with the last reader but never invents one.
#include "checks.h"

#include <algorithm>

namespace emu {
namespace {

constexpr u32 kClockLimit = 1u << 19;
// Global shadow: several << 31 | strong << 30 | who. Without fences in the kernel, who = block + 1;
// with fences, who = clock << 11 | block, for at most 2047 blocks.
constexpr u32 kGlobalSeveral = 1u << 31, kGlobalStrong = 1u << 30, kGlobalWho = kGlobalStrong - 1;
constexpr u32 kBlockBits = 0x7ff;
constexpr int kBlockShift = 11;

bool ordered(const Warp& w, u32 entry) {
    return entry >> kClockShift <= w.known[(entry & kThreadBits) / kLanes];
}
u32 entry_of(const Warp& w, u32 lane) { return w.clock << kClockShift | (w.id * kLanes + lane); }

// Clocks stop at the end of their range: from then on races are missed, none is invented.
void tick(Warp& w) { w.clock += w.clock < (1u << (32 - kClockShift)) - 2; }

void join(std::vector<u32>& into, const std::vector<u32>& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (size_t k = 0; k < from.size(); ++k) into[k] = std::max(into[k], from[k]);
}

}  // namespace

void begin_clocks(Block& block, Machine& m) {
    u32 latest = 0;
    for (u32 n = 0; n < block.warp_count; ++n) latest = std::max(latest, block.warps[n].clock);
    if (latest > kClockLimit) {
        const u64 bytes = 4 * ((m.shared_bytes >> m.program->granule_shared_shift) + kLanes);
        memset(block.shared_written, 0, bytes);
        memset(block.shared_read, 0, bytes);
        latest = 0;
    }
    block.epoch_base = latest;
    for (u32 n = 0; n < block.warp_count; ++n) {
        block.warps[n].clock = latest + 1;
        std::fill(std::begin(block.warps[n].known), std::end(block.warps[n].known), latest);
    }
    block.clock = 1;
    block.seen.clear();
    block.released.clear();
    if (m.sync_between_blocks) block.seen.resize(m.blocks);
}

void join_clocks(Block& block, u32 warps) {
    u32 joined[kMaxWarps] = {};
    for (u32 rest = warps; rest; rest &= rest - 1) {
        const Warp& w = block.warps[__builtin_ctz(rest)];
        for (u32 n = 0; n < block.warp_count; ++n) joined[n] = std::max(joined[n], w.known[n]);
        joined[w.id] = std::max(joined[w.id], w.clock);
    }
    for (u32 rest = warps; rest; rest &= rest - 1) {
        Warp& w = block.warps[__builtin_ctz(rest)];
        std::copy_n(joined, kMaxWarps, w.known);
        tick(w);
    }
}

void join_lanes(Warp& w) {
    w.known[w.id] = w.clock;
    tick(w);
}

void fence(Warp& w, bool device_wide) {
    Machine& m = *w.m;
    if (!device_wide || !m.sync_between_blocks) return;
    Block& block = *w.block;
    block.released = block.seen;
    block.released[block.linear] = block.clock;
    ++block.clock;
}

void arrive_clocks(Warp& w, u64 address) {
    std::vector<u32> mine(w.known, w.known + w.block->warp_count);
    mine[w.id] = w.clock;
    join(w.block->shared_sync[address], mine);
    tick(w);
}

void depart_clocks(Warp& w, u64 address) {
    const auto& found = w.block->shared_sync[address];
    for (size_t n = 0; n < found.size(); ++n) w.known[n] = std::max(w.known[n], found[n]);
}

void signal(Warp& w, u64 address, bool release) {
    Machine& m = *w.m;
    if (!m.program->synchronises) return;
    if (address - kSharedWindow < (u64(1) << kSlotShift)) {
        arrive_clocks(w, address);
        return;
    }
    if (!m.sync_between_blocks) return;
    if (release) fence(w, true);
    join(m.sync[address], w.block->released);
}

void observe(Warp& w, u64 address) {
    Machine& m = *w.m;
    if (!m.program->synchronises) return;
    if (address - kSharedWindow < (u64(1) << kSlotShift)) {
        const auto found = w.block->shared_sync.find(address);
        if (found == w.block->shared_sync.end()) return;
        for (size_t n = 0; n < found->second.size(); ++n)
            if (n != w.id) w.known[n] = std::max(w.known[n], found->second[n]);
        return;
    }
    if (!m.sync_between_blocks) return;
    const auto found = m.sync.find(address);
    if (found != m.sync.end()) join(w.block->seen, found->second);
}

namespace {
u32 copier(const Block& block, u32 offset) {  // the thread whose asynchronous copy goes there
    for (u32 n = 0; n < block.warp_count; ++n)
        for (u32 l = 0; l < kLanes; ++l)
            for (const AsyncCopy& copy : block.warps[n].copies[l])
                if (offset + 16 > copy.target && offset < copy.target + copy.bytes) return n * kLanes + l;
    return 0;
}
}  // namespace

const char* touch_shared(Warp& w, u32 offset, u32 bytes, u32 lane, Access access, bool several, const u8* stored, u32& other) {
    Block& block = *w.block;
    const int shift = w.m->program->granule_shared_shift;
    const u32 mine = entry_of(w, lane), crowded = several ? kSeveral : 0;
    const auto concurrent = [&](u32 entry) {
        return entry >> kClockShift > block.epoch_base && (entry & kWho) != (mine & kThreadBits) && !ordered(w, entry);
    };
    for (u32 g = offset >> shift; g <= (offset + bytes - 1) >> shift; ++g) {
        u32 &written = block.shared_written[g], &read = block.shared_read[g];
        other = written & kThreadBits;
        if (written == kInFlight) {
            other = copier(block, g << shift);
            return "async-in-flight";
        }
        const bool clash = concurrent(written);
        if (access == Access::kRead) {
            if (written >> kClockShift <= block.epoch_base) return "uninitialised-shared";
            if (clash) return "race-shared-read";
            read = mine | crowded | (concurrent(read) ? kSeveral : 0);
            continue;
        }
        const bool both_strong = access == Access::kStrong && written & kStrongBit;
        const auto unchanged = [&] { return stored && memcmp(block.shared + offset, stored, bytes) == 0; };
        if (clash && !both_strong && !unchanged()) return "race-shared-write";
        other = read & kThreadBits;
        if (concurrent(read) && !unchanged()) return "race-shared-write-after-read";
        // A plain write stays one, for others, although its thread adds an atomic before anybody could know of it.
        const bool still_plain = (written & ~kSeveral) == mine;
        written = mine | crowded | (access == Access::kStrong && !still_plain ? kStrongBit | (clash ? kSeveral : 0) : 0);
    }
    return nullptr;
}

const char* touch_global(Warp& w, Buffer& buffer, u64 offset, u32 bytes, Access access, const u8* stored, u64& other) {
    if (!buffer.written) return nullptr;
    Block& block = *w.block;
    const bool clocked = w.m->sync_between_blocks;
    const int shift = w.m->program->granule_global_shift;
    const u32 mine = clocked ? block.clock << kBlockShift | static_cast<u32>(block.linear) : static_cast<u32>(block.linear + 1);
    const auto concurrent = [&](u32 entry) {
        const u32 who = entry & kGlobalWho;
        if (who == 0) return false;
        if (!clocked) return who != mine || entry & kGlobalSeveral;
        return (who & kBlockBits) != block.linear && who >> kBlockShift > block.seen[who & kBlockBits];
    };
    const auto block_of = [&](u32 entry) { return clocked ? entry & kBlockBits : (entry & kGlobalWho) - 1; };
    for (u64 g = offset >> shift; g <= (offset + bytes - 1) >> shift; ++g) {
        u32 &written = buffer.written[g], &read = buffer.read[g];
        other = block_of(written);
        const bool clash = concurrent(written);
        if (access == Access::kRead) {
            if (clash) return "race-global-read";
            read = mine | (concurrent(read) ? kGlobalSeveral : 0);
            continue;
        }
        const bool both_strong = access == Access::kStrong && written & kGlobalStrong;
        const auto unchanged = [&] { return stored && memcmp(buffer.host + offset, stored, bytes) == 0; };
        if (clash && !both_strong && !unchanged()) return "race-global-write";
        other = block_of(read);
        if (concurrent(read) && !unchanged()) return "race-global-write-after-read";
        written = mine | (access == Access::kStrong ? kGlobalStrong | (clash ? kGlobalSeveral : 0) : 0);
    }
    return nullptr;
}

}  // namespace emu
