// Which lanes of which warp of which block run next. Lanes that diverged are run lowest instruction first and join
// again where they meet; warps and blocks take turns in an order drawn from the launch's seed.
#include <algorithm>
#include <numeric>

#include "checks.h"
#include "machine.h"

namespace emu {
namespace {

constexpr s64 kSlice = 20000;     // backward jumps before another warp gets its turn
constexpr s64 kSpinSlice = 200;   // the same where warps may be waiting for another block
constexpr u32 kPatience = 20000;  // backward jumps of some lanes before lanes that wait further down may run ahead
constexpr u32 kFavour = 64;
constexpr u64 kResident = 64;     // blocks at a time where blocks may wait for each other

void load_group(Warp& w, u32 pc, u32 mask) {
    w.mask = mask;
    w.full = mask == w.live;
    w.segment = pc;
    w.stop = nullptr;
    u32 nearest = kNone;
    for (int g = 0; g < w.group_count; ++g)
        if (w.groups[g].state == GroupState::kReady && w.groups[g].pc > pc) nearest = std::min(nearest, w.groups[g].pc);
    if (nearest != kNone) w.stop = w.base + nearest;
}

void push(Warp& w, u32 pc, u32 mask, GroupState state, u32 need = 0, u8 barrier = 0) {
    w.groups[w.group_count++] = {pc, mask, need, state, barrier};
}

u32 take_groups(Warp& w, u32 pc, bool converging) {
    u32 mask = 0;
    for (int g = 0; g < w.group_count;) {
        const Group& group = w.groups[g];
        const bool wanted = group.state == GroupState::kReady || (converging && group.state == GroupState::kConverging);
        if (group.pc == pc && wanted) {
            mask |= group.mask;
            w.groups[g] = w.groups[--w.group_count];
        } else {
            ++g;
        }
    }
    return mask;
}

bool ready(const Warp& w) {
    return std::any_of(w.groups, w.groups + w.group_count, [](const Group& g) { return g.state == GroupState::kReady; });
}

// Lanes waiting for others that have exited meanwhile need not wait any longer.
bool promote(Warp& w) {
    bool any = false;
    for (int g = 0; g < w.group_count; ++g) {
        Group& group = w.groups[g];
        if (group.state == GroupState::kConverging && !(group.need & w.live & ~group.mask)) {
            group.state = GroupState::kReady;
            any = true;
        }
    }
    return any;
}

const Ins* pick(Warp& w) {
    if (!ready(w) && !promote(w)) return halt(w);
    u32 lowest = kNone, highest = 0;
    for (int g = 0; g < w.group_count; ++g) {
        if (w.groups[g].state != GroupState::kReady) continue;
        lowest = std::min(lowest, w.groups[g].pc);
        highest = std::max(highest, w.groups[g].pc);
    }
    u32 chosen = lowest;
    if (w.favour) {
        chosen = highest;
        --w.favour;
    }
    load_group(w, chosen, take_groups(w, chosen, false));
    return w.base + chosen;
}

void try_complete(Block& block, u32 number) {
    Barrier& barrier = block.barriers[number];
    const u32 needed = barrier.expected ? barrier.expected : block.live_threads;
    if (barrier.arrived == 0 || barrier.arrived < needed) return;
    join_clocks(block, barrier.warps);
    barrier.result_or = barrier.reduce_or;
    barrier.result_and = barrier.reduce_and;
    barrier.result_count = barrier.reduce_count;
    for (u32 k = 0; k < block.warp_count; ++k) {
        Warp& w = block.warps[k];
        for (int g = 0; g < w.group_count; ++g)
            if (w.groups[g].state == GroupState::kAtBarrier && w.groups[g].barrier == number)
                w.groups[g].state = GroupState::kReady;
    }
    barrier.arrived = barrier.expected = barrier.warps = barrier.reduce_or = barrier.reduce_count = 0;
    barrier.reduce_and = ~0u;
    barrier.place = kNone;
    ++block.warps[0].m->barriers;
}

void run_warp(Warp& w, s64 slice) {
    w.slice = slice;
    const Ins* i = pick(w);
    while (i) {
        while (i != w.stop) i = i->run(w, i);
        if (!i) return;
        const u32 pc = index_of(w, i);  // lanes that waited here join
        account(w, pc);
        w.spins = 0;
        load_group(w, pc, w.mask | take_groups(w, pc, false));
    }
}

void report_deadlock(Block& block) {
    std::string waiting;
    Warp* first = nullptr;
    const Ins* place = nullptr;
    for (u32 k = 0; k < block.warp_count; ++k) {
        Warp& w = block.warps[k];
        for (int g = 0; g < w.group_count; ++g) {
            const Group& group = w.groups[g];
            const bool converging = group.state == GroupState::kConverging;
            const u32 pc = converging ? group.pc : group.pc - 1;
            if (!first || (converging && w.groups[0].state != GroupState::kConverging)) {
                first = &w;
                place = w.base + pc;
                w.mask = group.mask;
            }
            if (waiting.size() < 2000)
                waiting += text("%s{\"warp\":%u,\"ins\":%u,\"lanes\":%u,\"missing\":%u,\"converging\":%s}",
                                waiting.empty() ? "" : ",", k, pc, group.mask,
                                converging ? group.need & w.live & ~group.mask : 0, converging ? "true" : "false");
        }
    }
    fault(*first, place, "deadlock", -1, 0, "\"waiting\":[" + waiting + "]");
}

enum class Progress { kDone, kStuck, kSome };
Progress run_round(Machine& m, Block& block, s64 slice, u64 running) {
    u8 order[kMaxWarps];
    std::iota(order, order + block.warp_count, 0);
    if (m.shape.order)
        for (u32 k = block.warp_count; k > 1; --k) std::swap(order[k - 1], order[m.next_random() % k]);
    bool ran = false, alive = false;
    for (u32 k = 0; k < block.warp_count; ++k) {
        Warp& w = block.warps[order[k]];
        if (!w.live) continue;
        alive = true;
        if (!ready(w) && !promote(w)) continue;
        ran = true;
        run_warp(w, slice);
        if (!m.fault.empty()) return Progress::kDone;
        if (m.executed - m.progress > m.shape.budget * running) {
            const Group* at = std::find_if(w.groups, w.groups + w.group_count, [](const Group& g) { return g.state == GroupState::kReady; });
            if (at == w.groups + w.group_count) at = w.groups;
            const u32 pc = w.group_count ? at->pc : 0;
            w.mask = w.group_count ? at->mask : 1;
            fault(w, w.base + pc, "runaway", -1, 0, text("\"executed\":%llu", static_cast<unsigned long long>(m.executed)));
            return Progress::kDone;
        }
    }
    return !alive ? Progress::kDone : ran ? Progress::kSome : Progress::kStuck;
}

}  // namespace

const Ins* halt(Warp& w) {
    w.stop = nullptr;
    return nullptr;
}

void account(Warp& w, u32 end) {
    auto& counts = w.m->program->counts;
    const s64 lanes = __builtin_popcount(w.mask);
    counts[w.segment].warps += 1;
    counts[w.segment].lanes += lanes;
    counts[end].warps -= 1;
    counts[end].lanes -= lanes;
    w.m->executed += end - w.segment;
    w.segment = end;
}

const Ins* go(Warp& w, const Ins* from, u32 target) {
    const u32 here = index_of(w, from);
    account(w, here + 1);
    w.segment = target;
    const bool backward = target <= here;
    if (backward && --w.slice < 0) {
        push(w, target, w.mask, GroupState::kReady);
        return halt(w);
    }
    if (w.group_count == 0) return w.base + target;
    if (backward && ++w.spins > kPatience) {
        w.spins = 0;
        w.favour = kFavour;
    }
    push(w, target, w.mask, GroupState::kReady);
    return pick(w);
}

const Ins* diverge(Warp& w, const Ins* from, u32 taken, u32 target) {
    const u32 here = index_of(w, from);
    account(w, here + 1);
    push(w, target, taken, GroupState::kReady);
    push(w, here + 1, w.mask & ~taken, GroupState::kReady);
    return pick(w);
}

const Ins* converge(Warp& w, const Ins* i, u32 need) {
    need &= w.live;
    if (!(need & ~w.mask)) return i;
    const u32 pc = index_of(w, i);
    account(w, pc);
    for (int g = 0; g < w.group_count; ++g)
        if (w.groups[g].pc == pc && w.groups[g].state == GroupState::kConverging) need |= w.groups[g].need & w.live;
    const u32 here = w.mask | take_groups(w, pc, true);
    if (!(need & ~here)) {
        load_group(w, pc, here);
        return i;
    }
    push(w, pc, here, GroupState::kConverging, need);
    return pick(w);
}

const Ins* leave(Warp& w, const Ins* i, u32 lanes) {
    account(w, index_of(w, i) + 1);
    const u32 stay = w.mask & ~lanes;
    w.live &= ~lanes;
    Block& block = *w.block;
    block.live_threads -= static_cast<u32>(__builtin_popcount(lanes));
    if (stay) push(w, index_of(w, i) + 1, stay, GroupState::kReady);
    for (u32 number = 0; number < kBarriers; ++number)
        if (block.barriers[number].arrived) try_complete(block, number);
    return pick(w);
}

const Ins* pause(Warp& w, const Ins* i) {
    account(w, index_of(w, i) + 1);
    push(w, index_of(w, i) + 1, w.mask, GroupState::kReady);
    return halt(w);
}

const Ins* wait_at_barrier(Warp& w, const Ins* i, u32 number, u32 expected, bool block_here) {
    Barrier& barrier = w.block->barriers[number];
    const u32 pc = index_of(w, i);
    if (expected && barrier.expected && barrier.expected != expected)
        return fault(w, i, "barrier-count", -1, 0, text("\"barrier\":%u,\"expected\":%u,\"given\":%u", number, barrier.expected, expected));
    if (expected % kLanes)
        return fault(w, i, "barrier-count", -1, 0, text("\"barrier\":%u,\"given\":%u", number, expected));
    if (!expected && (i->y & 1) && barrier.place != kNone && barrier.place != pc)
        return fault(w, i, "divergent-barrier", -1, 0, text("\"other_ins\":%u", barrier.place));
    if (!expected) barrier.place = pc;
    if (expected) barrier.expected = expected;
    barrier.arrived += expected ? kLanes : static_cast<u32>(__builtin_popcount(w.mask));
    barrier.warps |= 1u << w.id;
    if (!block_here) {
        try_complete(*w.block, number);
        return i + 1;
    }
    account(w, pc + 1);
    push(w, pc + 1, w.mask, GroupState::kAtBarrier, 0, static_cast<u8>(number));
    try_complete(*w.block, number);
    return pick(w);
}

// All blocks of the launch, a few at a time. False when it ended with a fault.
bool run_launch(Machine& m) {
    const bool together = m.shape.cooperative || m.program->may_spin;
    BlockPool pool(m, m.shape.cooperative ? m.blocks : std::min<u64>(m.blocks, together ? kResident : 1));
    const u64 resident = pool.count();
    BlockOrder order(m);
    u64 next = 0, running = 0;
    for (; running < resident; ++running) pool.start(running, order.at(next++));
    std::vector<bool> active(resident, true);
    while (running && m.fault.empty()) {
        bool some = false;
        Block* stuck = nullptr;
        for (u64 k = 0; k < resident && m.fault.empty(); ++k) {
            if (!active[k]) continue;
            Block& block = pool.block(k);
            Progress progress;
            do progress = run_round(m, block, together ? kSpinSlice : kSlice, running);
            while (progress == Progress::kSome && resident == 1);
            if (progress == Progress::kStuck) stuck = &block;
            else some = true;
            if (progress != Progress::kDone) continue;
            m.progress = m.executed;
            if (next < m.blocks) pool.start(k, order.at(next++));
            else active[k] = false, --running;
        }
        if (stuck && !some && m.fault.empty()) report_deadlock(*stuck);
    }
    return m.fault.empty();
}

}  // namespace emu
