// Holds one candidate and its buffers in a process of its own, and runs it when told to.
// Started by session.py with a parameter block on standard input; then commands come in on descriptor 0 and
// answers go out on descriptor 1. The parent writes inputs and reads outputs directly in this memory.
//
// Before the candidate's library is mapped: limits, no new privileges, no files but that library, no time-stamp
// counter, no shared clock, and only the system calls that mapping needs. Before its first instruction runs: only read(0), write(1),
// exit_group, and with several threads private futexes. Everything else kills the process. What a candidate does
// to this process's own memory is its own loss: nothing in here is trusted, nothing secret is here.
#include <dlfcn.h>
#include <errno.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "sandbox.h"

#ifndef PR_SET_TSC
#define PR_SET_TSC 26
#define PR_TSC_SIGSEGV 2
#endif

namespace {

using Word = uint64_t;
using Entry = void (*)(const Word*);
constexpr Word kMagic = 0x3152544f4c495055;
constexpr Word kHuge = 2u << 20;
constexpr Word kStack = 4u << 20;
constexpr int kMaxSlots = 136;
constexpr int kMaxKernels = 1024;

enum Ring : Word { kValue = 0, kInputSlot = 1, kOutputSlot = 2, kFixed = 3 };
struct Argument {
    Word ring, value, stride;  // a scalar's bits; or the address of slot 0 and the distance between slots
};
struct Step {
    Word is_zero, kernel, rank, grid[3], bytes, count;
    Argument arguments[];  // `count` of them
};
struct Command {
    Word token, first, count, order_seed;
};

// ---- system calls without libc: once the candidate is here, libc's memory is not ours alone ----
inline long call(long number, long a, long b, long c, long d = 0) {
    long result;
    register long r10 asm("r10") = d;
    asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
bool transfer(long number, int fd, void* data, Word size) {
    for (Word done = 0; done < size;) {
        long n = call(number, fd, reinterpret_cast<long>(data) + static_cast<long>(done), static_cast<long>(size - done));
        if (n == -EINTR) continue;
        if (n <= 0) return false;
        done += static_cast<Word>(n);
    }
    return true;
}
[[noreturn]] void leave(int status) {
    for (;;) call(SYS_exit_group, status, 0, 0);
}

// ---- the parameter block ----
struct Block {
    Word* words;
    Word size;
    Word at = 0;
    Word next() { return at < size ? words[at++] : (leave(3), 0); }
    Word* take(Word count) {
        if (count > size - at) leave(3);
        Word* start = words + at;
        at += count;
        return start;
    }
    const char* text() { return reinterpret_cast<const char*>(take(next())); }
};

[[noreturn]] void refuse(const char* what, const char* detail) {
    Word header[3] = {1, 0, strlen(what) + 2 + strlen(detail)};
    transfer(SYS_write, 1, header, sizeof header);
    transfer(SYS_write, 1, const_cast<char*>(what), strlen(what));
    transfer(SYS_write, 1, const_cast<char*>(": "), 2);
    transfer(SYS_write, 1, const_cast<char*>(detail), strlen(detail));
    leave(2);
}

// ---- one launch, shared by all threads ----
struct Order {  // block i of the launch is really block (factor * i + shift) mod count
    Word factor = 1, shift = 0;
};
struct Team {
    Word threads;
    const Step* step;
    Word slots[kMaxSlots];
    Entry entry;
    Order order;
    Word blocks, chunk;
    alignas(64) std::atomic<Word> next;
    alignas(64) std::atomic<uint32_t> epoch;
    alignas(64) std::atomic<uint32_t> working;
};
Team team;
Entry entries[kMaxKernels];

Word greatest_common_divisor(Word a, Word b) {
    while (b != 0) {
        Word rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
Word mix(Word& state) {  // splitmix64
    Word z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
Order shuffled(Word& state, Word count) {
    Word factor = mix(state) % count;
    while (greatest_common_divisor(factor, count) != 1) factor = mix(state) % count;
    return {factor, mix(state) % count};
}

// The state in which every launch starts, whatever the last one left behind.
inline void reset_floating_point() {
    unsigned short control = 0x37f;
    asm volatile("fninit\n\tfldcw %0\n\tcld" : : "m"(control));
    _mm_setcsr(0x1f80);
}

void run_blocks(Word* slots, Word begin, Word end) {
    const Step& step = *team.step;
    Word gx = step.grid[0], gy = step.grid[1];
    for (Word i = begin; i < end; ++i) {
        Word block = i;
        if (team.order.factor != 1 || team.order.shift != 0)
            block = static_cast<Word>((static_cast<unsigned __int128>(team.order.factor) * i + team.order.shift) % team.blocks);
        slots[0] = block;
        if (step.rank > 1) {
            slots[0] = block % gx;
            slots[1] = block / gx;
        }
        if (step.rank > 2) {
            slots[1] = block / gx % gy;
            slots[2] = block / gx / gy;
        }
        team.entry(slots);
    }
}

void share_blocks() {
    alignas(64) Word slots[kMaxSlots];
    memcpy(slots, team.slots, (team.step->rank + team.step->count) * sizeof(Word));
    reset_floating_point();
    for (;;) {
        Word begin = team.next.fetch_add(team.chunk, std::memory_order_relaxed);
        if (begin >= team.blocks) return;
        run_blocks(slots, begin, begin + team.chunk < team.blocks ? begin + team.chunk : team.blocks);
    }
}

void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
    while (word.load(std::memory_order_acquire) == value)
        call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, value);
}
void wake(std::atomic<uint32_t>& word) {
    call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1 << 30);
}

void wait_for_workers() {
    for (uint32_t left; (left = team.working.load(std::memory_order_acquire)) != 0;) wait_while(team.working, left);
}

void* work(void*) {
    if (team.working.fetch_sub(1, std::memory_order_acq_rel) == 1) wake(team.working);  // begun: libc is done here
    for (uint32_t seen = 0;;) {
        wait_while(team.epoch, seen);
        seen = team.epoch.load(std::memory_order_acquire);
        share_blocks();
        if (team.working.fetch_sub(1, std::memory_order_acq_rel) == 1) wake(team.working);
    }
}

Word resolve(const Argument& argument, Word in, Word out) {
    if (argument.ring == kInputSlot) return argument.value + in * argument.stride;
    if (argument.ring == kOutputSlot) return argument.value + out * argument.stride;
    return argument.value;
}

void launch(const Step& step, Word in, Word out, Word& shuffle) {
    team.step = &step;
    team.entry = entries[step.kernel];
    team.blocks = step.grid[0] * step.grid[1] * step.grid[2];
    if (team.blocks == 0) return;
    for (Word i = 0; i < step.count; ++i) team.slots[step.rank + i] = resolve(step.arguments[i], in, out);
    team.order = shuffle != 0 ? shuffled(shuffle, team.blocks) : Order{};
    if (team.threads == 1) {
        reset_floating_point();
        run_blocks(team.slots, 0, team.blocks);
        return;
    }
    Word share = team.blocks / (team.threads * 16);
    team.chunk = share > 1 ? share : 1;
    team.next.store(0, std::memory_order_relaxed);
    team.working.store(static_cast<uint32_t>(team.threads - 1), std::memory_order_relaxed);
    team.epoch.fetch_add(1, std::memory_order_release);
    wake(team.epoch);
    share_blocks();
    wait_for_workers();
}

// ---- starting up ----
void start_workers(Word threads) {
    team.threads = threads;
    team.working.store(static_cast<uint32_t>(threads - 1));
    for (Word i = 1; i < threads; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, work, nullptr) != 0) refuse("cannot start threads", strerror(errno));
    }
    wait_for_workers();
}

Word reserve_arena(Word bytes) {
    Word span = bytes + 2 * kHuge;
    void* start = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) refuse("cannot reserve memory for the buffers", strerror(errno));
    Word base = (reinterpret_cast<Word>(start) + kHuge) & ~(kHuge - 1);  // at least one dead page on either side
    if (mprotect(reinterpret_cast<void*>(base), bytes, PROT_READ | PROT_WRITE) != 0)
        refuse("cannot open memory for the buffers", strerror(errno));
    if (bytes >= kHuge) madvise(reinterpret_cast<void*>(base), bytes, MADV_HUGEPAGE);
    return base;
}

// A first call should find its stack as later ones do: in place. (Below the limit; an honest kernel needs less.)
__attribute__((noinline)) void claim_stack() {
    rlimit most{};
    Word size = getrlimit(RLIMIT_STACK, &most) == 0 && most.rlim_cur / 2 < kStack ? most.rlim_cur / 2 : kStack;
    auto* top = static_cast<char*>(__builtin_frame_address(0));
    for (Word below = 0; below < size; below += 4096) *const_cast<volatile char*>(top - below - 4096) = 0;
}

// The time can be read without a system call from pages that Linux maps into every process: not into this one.
void unmap_clock() {
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    static char text[1 << 16];
    Word size = 0;
    for (long n; fd >= 0 && (n = read(fd, text + size, sizeof text - 1 - size)) > 0;) size += static_cast<Word>(n);
    close(fd);
    if (size == 0) refuse("cannot read /proc/self/maps", strerror(errno));
    for (char *line = text, *end; (end = strchr(line, '\n')) != nullptr; line = end + 1) {
        *end = 0;
        if (strstr(line, "[vvar") == nullptr) continue;  // the code beside it, [vdso], is known to the loader
        char* dash;
        Word from = strtoull(line, &dash, 16), to = strtoull(dash + 1, nullptr, 16);
        if (munmap(reinterpret_cast<void*>(from), to - from) != 0) refuse("cannot remove the shared clock", strerror(errno));
    }
}

void give_up_privileges(const char* library, Word address_bytes, Word cpu_seconds) {
    bool limited = sandbox::limit(RLIMIT_AS, address_bytes) && sandbox::limit(RLIMIT_CPU, cpu_seconds) &&
                   sandbox::limit(RLIMIT_FSIZE, 0) && sandbox::limit(RLIMIT_CORE, 0) && sandbox::limit(RLIMIT_NOFILE, 8);
    if (!limited) refuse("cannot set resource limits", strerror(errno));
    syscall(SYS_close_range, 3, ~0u, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    sandbox::Landlock files;
    files.allow(library, sandbox::kReadFile);
    files.enforce();
}

void allow_loading() {
    sandbox::Filter filter(SECCOMP_RET_KILL_PROCESS);
    filter.allow({SYS_read, SYS_write, SYS_close, SYS_fstat, SYS_newfstatat, SYS_mmap, SYS_munmap, SYS_mprotect,
                  SYS_pread64, SYS_lseek, SYS_brk, SYS_exit_group, SYS_seccomp, SYS_getpid});
    filter.allow_if(SYS_openat, 2, O_ACCMODE | O_CREAT, O_RDONLY);
    filter.allow_if(SYS_futex, 1, ~static_cast<uint32_t>(FUTEX_WAIT_PRIVATE | FUTEX_WAKE_PRIVATE), 0);
    if (!filter.install(true)) refuse("cannot install the system-call filter", strerror(errno));
}

void allow_running(bool several_threads) {
    sandbox::Filter filter(SECCOMP_RET_KILL_PROCESS);
    filter.allow_if(SYS_read, 0, ~0u, 0);
    filter.allow_if(SYS_write, 0, ~0u, 1);
    filter.allow({SYS_exit_group});
    if (several_threads) {
        filter.allow_if(SYS_futex, 1, ~0u, FUTEX_WAIT_PRIVATE);
        filter.allow_if(SYS_futex, 1, ~0u, FUTEX_WAKE_PRIVATE);
    }
    if (!filter.install(true)) refuse("cannot install the strict system-call filter", strerror(errno));
}

void load(const char* library, Block& block, Word kernels) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) refuse("cannot load the kernel", dlerror());
    for (Word i = 0; i < kernels; ++i) {
        const char* name = block.text();
        entries[i] = reinterpret_cast<Entry>(dlsym(handle, name));
        if (entries[i] == nullptr) refuse("the kernel has no entry", name);
    }
}

}  // namespace

int main() {
    Word head[2];
    if (!transfer(SYS_read, 0, head, sizeof head) || head[0] != kMagic) return 3;
    Block block{static_cast<Word*>(malloc(head[1] * sizeof(Word))), head[1]};
    if (!transfer(SYS_read, 0, block.words, head[1] * sizeof(Word))) return 3;
    sandbox::die_with(static_cast<pid_t>(block.next()));
    Word threads = block.next(), ring_in = block.next(), ring_out = block.next(), arena_bytes = block.next();
    Word address_bytes = block.next(), cpu_seconds = block.next(), kernels = block.next(), step_count = block.next();
    const char* library = block.text();
    if (kernels > kMaxKernels) leave(3);

    Word base = reserve_arena(arena_bytes);
    unmap_clock();
    give_up_privileges(library, address_bytes, cpu_seconds);
    start_workers(threads);
    claim_stack();
    allow_loading();
    load(library, block, kernels);
    Step** steps = static_cast<Step**>(malloc((step_count + 1) * sizeof(Step*)));
    for (Word i = 0; i < step_count; ++i) {
        Step* step = steps[i] = reinterpret_cast<Step*>(block.take(sizeof(Step) / sizeof(Word)));
        block.take(step->count * sizeof(Argument) / sizeof(Word));
        if (step->rank + step->count > kMaxSlots || step->kernel >= kMaxKernels) leave(3);
        for (Word j = 0; j < step->count; ++j)
            if (step->arguments[j].ring != kValue) step->arguments[j].value += base;
    }
    allow_running(threads > 1);

    Word ready[3] = {0, base, 0};
    if (!transfer(SYS_write, 1, ready, sizeof ready)) leave(0);
    for (Command command; transfer(SYS_read, 0, &command, sizeof command);) {
        Word shuffle = command.order_seed;
        for (Word i = command.first; i < command.first + command.count; ++i)
            for (Word s = 0; s < step_count; ++s) {
                if (steps[s]->is_zero)
                    memset(reinterpret_cast<void*>(resolve(steps[s]->arguments[0], i % ring_in, i % ring_out)), 0,
                           steps[s]->bytes);
                else
                    launch(*steps[s], i % ring_in, i % ring_out, shuffle);
            }
        if (!transfer(SYS_write, 1, &command.token, sizeof command.token)) break;
    }
    leave(0);
}
