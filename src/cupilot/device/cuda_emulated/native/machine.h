// The machine: instructions, warps, blocks, buffers, and what every instruction family needs of them.
// One instruction is executed for all 32 lanes of a warp at once; a handler returns the next instruction.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace emu {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;

inline constexpr int kLanes = 32;
inline constexpr u32 kNone = ~0u;  // an operand that is not there
inline constexpr u32 kBarriers = 16;
inline constexpr u32 kMaxWarps = 32;

// Virtual addresses. Each buffer owns a slot of 2^36 bytes, so that no overrun reaches a neighbour.
inline constexpr int kSlotShift = 36;
inline constexpr u64 kSharedWindow = 0x7000'0000'0000;
inline constexpr u64 kLocalWindow = 0x7100'0000'0000;
inline constexpr u64 kGlobalWindow = 0x7200'0000'0000;

struct Warp;
struct Machine;
struct Ins;
using Handler = const Ins* (*)(Warp&, const Ins*);

// Register operands are byte offsets into the warp's register file; predicates are numbers.
struct alignas(64) Ins {
    Handler run;
    u32 dst, a, b, c, d, e;
    u32 target, site;
    s64 imm;
    u32 x, y;  // flags, by family
};

struct OpEntry {
    const char* name;
    Handler run;
};

// How the lanes of one request lie to each other; remembered per instruction, because it rarely changes.
enum class Kind : u8 { kUniform, kContiguous, kOther };
struct alignas(64) Site {
    s32 pattern[kLanes];
    u32 mask = 0, low = 0;
    s32 min = 0, max = 0;
    u32 align = 0, units_now = 0;
    Kind kind = Kind::kOther;
    bool known = false;
    // Shared requests: the distinct addresses, and for each a lane that has it (plus kSeveral when not alone).
    u32 distinct = 0;
    s32 distinct_at[kLanes];
    u32 distinct_who[kLanes];
    u64 requests = 0, lanes = 0, units = 0;  // units: 32-byte sectors (global) or wavefronts (shared)
};

struct Buffer {
    u8* host = nullptr;
    u64 size = 0;
    bool writable = false;
    bool given = false;  // to this launch: others are out of a kernel's reach
    u32* written = nullptr;  // race shadow, one word per granule; null for buffers that cannot be written
    u32* read = nullptr;
    bool shared_between_blocks = false;  // races are looked for
    u64 shadow_words = 0;
    std::vector<u64> touched;  // a bit per 32-byte sector
};

enum class GroupState : u8 { kReady, kConverging, kAtBarrier };
// Lanes of a warp that stand at the same instruction while others stand elsewhere.
struct Group {
    u32 pc, mask, need;
    GroupState state;
    u8 barrier;
};

struct AsyncCopy {
    const u8* source;
    u32 target, bytes, source_bytes, group;  // target: an offset in shared memory
};

struct Block;
struct Warp {
    u8* regs = nullptr;
    u32 mask = 0, live = 0;  // lanes executing now; lanes that have not exited
    bool full = false;       // mask == live: results may be written to all lanes
    const Ins* stop = nullptr;
    const Ins* base = nullptr;
    Machine* m = nullptr;
    Block* block = nullptr;
    u32* preds = nullptr;
    u32 id = 0, segment = 0, carry = 0;
    u32 guarded = 0;  // the mask to return to after a guarded instruction
    s64 slice = 0;
    u32 spins = 0, favour = 0;
    Group groups[kLanes];
    int group_count = 0;
    u32 clock = 0;
    u32 known[kMaxWarps] = {};  // per warp of the block: the latest of its clocks that happened before
    std::vector<AsyncCopy> copies[kLanes];  // in flight
    u32 open_group[kLanes] = {};            // what cp.async adds to
    u8 *local = nullptr, *local_set = nullptr;
};

struct Barrier {
    u32 arrived = 0, expected = 0;  // threads; expected 0 means all that have not exited
    u32 warps = 0;
    u32 place = kNone;  // the instruction at which threads arrived
    u32 reduce_or = 0, reduce_and = ~0u, reduce_count = 0;
    u32 result_or = 0, result_and = 0, result_count = 0;
};

struct Block {
    u32 index = 0;  // position in the launch order
    u32 id[3] = {};
    u32 sm = 0;
    u64 linear = 0;
    u32 warp_count = 0, live_threads = 0;
    Warp* warps = nullptr;
    u8* shared = nullptr;
    u32 *shared_written = nullptr, *shared_read = nullptr;
    u32 epoch_base = 0;
    Barrier barriers[kBarriers];
    bool used = false;
    u32 clock = 0;               // for happens-before between blocks
    std::vector<u32> seen, released;
    std::unordered_map<u64, std::vector<u32>> shared_sync;
};

struct Count {
    s64 warps = 0, lanes = 0;
};

struct LaunchShape {
    u32 grid[3], block[3];
    u32 dynamic_shared, cooperative;
    u64 seed, budget;  // seed: of what is approximate or unspecified in values; budget: per block at work
    u32 checks, unused;
    u64 order;  // seed of the order of blocks and warps; 0: natural
};

struct Program {
    std::vector<Ins> code;
    std::vector<u32> constants, extra;  // extra: operands of instructions that have many
    u32 register_bytes = 0, predicate_count = 0, site_count = 0;
    u32 static_shared = 0, dynamic_align = 16, local_bytes = 0;
    u32 granule_shared_shift = 2, granule_global_shift = 2;
    bool synchronises = false;  // uses fences: happens-before between blocks is followed
    bool may_spin = false;      // waits for other blocks: several are resident at a time
    std::vector<Count> counts;
    std::vector<Site> sites;
};

struct Machine {
    LaunchShape shape{};
    Program* program = nullptr;
    std::vector<Buffer> buffers;
    std::vector<u8> params;
    u32 shared_bytes = 0, threads = 0;
    u64 blocks = 0, progress = 0;  // progress: `executed` when a block last came to its end
    bool checks = true, sync_between_blocks = false, global_races = true;
    u64 random = 1;
    u64 executed = 0;
    std::string fault;   // JSON of the first fault; empty when none
    std::string printed;
    u64 barriers = 0, atomics = 0, atomic_conflicts = 0;
    u64 workspace = 0;  // of a cooperative grid: an address
    std::unordered_map<u64, std::vector<u32>> sync;  // what a release to this address made known
    std::unordered_map<u64, u32> atomic_marks;

    u64 next_random() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random * 0x2545f4914f6cdd1dull;
    }
};

template <class T> inline T* reg(Warp& w, u32 offset) { return reinterpret_cast<T*>(w.regs + offset); }
inline u32 index_of(const Warp& w, const Ins* i) { return static_cast<u32>(i - w.base); }

// ---- scheduling (schedule.cpp) ----
const Ins* halt(Warp& w);
const Ins* converge(Warp& w, const Ins* i, u32 need);  // i when all lanes of `need` stand here, else another or null
const Ins* go(Warp& w, const Ins* from, u32 target);
const Ins* diverge(Warp& w, const Ins* from, u32 taken, u32 target);
const Ins* leave(Warp& w, const Ins* i, u32 lanes);
const Ins* wait_at_barrier(Warp& w, const Ins* i, u32 number, u32 expected, bool block_here);
const Ins* pause(Warp& w, const Ins* i);  // lets others run, then goes on after i
void account(Warp& w, u32 end);
bool run_launch(Machine& m);

// ---- faults (fault.cpp) ----
// Reports the first fault and stops the launch. `detail` is the inside of a JSON object, may be empty.
const Ins* fault(Warp& w, const Ins* i, const char* kind, int lane, u64 address, const std::string& detail = {});
std::string quoted(const std::string& plain);  // the inside of a JSON string
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emu
