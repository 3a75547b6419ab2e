// Measures what this machine's cores and memory can do at most; prints one figure per line:
//
//     memory LEVEL PATTERN bytes_per_s
//     arithmetic UNIT PRECISION operations_per_s
//     special f32 exponentials_per_s
//     launch empty seconds
//     share cpu fraction          CPU time over wall time while timing: low means we were pushed aside
//
// usage: peaks CPU[,CPU...] LEVEL=BYTES[,BYTES...] ...
// One thread is pinned to every CPU listed; BYTES is the working set of one thread. Of several working
// sets and several ways to do the same thing the best counts, each as the best of many short windows.

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "peaks_arithmetic.h"
#include "peaks_memory.h"

double seconds(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

class Barrier {
  public:
    explicit Barrier(int count) : count_(count) {}
    void wait() {
        const int round = round_.load();
        if (arrived_.fetch_add(1) + 1 == count_) {
            arrived_.store(0);
            round_.fetch_add(1);
            return;
        }
        for (long spins = 0; round_.load() == round; ++spins) {
            if (spins > 2000) sched_yield();
        }
    }

  private:
    const int count_;
    std::atomic<int> arrived_{0}, round_{0};
};

struct Stamp {
    alignas(64) double begin, end, cpu;
};

// All threads run the same program; each figure is the best window, and every thread knows it.
class Team {
  public:
    explicit Team(int count) : barrier_(count), stamps_(size_t(count)) {}

    // Seconds of one window, from the first start to the last end. Alone, a thread is charged its CPU time:
    // being pushed aside does not count.
    double window(int me, const std::function<void()>& body) {
        barrier_.wait();
        Stamp& mine = stamps_[size_t(me)];
        mine.cpu = -seconds(CLOCK_THREAD_CPUTIME_ID);
        mine.begin = seconds(CLOCK_MONOTONIC);
        body();
        mine.end = seconds(CLOCK_MONOTONIC);
        mine.cpu += seconds(CLOCK_THREAD_CPUTIME_ID);
        barrier_.wait();
        double begin = mine.begin, end = mine.end;
        for (const Stamp& s : stamps_) begin = std::min(begin, s.begin), end = std::max(end, s.end);
        cpu_s_ += me == 0 ? mine.cpu : 0, wall_s_ += me == 0 ? mine.end - mine.begin : 0;
        const double result = stamps_.size() == 1 ? mine.cpu : end - begin;
        barrier_.wait();  // nobody overwrites a stamp that is still read
        return result;
    }

    // Start everybody, do nothing, wait for everybody.
    double empty_launch_s() {
        constexpr int LAUNCHES = 200, TRIALS = 10;
        double best = 1;
        for (int t = 0; t < TRIALS; ++t) {
            const double begin = seconds(CLOCK_MONOTONIC);
            for (int i = 0; i < 2 * LAUNCHES; ++i) barrier_.wait();
            best = std::min(best, (seconds(CLOCK_MONOTONIC) - begin) / LAUNCHES);
        }
        return best;
    }

    size_t size() const { return stamps_.size(); }
    double cpu_share() const { return cpu_s_ / wall_s_; }

  private:
    Barrier barrier_;
    std::vector<Stamp> stamps_;
    double cpu_s_ = 0, wall_s_ = 0;
};

constexpr double WINDOW_S = 0.8e-3;  // shorter than a scheduler tick: some windows escape interference
constexpr int WINDOWS = 16, LONG_WINDOWS = 4;

// Best rate of a body that does `amount(rounds)` units of work. All threads take the same path through here:
// they see the same times.
double best_rate(Team& team, int me, const std::function<double(long)>& amount) {
    long rounds = 1;
    double done = 0;
    const auto window = [&] { return std::max(team.window(me, [&] { done = amount(rounds); }), 1e-9); };
    double time_s = window();
    while (time_s < WINDOW_S / 2) {
        rounds = std::max(rounds + 1, long(double(rounds) * std::min(WINDOW_S / time_s, 16.0)));
        time_s = window();
    }
    double best = done / time_s;
    const int windows = time_s > 4 * WINDOW_S ? LONG_WINDOWS : WINDOWS;
    for (int w = 0; w < windows; ++w) best = std::max(best, done / window());
    return best * double(team.size());
}

struct Level {
    std::string name;
    std::vector<size_t> sizes_bytes;
};

struct Job {
    std::vector<int> cpus;
    std::vector<Level> levels;
    size_t arena_bytes = 0;
};

using Figures = std::map<std::pair<std::string, std::string>, double>;  // (kind, name) -> best

void note(Figures& figures, const std::string& kind, const std::string& name, double rate) {
    double& best = figures[{kind, name}];
    best = std::max(best, rate);
}

// Data that looks like numbers: lines of zeros are faster than anything real, to copy as well.
void fill_with_numbers(Line* memory, size_t bytes) {
    uint64_t value = 0x3f8ccccd3f8ccccd;
    for (size_t i = 0; i < bytes / sizeof value; ++i, value += 0x0001000700010003) {
        ((uint64_t*)memory)[i] = value;
    }
}

Line* arena(size_t bytes) {
    constexpr size_t HUGE = size_t(2) << 20;
    void* memory = mmap(nullptr, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("peaks: cannot map the arena");
        std::exit(1);
    }
    char* aligned = (char*)(((uintptr_t)memory + HUGE - 1) & ~(HUGE - 1));
    madvise(aligned, bytes, MADV_HUGEPAGE);
    return (Line*)aligned;
}

void measure_memory(const Job& job, Team& team, int me, Figures& figures) {
    Line* const memory = arena(job.arena_bytes);
    for (const Level& level : job.levels) {
        for (const size_t size : level.sizes_bytes) {
            for (const Walk& walk : WALKS) {
                fill_with_numbers(memory, size);  // the walk before may have left zeros
                const size_t lines = size / sizeof(Line) / size_t(walk.arrays) / (4 * UNROLL) * (4 * UNROLL);
                const Line* const a = memory + (walk.arrays > 1 ? lines : 0);
                const Line* const b = memory + (walk.arrays > 2 ? 2 * lines : 0);
                const double rate = best_rate(team, me, [&](long rounds) {
                    for (long r = 0; r < rounds; ++r) walk.body(memory, a, b, lines);
                    return double(rounds) * double(lines) * sizeof(Line) * walk.arrays;
                });
                note(figures, "memory " + level.name, walk.pattern, rate);
            }
        }
    }
}

void measure_arithmetic(Team& team, int me, Figures& figures, bool tiles) {
    const auto core = [&](const char* name, double (*body)(long)) {
        note(figures, "arithmetic core", name, best_rate(team, me, body));
    };
    core("f32", multiply_add<float, WIDEST>);
    core("f64", multiply_add<double, WIDEST>);
    if constexpr (WIDEST > 32) {  // some cores clock lower, or run no faster, at the full width
        core("f32", multiply_add<float, 32>);
        core("f64", multiply_add<double, 32>);
    }
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
    core("f16", multiply_add<_Float16, WIDEST>);
#endif
#if defined(__AVX512BF16__)
    core("bf16", dot<__m512, dot_bf16, 64>);
#endif
#if defined(__AVX512VNNI__)
    core("i8", dot<__m512i, dot_i8, 128>);
#elif defined(__AVXVNNI__)
    core("i8", dot<__m256i, dot_i8, 64>);
#elif defined(__ARM_FEATURE_DOTPROD)
    core("i8", dot<int32x4_t, dot_i8, 32>);
#endif
    note(figures, "special", "f32", best_rate(team, me, exponentials));
#if defined(HAVE_TILES)
    const auto matrix = [&](const char* name, double (*body)(long)) {
        if (tiles) note(figures, "arithmetic matrix", name, best_rate(team, me, body));
    };
#if defined(__AMX_BF16__)
    matrix("bf16", tiles_bf16);
#endif
#if defined(__AMX_INT8__)
    matrix("i8", tiles_i8);
#endif
#if defined(__AMX_FP16__)
    matrix("f16", tiles_f16);
#endif
#else
    (void)tiles;
#endif
}

Job parse(int argc, char** argv) {
    Job job;
    const auto numbers = [](const char* text, auto add) {
        for (char* end; *text; text = *end ? end + 1 : end) add(std::strtoull(text, &end, 10));
    };
    if (argc < 3) {
        std::fprintf(stderr, "usage: peaks CPU[,CPU...] LEVEL=BYTES[,BYTES...] ...\n");
        std::exit(2);
    }
    numbers(argv[1], [&](unsigned long long cpu) { job.cpus.push_back(int(cpu)); });
    for (int i = 2; i < argc; ++i) {
        const char* equals = std::strchr(argv[i], '=');
        if (equals == nullptr) {
            std::fprintf(stderr, "peaks: %s is no LEVEL=BYTES\n", argv[i]);
            std::exit(2);
        }
        job.levels.push_back({std::string(argv[i], size_t(equals - argv[i])), {}});
        numbers(equals + 1, [&](unsigned long long bytes) {
            job.levels.back().sizes_bytes.push_back(bytes);
            job.arena_bytes = std::max(job.arena_bytes, size_t(bytes));
        });
    }
    return job;
}

int main(int argc, char** argv) {
    const Job job = parse(argc, argv);
    bool tiles = false;
#if defined(HAVE_TILES)
    tiles = allow_tiles();
#endif
    Team team(int(job.cpus.size()));
    Figures figures;
    const auto member = [&](int me) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(job.cpus[size_t(me)], &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
        Figures mine;
        measure_arithmetic(team, me, mine, tiles);  // first: it brings the clock up
        measure_memory(job, team, me, mine);
        mine[{"launch", "empty"}] = team.empty_launch_s();
        if (me == 0) mine[{"share", "cpu"}] = team.cpu_share(), figures = mine;
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < job.cpus.size(); ++i) threads.emplace_back(member, int(i));
    for (std::thread& thread : threads) thread.join();
    for (const auto& [key, value] : figures) {
        std::printf("%s %s %.6g\n", key.first.c_str(), key.second.c_str(), value);
    }
}
