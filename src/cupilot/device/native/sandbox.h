// What the compiler's jail and the runner share: resource limits, Landlock, system-call filters.
// Each function returns false where the kernel does not offer the layer; the caller decides whether that is fatal.
// x86-64 only. Does not hide the CPU's identity, and does not limit what a process may compute.
#pragma once

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

namespace sandbox {

inline bool limit(int resource, uint64_t value) {
    rlimit both{value, value};
    if (setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0) return true;
    rlimit now{};
    return getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0 && now.rlim_max <= value;
}

// Dies with the thread that started it. `parent` is the process that should still be there.
inline void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

// ---- Landlock (numbers spelled out: distribution headers lag behind kernels) ----
inline constexpr uint64_t kExecute = 1, kReadFile = 4, kReadDir = 8;
inline constexpr uint64_t kReading = kExecute | kReadFile | kReadDir;
inline constexpr uint64_t kFileOnly = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000;  // rights that make sense on a file

class Landlock {
    struct Ruleset {
        uint64_t files, network, scoped;
    };
    struct __attribute__((packed)) PathRule {
        uint64_t allowed;
        int32_t parent;
    };
    long abi_ = syscall(444, nullptr, 0, 1);
    uint64_t files_ = abi_ >= 5 ? 0xffff : abi_ >= 3 ? 0x7fff : abi_ >= 2 ? 0x3fff : 0x1fff;
    int ruleset_ = -1;

  public:
    Landlock() {
        Ruleset rules{files_, abi_ >= 4 ? 3ull : 0, abi_ >= 6 ? 3ull : 0};
        size_t size = abi_ >= 6 ? 24 : abi_ >= 4 ? 16 : 8;
        if (abi_ > 0) ruleset_ = static_cast<int>(syscall(444, &rules, size, 0));
    }
    bool works() const { return ruleset_ >= 0; }
    // A path that does not exist needs no rule.
    void allow(const char* path, uint64_t rights) {
        int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0) return;
        struct stat info{};
        if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kFileOnly;
        PathRule rule{rights & files_, fd};
        syscall(445, ruleset_, 1, &rule, 0);
        close(fd);
    }
    void allow_everything(const char* path) { allow(path, files_); }
    bool enforce() { return works() && syscall(446, ruleset_, 0) == 0 && close(ruleset_) == 0; }
};

// ---- seccomp ----
class Filter {
    sock_filter code_[512];
    unsigned short size_ = 0;
    unsigned otherwise_;

    void add(sock_filter instruction) {
        if (size_ < 512) code_[size_++] = instruction;
    }
    void load(uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    void load_number() { load(offsetof(seccomp_data, nr)); }
    static uint32_t argument(int index) { return offsetof(seccomp_data, args) + 8u * index; }

  public:
    explicit Filter(unsigned otherwise) : otherwise_(otherwise) {
        load(offsetof(seccomp_data, arch));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
        load_number();
        add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));  // the x32 calls
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    }
    void on(long number, unsigned action) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
        add(BPF_STMT(BPF_RET | BPF_K, action));
    }
    void allow(std::initializer_list<long> numbers) {
        for (long number : numbers) on(number, SECCOMP_RET_ALLOW);
    }
    // Allowed when argument `index`, masked, has this value (low 32 bits; the rest of the word must be zero).
    void allow_if(long number, int index, uint32_t mask, uint32_t value) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 7));
        load(argument(index) + 4);
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4));
        load(argument(index));
        add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        load_number();
    }
    // For this thread, or for all threads of the process.
    bool install(bool all_threads) {
        add(BPF_STMT(BPF_RET | BPF_K, otherwise_));
        sock_fprog program{size_, code_};
        return size_ < 512 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                      all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program) == 0;
    }
};

}  // namespace sandbox
