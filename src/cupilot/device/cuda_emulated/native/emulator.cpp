// The process that executes PTX: reads programs, buffers and launches from standard input, answers on standard
// output. The parent writes and reads the buffers directly in this memory. After start-up only reading, writing,
// anonymous memory and exiting are allowed; kernels are data to this program, so that is a second fence.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "checks.h"
#include "families.h"
#include "sandbox.h"

namespace emu {
namespace {

constexpr u32 kMagic = 0x58545045;
constexpr u64 kMaxBlocksFollowed = 2047, kWorkspace = 2;  // buffers: constants, parameters, a grid's workspace, tensors
enum Command : u32 { kProgram = 1, kBuffer = 2, kLaunch = 3, kCounters = 4, kListOps = 5 };

bool read_all(void* data, u64 size) {
    for (u64 done = 0; done < size;) {
        const ssize_t n = read(0, static_cast<char*>(data) + done, size - done);
        if (n <= 0) return false;
        done += static_cast<u64>(n);
    }
    return true;
}
void answer(const void* data, u64 size) {
    const u64 header = size;
    std::string whole(reinterpret_cast<const char*>(&header), 8);
    whole.append(static_cast<const char*>(data), size);
    for (u64 done = 0; done < whole.size();) {
        const ssize_t n = write(1, whole.data() + done, whole.size() - done);
        if (n <= 0) _exit(1);
        done += static_cast<u64>(n);
    }
}
void answer(const std::string& words) { answer(words.data(), words.size()); }

// Bounded reading of a request: a short one is the parent's fault, and the end.
class Reader {
    const std::vector<u8>& data_;
    u64 at_ = 0;

  public:
    explicit Reader(const std::vector<u8>& data) : data_(data) {}
    template <class T> T get() {
        T value;
        copy(&value, sizeof value);
        return value;
    }
    void copy(void* to, u64 size) {
        if (size > data_.size() - at_) _exit(2);
        if (size) memcpy(to, data_.data() + at_, size);
        at_ += size;
    }
    std::string word() {
        std::string found;
        while (const char c = get<char>()) found += c;
        return found;
    }
    void align(u64 to) { at_ = (at_ + to - 1) / to * to; }
};

std::unordered_map<std::string, Handler> table() {
    std::unordered_map<std::string, Handler> found;
    for (const auto* family : {&kIntegerOps, &kFloatOps, &kSpecialOps, &kConvertOps, &kHalfOps, &kCompareOps, &kControlOps,
                               &kMemoryOps, &kAtomicOps, &kWarpOps, &kAsyncOps, &kMatrixOps, &kFragmentOps})
        for (const OpEntry& op : *family) found[op.name] = op.run;
    return found;
}

struct Raw {
    u32 op, dst, a, b, c, d, e, target, site, x, y, unused;
    s64 imm;
};

struct State {
    Machine machine;
    std::vector<std::unique_ptr<Program>> programs;
    const std::unordered_map<std::string, Handler> ops = table();
};

// Answers with the operations it does not have, a line each; nothing when the program was taken.
void load(State& state, Reader& in) {
    auto p = std::make_unique<Program>();
    if (in.get<u32>() != kMagic) _exit(2);
    const u32 count = in.get<u32>(), constants = in.get<u32>(), names = in.get<u32>(), extra = in.get<u32>();
    p->register_bytes = in.get<u32>();
    p->predicate_count = in.get<u32>();
    p->site_count = in.get<u32>();
    p->static_shared = in.get<u32>();
    p->local_bytes = in.get<u32>();
    p->granule_shared_shift = in.get<u32>();
    p->granule_global_shift = in.get<u32>();
    const u32 flags = in.get<u32>();
    p->synchronises = flags & 1;
    p->may_spin = flags & 2;
    std::vector<Handler> handlers;
    std::string missing;
    for (u32 k = 0; k < names; ++k) {
        const std::string name = in.word();
        const auto found = state.ops.find(name);
        handlers.push_back(found == state.ops.end() ? nullptr : found->second);
        if (found == state.ops.end()) missing += name + "\n";
    }
    in.align(8);
    p->constants.resize(constants);
    in.copy(p->constants.data(), 4ull * constants);
    p->extra.resize(extra);
    in.copy(p->extra.data(), 4ull * extra);
    in.align(8);
    for (u32 k = 0; k < count; ++k) {
        const Raw r = in.get<Raw>();
        if (r.op >= handlers.size()) _exit(2);
        p->code.push_back({handlers[r.op], r.dst, r.a, r.b, r.c, r.d, r.e, r.target, r.site, r.imm, r.x, r.y});
    }
    p->counts.resize(count + 2);
    p->sites.resize(p->site_count + 1);
    if (missing.empty()) state.programs.push_back(std::move(p));
    answer(missing);
}

void add_buffer(Machine& m, Reader& in) {
    Buffer b;
    b.size = in.get<u64>();
    b.writable = in.get<u32>();
    b.shared_between_blocks = in.get<u32>();
    void* memory = mmap(nullptr, b.size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b.host = memory == MAP_FAILED ? nullptr : static_cast<u8*>(memory);
    b.touched.resize(b.size / 2048 + 1);
    const u64 place = reinterpret_cast<u64>(b.host);
    m.buffers.push_back(std::move(b));
    answer(&place, sizeof place);
}

void drop_shadow(Buffer& b) {
    if (b.written) munmap(b.written, 8 * b.shadow_words);
    b.written = b.read = nullptr;
}
bool clear_shadow(Buffer& b, u32 shift) {
    drop_shadow(b);
    b.shadow_words = (b.size >> shift) + 16;
    void* memory = mmap(nullptr, 8 * b.shadow_words, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    b.written = static_cast<u32*>(memory);
    b.read = b.written + b.shadow_words;
    return true;
}

void launch(State& state, Reader& in) {
    Machine& m = state.machine;
    const u32 number = in.get<u32>(), parameter_bytes = in.get<u32>(), used = in.get<u32>();
    in.get<u32>();
    m.shape = in.get<LaunchShape>();
    m.params.assign(parameter_bytes + 16, 0);
    in.copy(m.params.data(), parameter_bytes);
    if (number >= state.programs.size()) _exit(2);
    m.program = state.programs[number].get();
    const u32 *grid = m.shape.grid, *block = m.shape.block;
    m.threads = block[0] * block[1] * block[2];
    m.blocks = static_cast<u64>(grid[0]) * grid[1] * grid[2];
    m.shared_bytes = m.program->static_shared + m.shape.dynamic_shared;
    m.checks = m.shape.checks;
    m.sync_between_blocks = m.checks && m.program->synchronises && m.blocks <= kMaxBlocksFollowed;
    m.global_races = m.checks && m.blocks > 1 && (!m.program->synchronises || m.sync_between_blocks);
    m.random = (m.shape.seed ^ m.shape.order * 0x9e3779b97f4a7c15ull) * 2 + 1;
    m.fault.clear();
    m.printed.clear();
    m.sync.clear();
    m.workspace = kGlobalWindow + (kWorkspace << kSlotShift);
    m.executed = m.progress = 0;
    if (m.buffers.size() > 1 && m.buffers[1].size >= parameter_bytes) memcpy(m.buffers[1].host, m.params.data(), parameter_bytes);
    for (size_t k = 0; k < m.buffers.size(); ++k) m.buffers[k].given = k < kWorkspace || (k == kWorkspace && m.shape.cooperative);
    if (m.buffers.size() > kWorkspace) memset(m.buffers[kWorkspace].host, 0, m.buffers[kWorkspace].size);
    for (u32 k = 0; k < used; ++k) {
        const u32 index = in.get<u32>();
        if (index >= m.buffers.size()) _exit(2);
        Buffer& b = m.buffers[index];
        b.given = true;
        if (!m.global_races || !b.shared_between_blocks) drop_shadow(b);
        else if (!clear_shadow(b, m.program->granule_global_shift)) _exit(3);
    }
    run_launch(m);
    answer(text("{\"executed\":%llu,\"races_followed\":%s,\"fault\":", static_cast<unsigned long long>(m.executed), m.global_races || m.blocks == 1 ? "true" : "false") +
           (m.fault.empty() ? "null" : m.fault) + ",\"printed\":\"" + quoted(m.printed) + "\"}");
}

// Per instruction: executions by warps and by lanes. Per site: requests, lanes, units. Then the totals.
void counters(State& state, Reader& in) {
    Machine& m = state.machine;
    const u32 number = in.get<u32>();
    if (number >= state.programs.size()) _exit(2);
    const Program& p = *state.programs[number];
    std::vector<u64> out;
    s64 warps = 0, lanes = 0;
    for (size_t k = 0; k < p.code.size(); ++k) {
        warps += p.counts[k].warps;
        lanes += p.counts[k].lanes;
        out.push_back(static_cast<u64>(warps));
        out.push_back(static_cast<u64>(lanes));
    }
    for (u32 k = 0; k < p.site_count; ++k) out.insert(out.end(), {p.sites[k].requests, p.sites[k].lanes, p.sites[k].units});
    out.insert(out.end(), {m.barriers, m.atomics, m.atomic_conflicts});
    for (const Buffer& b : m.buffers) {
        u64 sectors = 0;
        for (const u64 word : b.touched) sectors += static_cast<u64>(__builtin_popcountll(word));
        out.push_back(sectors);
    }
    answer(out.data(), out.size() * sizeof(u64));
}

void list_ops(const State& state) {
    std::string all;
    for (const auto& [name, run] : state.ops) all += name + "\n";
    answer(all);
}

void lock_down(u64 address_bytes, u64 cpu_seconds) {
    sandbox::limit(RLIMIT_AS, address_bytes);
    sandbox::limit(RLIMIT_CPU, cpu_seconds);
    sandbox::limit(RLIMIT_FSIZE, 0);
    sandbox::limit(RLIMIT_CORE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    sandbox::Landlock().enforce();
    sandbox::Filter filter(SECCOMP_RET_KILL_PROCESS);
    filter.allow({SYS_read, SYS_write, SYS_munmap, SYS_mremap, SYS_brk, SYS_exit, SYS_exit_group, SYS_madvise,
                  SYS_rt_sigreturn, SYS_restart_syscall});
    filter.allow_if(SYS_mmap, 2, PROT_EXEC, 0);
    if (!filter.install(false)) _exit(124);
}

}  // namespace
}  // namespace emu

// emulator PARENT_PID ADDRESS_BYTES CPU_SECONDS
int main(int count, char** values) {
    using namespace emu;
    if (count != 4) return 125;
    sandbox::die_with(static_cast<pid_t>(atol(values[1])));
    lock_down(strtoull(values[2], nullptr, 10), strtoull(values[3], nullptr, 10));
    State state;
    for (;;) {
        u64 header[2];
        if (!read_all(header, sizeof header)) return 0;
        std::vector<u8> data(header[1]);
        if (!read_all(data.data(), data.size())) return 0;
        Reader in(data);
        switch (header[0]) {
            case kProgram: load(state, in); break;
            case kBuffer: add_buffer(state.machine, in); break;
            case kLaunch: launch(state, in); break;
            case kCounters: counters(state, in); break;
            case kListOps: list_ops(state); break;
            default: return 2;
        }
    }
}
