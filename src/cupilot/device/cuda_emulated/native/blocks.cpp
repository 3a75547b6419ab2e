// Memory of blocks and warps: registers, predicates, shared and local memory, poisoned where hardware promises nothing.
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "checks.h"

namespace emu {
namespace {

constexpr u64 kAlign = 64, kMostMemory = u64(1) << 30;
u64 rounded(u64 size) { return (size + kAlign - 1) / kAlign * kAlign; }

void poison(Machine& m, u8* data, u64 size) {
    const u64 pattern = m.next_random();
    for (u64 k = 0; k < size; k += 8) {
        const u64 word = pattern * (2 * k + 1);
        memcpy(data + k, &word, std::min<u64>(8, size - k));
    }
}

}  // namespace

BlockPool::Sizes::Sizes(const Machine& m) {
    const Program& p = *m.program;
    warps = (m.threads + kLanes - 1) / kLanes;
    constants = p.constants.size() / 2 * 4 * kLanes;
    registers = rounded(constants + p.register_bytes);
    predicates = rounded(4 * (p.predicate_count + 1));
    local = rounded(static_cast<u64>(p.local_bytes) * kLanes);
    shared = rounded(m.shared_bytes + 256);
    granules = rounded(4 * ((shared >> p.granule_shared_shift) + kLanes * 4));
    block = (registers + predicates + 2 * local) * warps + shared + 2 * granules;
}

BlockPool::BlockPool(Machine& m, u64 wanted) : m_(m) {
    const Program& p = *m.program;
    const Sizes size(m);
    // Where nothing depends on it, fewer blocks at a time rather than more memory than a machine has.
    const u64 fits = std::max<u64>(1, kMostMemory / size.block);
    blocks_ = std::vector<Block>(m.shape.cooperative ? wanted : std::min(wanted, fits));
    const u64 resident = blocks_.size();
    warps_ = std::vector<Warp>(resident * size.warps);
    memory_size_ = size.block * resident;
    void* memory = memory_size_ > kMostMemory && resident > 1
        ? MAP_FAILED : mmap(nullptr, memory_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<u8*>(memory);
    if (!memory_) {
        m.fault = "{\"kind\":\"out-of-memory\",\"ins\":0,\"thread\":[0,0,0],\"block\":[0,0,0],\"address\":0}";
        return;
    }
    u8* at = memory_;
    const auto take = [&](u64 size) { return std::exchange(at, at + size); };
    for (u64 k = 0; k < resident; ++k) {
        Block& block = blocks_[k];
        block.warp_count = size.warps;
        block.warps = &warps_[k * size.warps];
        block.shared = take(size.shared);
        block.shared_written = reinterpret_cast<u32*>(take(size.granules));
        block.shared_read = reinterpret_cast<u32*>(take(size.granules));
        for (u32 n = 0; n < size.warps; ++n) {
            Warp& w = block.warps[n];
            w.m = &m;
            w.block = &block;
            w.id = n;
            w.base = p.code.data();
            w.regs = take(size.registers);
            w.preds = reinterpret_cast<u32*>(take(size.predicates));
            w.local = take(size.local);
            w.local_set = take(size.local);
            for (u64 c = 0; c < size.constants / 4; ++c)
                reinterpret_cast<u32*>(w.regs)[c] = p.constants[c / kLanes * 2 + (c & 1)];
            poison(m, w.regs + size.constants, size.registers - size.constants);
        }
    }
}

BlockPool::~BlockPool() {
    if (memory_) munmap(memory_, memory_size_);
}

void BlockPool::start(u64 place, u64 linear) {
    if (!memory_) return;
    Block& block = blocks_[place];
    const u32* grid = m_.shape.grid;
    block.linear = linear;
    block.id[0] = static_cast<u32>(linear % grid[0]);
    block.id[1] = static_cast<u32>(linear / grid[0] % grid[1]);
    block.id[2] = static_cast<u32>(linear / (static_cast<u64>(grid[0]) * grid[1]));
    block.sm = static_cast<u32>(m_.next_random() % 132);
    block.live_threads = m_.threads;
    std::fill(std::begin(block.barriers), std::end(block.barriers), Barrier{});
    block.shared_sync.clear();
    begin_clocks(block, m_);
    poison(m_, block.shared, m_.shared_bytes);
    for (u32 n = 0; n < block.warp_count; ++n) {
        Warp& w = block.warps[n];
        const u32 lanes = std::min<u32>(kLanes, m_.threads - n * kLanes);
        w.live = w.mask = lanes == kLanes ? ~0u : (1u << lanes) - 1;
        w.group_count = 1;
        w.groups[0] = {0, w.live, 0, GroupState::kReady, 0};
        w.carry = w.spins = w.favour = 0;
        for (auto& copies : w.copies) copies.clear();
        std::fill(std::begin(w.open_group), std::end(w.open_group), 0);
        if (m_.program->local_bytes) {
            poison(m_, w.local, m_.program->local_bytes * kLanes);
            memset(w.local_set, 0, m_.program->local_bytes * kLanes);
        }
    }
}

BlockOrder::BlockOrder(Machine& m) : count_(m.blocks) {
    if (!m.shape.order) return;
    shift_ = m.next_random() % count_;
    do factor_ = m.next_random() % count_ | 1;
    while (std::gcd(factor_, count_) != 1);
}

}  // namespace emu
