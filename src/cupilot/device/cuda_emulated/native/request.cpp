// Bank conflicts, sectors, and addresses resolved one at a time.
#include "request.h"

#include <algorithm>

#include "checks.h"

namespace emu {

// Banks are four bytes wide; accesses of 8 and 16 bytes go in halves and quarters of the warp. In each pass a bank
// serves one word, to any number of lanes.
u32 count_wavefronts(const s32* relative, u32 base, u32 mask, u32 bytes) {
    const u32 lanes_per_pass = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    u32 total = 0;
    for (u32 start = 0; start < kLanes; start += lanes_per_pass) {
        u32 words[kLanes * 4], count = 0;
        for (u32 l = start; l < start + lanes_per_pass; ++l) {
            if (!(mask >> l & 1)) continue;
            const u32 at = base + static_cast<u32>(relative[l]);
            for (u32 word = at >> 2; word <= (at + bytes - 1) >> 2; ++word) words[count++] = word & 0x3fffffff;
        }
        std::sort(words, words + count);
        const u32* end = std::unique(words, words + count);
        u32 per_bank[32] = {}, most = 0;
        for (const u32* word = words; word != end; ++word) most = std::max(most, ++per_bank[*word & 31]);
        total += most;
    }
    return total;
}

void find_distinct(Site& s) {
    s.distinct = 0;
    each_active(s.mask, [&](int l) {
        u32 k = 0;
        while (k < s.distinct && s.distinct_at[k] != s.pattern[l]) ++k;
        s.distinct_at[k] = s.pattern[l];
        s.distinct_who[k] = k == s.distinct ? static_cast<u32>(l) : s.distinct_who[k] | kSeveral;
        s.distinct += k == s.distinct;
    });
}

u32 count_sectors(const s32* relative, u32 low, u32 mask, u32 bytes) {
    s64 sectors[kLanes * 2];
    u32 count = 0;
    each_active(mask, [&](int l) {
        const s64 at = static_cast<s64>(low) + relative[l];
        for (s64 sector = at >> 5; sector <= (at + bytes - 1) >> 5; ++sector) sectors[count++] = sector;
    });
    std::sort(sectors, sectors + count);
    return static_cast<u32>(std::unique(sectors, sectors + count) - sectors);
}

void mark_touched(Buffer& buffer, u64 offset, u64 bytes) {
    for (u64 sector = offset >> 5; sector <= (offset + bytes - 1) >> 5; ++sector)
        buffer.touched[sector >> 6] |= u64(1) << (sector & 63);
}

Buffer* find_buffer(Warp& w, const Ins* i, u64 address, u64 bytes, int lane, bool store, u64& offset) {
    Machine& m = *w.m;
    const u64 slot = (address - kGlobalWindow) >> kSlotShift;
    offset = address & ((u64(1) << kSlotShift) - 1);
    const bool before = offset > (u64(1) << (kSlotShift - 1));  // just below the next buffer
    Buffer* buffer = slot < m.buffers.size() ? &m.buffers[slot] : nullptr;
    if (address < kGlobalWindow || slot >= m.buffers.size() + 1 || (buffer && !before && !buffer->given)) {
        fault(w, i, "wild-address", lane, address, text("\"bytes\":%llu", static_cast<unsigned long long>(bytes)));
        return nullptr;
    }
    if (before || !buffer || offset + bytes > buffer->size) {
        const u64 meant = before ? slot + 1 : slot;
        const s64 at = before ? static_cast<s64>(offset) - (s64(1) << kSlotShift) : static_cast<s64>(offset);
        fault(w, i, "out-of-bounds", lane, address,
              text("\"buffer\":%llu,\"offset\":%lld,\"bytes\":%llu,\"size\":%llu,\"store\":%s",
                   static_cast<unsigned long long>(meant), static_cast<long long>(at), static_cast<unsigned long long>(bytes),
                   static_cast<unsigned long long>(meant < m.buffers.size() ? m.buffers[meant].size : 0), store ? "true" : "false"));
        return nullptr;
    }
    if (store && !buffer->writable) {
        fault(w, i, "write-to-input", lane, address,
              text("\"buffer\":%llu,\"offset\":%llu", static_cast<unsigned long long>(slot), static_cast<unsigned long long>(offset)));
        return nullptr;
    }
    return buffer;
}

u8* locate(Warp& w, const Ins* i, u64 address, u32 bytes, int lane, u32 access_number) {
    const auto access = static_cast<Access>(access_number);
    const bool store = access != Access::kRead;
    if (address % bytes) {
        fault(w, i, "misaligned", lane, address, text("\"bytes\":%u", bytes));
        return nullptr;
    }
    const Space space = space_of(address);
    if (space == kShared) {
        const u64 offset = address - kSharedWindow;
        if (offset + bytes > w.m->shared_bytes) {
            fault(w, i, "out-of-bounds-shared", lane, offset, text("\"bytes\":%u,\"size\":%u", bytes, w.m->shared_bytes));
            return nullptr;
        }
        u32 other = 0;
        if (w.m->checks) {
            const char* kind = touch_shared(w, static_cast<u32>(offset), bytes, static_cast<u32>(lane), access, false, nullptr, other);
            if (kind) {
                fault(w, i, kind, lane, offset, text("\"other\":%u", other));
                return nullptr;
            }
        }
        return w.block->shared + offset;
    }
    if (space == kLocal) {
        const u64 offset = address - kLocalWindow, size = w.m->program->local_bytes;
        if (offset + bytes > size) {
            fault(w, i, "out-of-bounds-local", lane, offset, text("\"bytes\":%u,\"size\":%llu", bytes, static_cast<unsigned long long>(size)));
            return nullptr;
        }
        memset(w.local_set + static_cast<u64>(lane) * size + offset, 1, store ? bytes : 0);
        return w.local + static_cast<u64>(lane) * size + offset;
    }
    u64 offset;
    Buffer* buffer = find_buffer(w, i, address, bytes, lane, store, offset);
    if (!buffer) return nullptr;
    mark_touched(*buffer, offset, bytes);
    if (w.m->global_races) {
        u64 other = 0;
        if (const char* kind = touch_global(w, *buffer, offset, bytes, access, nullptr, other)) {
            fault(w, i, kind, lane, address,
                  text("\"buffer\":%ld,\"offset\":%llu,\"other\":%llu", buffer - w.m->buffers.data(),
                       static_cast<unsigned long long>(offset), static_cast<unsigned long long>(other)));
            return nullptr;
        }
    }
    return buffer->host + offset;
}

}  // namespace emu
