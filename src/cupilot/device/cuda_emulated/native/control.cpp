// Branches, guards, barriers, fences, special registers, and calls into the system (printf, assert, trap).
#include <cmath>
#include <cstdio>

#include "checks.h"
#include "families.h"
#include "request.h"

namespace emu {
namespace {

const Ins* bra(Warp& w, const Ins* i) { return go(w, i, i->target); }
const Ins* bra_if(Warp& w, const Ins* i) {
    const u32 taken = pred(w, i->a) & w.mask;
    if (!taken) return i + 1;
    return taken == w.mask ? go(w, i, i->target) : diverge(w, i, taken, i->target);
}

// guard ... unguard: what stands between them runs on the lanes where the predicate holds.
const Ins* guard(Warp& w, const Ins* i) {
    const u32 lanes = pred(w, i->a) & w.mask;
    if (!lanes) return w.base + i->target;
    w.guarded = w.mask;
    w.mask = lanes;
    w.full = lanes == w.live;
    return i + 1;
}
const Ins* unguard(Warp& w, const Ins* i) {
    w.mask = w.guarded;
    w.full = w.mask == w.live;
    return i + 1;
}
const Ins* exit_lanes(Warp& w, const Ins* i) { return leave(w, i, w.mask); }
const Ins* nothing(Warp&, const Ins* i) { return i + 1; }
const Ins* nap(Warp& w, const Ins* i) { return pause(w, i); }

// ---- barriers. a: number, b: thread count or none. y & 1: aligned, all lanes of the warp must come together ----
u32 first_lane(Warp& w, u32 operand) { return reg<u32>(w, operand)[__builtin_ctz(w.mask)]; }
template <bool kWait> const Ins* barrier(Warp& w, const Ins* i) {
    if (i->y & 1)
        if (const Ins* next = converge(w, i, w.live); next != i) return next;
    const u32 number = first_lane(w, i->a), count = i->b == kNone ? 0 : first_lane(w, i->b);
    if (number >= kBarriers) return fault(w, i, "barrier-number", -1, 0, text("\"barrier\":%u", number));
    return wait_at_barrier(w, i, number, count, kWait);
}
// bar.red in two steps: c is the predicate each thread brings; the result is read after the barrier.
const Ins* reduce_arrive(Warp& w, const Ins* i) {
    if (const Ins* next = converge(w, i, w.live); next != i) return next;
    const u32 number = first_lane(w, i->a), count = i->b == kNone ? 0 : first_lane(w, i->b);
    if (number >= kBarriers) return fault(w, i, "barrier-number", -1, 0, text("\"barrier\":%u", number));
    Barrier& b = w.block->barriers[number];
    const u32 brought = pred(w, i->c) & w.mask;
    b.reduce_or |= brought != 0;
    if (brought != w.mask) b.reduce_and = 0;
    b.reduce_count += static_cast<u32>(__builtin_popcount(brought));
    return wait_at_barrier(w, i, number, count, true);
}
const Ins* reduce_read(Warp& w, const Ins* i) {  // x: 0 popc into a register, 1 and, 2 or
    const Barrier& b = w.block->barriers[first_lane(w, i->a)];
    if (i->x == 0) each(w, reg<u32>(w, i->dst), [&](int) { return b.result_count; });
    else set_pred(w, i->dst, (i->x == 1 ? b.result_and : b.result_or) ? ~0u : 0);
    return i + 1;
}
const Ins* fence_op(Warp& w, const Ins* i) {  // x: 1 = beyond the block
    fence(w, i->x & 1);
    return i + 1;
}

// ---- special registers, by number x (encode/special_registers.py) ----
u64 special(Warp& w, u32 which, u32 lane) {
    const Machine& m = *w.m;
    const u32 *size = m.shape.block, thread = w.id * kLanes + lane;
    switch (which) {
        case 0: return thread % size[0];
        case 1: return thread / size[0] % size[1];
        case 2: return thread / (size[0] * size[1]);
        case 3: case 4: case 5: return w.block->id[which - 3];
        case 6: case 7: case 8: return size[which - 6];
        case 9: case 10: case 11: return m.shape.grid[which - 9];
        case 12: return lane;
        case 13: return w.id;
        case 14: return w.block->warp_count;
        case 15: return w.block->sm;
        case 16: return 132;
        case 17: return m.shape.seed & 0xffff;               // gridid
        case 18: return 1u << lane;                          // lanemask_eq
        case 19: return (2ull << lane) - 1;                  // le
        case 20: return (1ull << lane) - 1;                  // lt
        case 21: return ~((1ull << lane) - 1) & 0xffffffff;  // ge
        case 22: return ~((2ull << lane) - 1) & 0xffffffff;  // gt
        case 23: return m.executed * 4 + (m.shape.seed & 0xfff);         // clock: moves, means nothing
        case 24: return 1'700'000'000'000'000'000ull + m.executed * 4;  // globaltimer
        case 25: return m.shape.dynamic_shared;
        case 26: return m.shared_bytes;
        case 27: return m.workspace & 0xffffffff;  // envreg2, envreg1: the workspace of a cooperative grid
        case 28: return m.workspace >> 32;
        default: return 0;
    }
}
template <class T> const Ins* special_register(Warp& w, const Ins* i) {
    each_active(w.mask, [&, d = reg<T>(w, i->dst)](int l) { d[l] = static_cast<T>(special(w, i->x, static_cast<u32>(l))); });
    return i + 1;
}

// ---- the system ----
std::string read_string(Warp& w, u64 address) {
    std::string found;
    const u64 offset = address - kGlobalWindow;  // the module's constants are the first buffer
    if (address < kGlobalWindow) return "?";
    const Buffer& b = w.m->buffers[0];
    for (u64 k = offset; k < b.size && b.host[k] && found.size() < 4096; ++k) found += static_cast<char>(b.host[k]);
    return found;
}
constexpr size_t kPrintLimit = 1 << 16, kLongestSpec = 8;

std::string format(Warp& w, const std::string& pattern, const u8* arguments, const u8* end) {
    std::string out;
    const auto next = [&](u64 size) {
        u64 bits = 0;
        arguments += (size - reinterpret_cast<u64>(arguments) % size) % size;
        if (arguments + size <= end) memcpy(&bits, arguments, size);
        arguments += size;
        return bits;
    };
    for (size_t k = 0; k < pattern.size(); ++k) {
        if (pattern[k] != '%') {
            out += pattern[k];
            continue;
        }
        std::string spec = "%";
        bool wide = false;
        while (++k < pattern.size() && strchr("-+ #0123456789.hlzjt", pattern[k])) {
            if (strchr("lzjt", pattern[k])) wide = true;
            else if (pattern[k] != 'h' && spec.size() < kLongestSpec) spec += pattern[k];
        }
        const char kind = k < pattern.size() ? pattern[k] : '%';
        if (!strchr("diuoxXcfeEgGaAsp", kind)) out += kind;  // %%, and what has no meaning (%n, %*d)
        else if (kind == 's') out += read_string(w, next(8));
        else if (strchr("feEgGaA", kind)) {
            const u64 bits = next(8);
            f64 value;
            memcpy(&value, &bits, 8);
            out += text((spec + kind).c_str(), value);
        } else if (kind == 'p') out += text("0x%llx", static_cast<unsigned long long>(next(8)));
        else if (wide && kind != 'c') out += text((spec + "ll" + kind).c_str(), static_cast<long long>(next(8)));
        else out += text((spec + kind).c_str(), static_cast<int>(next(4)));
    }
    return out;
}
const Ins* print(Warp& w, const Ins* i) {  // a: format, b: packed arguments in local memory
    const u64 *a = reg<u64>(w, i->a), *b = reg<u64>(w, i->b);
    const u64 size = w.m->program->local_bytes;
    each_active(w.mask, [&](int l) {
        const u64 offset = b[l] - kLocalWindow;
        const u8 *base = w.local + static_cast<u64>(l) * size, *end = base + size;
        if (w.m->printed.size() < kPrintLimit) w.m->printed += format(w, read_string(w, a[l]), offset <= size ? base + offset : end, end);
        if (i->dst != kNone) reg<u32>(w, i->dst)[l] = 1;
    });
    return i + 1;
}
const Ins* assert_fail(Warp& w, const Ins* i) {  // a: the condition's text
    const int l = __builtin_ctz(w.mask);
    const std::string condition = read_string(w, reg<u64>(w, i->a)[l]);
    return fault(w, i, "assert", l, 0, "\"condition\":\"" + quoted(condition) + "\"");
}
const Ins* trap(Warp& w, const Ins* i) { return fault(w, i, "trap", -1, 0); }

}  // namespace

const std::vector<OpEntry> kControlOps = {
    {"bra", bra}, {"bra.if", bra_if}, {"guard", guard}, {"unguard", unguard}, {"exit", exit_lanes}, {"nop", nothing},
    {"nanosleep", nap}, {"bar.sync", barrier<true>}, {"bar.arrive", barrier<false>},
    {"bar.red.arrive", reduce_arrive}, {"bar.red.read", reduce_read}, {"fence", fence_op},
    {"sreg.b32", special_register<u32>}, {"sreg.b64", special_register<u64>},
    {"printf", print}, {"assert", assert_fail}, {"trap", trap},
};

}  // namespace emu
