// Who touched which memory when: vector clocks of warps and blocks, and shadow words for races and for memory that
// was never written. Shadow words are kept per granule: the smallest width the kernel uses on that memory.
#pragma once

#include "machine.h"

namespace emu {

// Shared shadow: clock << 12 | strong << 11 | several << 10 | thread. `several`: not this thread alone, at that clock.
inline constexpr u32 kThreadBits = 0x3ff, kSeveral = 0x400, kStrongBit = 0x800, kWho = 0x7ff;
inline constexpr int kClockShift = 12;
inline constexpr u32 kInFlight = ~0u;  // written by an asynchronous copy that nobody has waited for

void begin_clocks(Block& block, Machine& m);  // a new block in this memory: nothing it holds counts as written
void join_clocks(Block& block, u32 warps);   // all of them waited for each other
void join_lanes(Warp& w);                    // the lanes of one warp did
void fence(Warp& w, bool device_wide);       // what this block did so far is ordered before its later signals
void signal(Warp& w, u64 address, bool release);  // an atomic or volatile write
void observe(Warp& w, u64 address);          // an atomic or volatile read
void arrive_clocks(Warp& w, u64 address);    // the same by an mbarrier, which orders the lanes of a warp as well
void depart_clocks(Warp& w, u64 address);

enum class Access : u8 { kRead, kWrite, kStrong };  // strong: atomic, volatile or relaxed
// Null, or the fault's kind. `stored`: what is written, if known: writing what is there already harms nobody.
// `other` receives the thread (shared) or block (global) in conflict.
const char* touch_shared(Warp& w, u32 offset, u32 bytes, u32 lane, Access access, bool several, const u8* stored, u32& other);
const char* touch_global(Warp& w, Buffer& buffer, u64 offset, u32 bytes, Access access, const u8* stored, u64& other);

// Memory of the blocks that run at the same time.
class BlockPool {
    struct Sizes {  // of one block's parts, in bytes
        u32 warps;
        u64 constants, registers, predicates, local, shared, granules, block;
        explicit Sizes(const Machine& m);
    };
    Machine& m_;
    std::vector<Block> blocks_;
    std::vector<Warp> warps_;
    u8* memory_ = nullptr;
    u64 memory_size_ = 0;

  public:
    BlockPool(Machine& m, u64 wanted);  // takes fewer where memory is short
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    void start(u64 place, u64 linear);
    Block& block(u64 place) { return blocks_[place]; }
    u64 count() const { return blocks_.size(); }
};

// The order in which blocks are started: natural, or a permutation drawn from the seed.
class BlockOrder {
    u64 count_, factor_ = 1, shift_ = 0;

  public:
    explicit BlockOrder(Machine& m);
    u64 at(u64 k) const { return static_cast<u64>((static_cast<unsigned __int128>(k) * factor_ + shift_) % count_); }
};

}  // namespace emu
