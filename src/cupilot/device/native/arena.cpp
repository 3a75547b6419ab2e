// Preloaded into baseline processes, so that their tensors lie as a candidate's do: page-aligned, in huge pages,
// claimed once and reused. Blocks of 16 KB or more that are asked for with an alignment (as torch does for every
// tensor) come from one large region; freed ones are reused by size, last in, first out.
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

namespace {

constexpr size_t kPage = 4096, kHuge = 2u << 20, kSmallest = 16u << 10, kReserved = 64ull << 30;
constexpr int kMaxBlocks = 1 << 16;

struct Block {
    char* start;
    size_t size;
    bool is_free;
};
Block blocks[kMaxBlocks];
int block_count;
char *region, *unused;
std::atomic_flag busy = ATOMIC_FLAG_INIT;

struct Lock {
    Lock() { while (busy.test_and_set(std::memory_order_acquire)) {} }
    ~Lock() { busy.clear(std::memory_order_release); }
};

bool is_ours(const void* pointer) {
    auto* at = static_cast<const char*>(pointer);
    return region != nullptr && at >= region && at < region + kReserved;
}

bool reserve() {
    if (region != nullptr) return true;
    void* start = mmap(nullptr, kReserved + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return false;
    region = unused = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(start) + kHuge - 1) & ~(kHuge - 1));
    madvise(region, kReserved, MADV_HUGEPAGE);
    return true;
}

void* take(size_t size) {
    size = (size + kPage - 1) / kPage * kPage;
    Lock lock;
    if (!reserve()) return nullptr;
    for (int i = block_count - 1; i >= 0; --i)
        if (blocks[i].is_free && blocks[i].size == size) {
            Block block = blocks[i];  // moves to the end: the block freed or taken last is found first
            block.is_free = false;
            memmove(blocks + i, blocks + i + 1, (block_count - 1 - i) * sizeof(Block));
            blocks[block_count - 1] = block;
            return block.start;
        }
    if (block_count == kMaxBlocks || unused + size + kPage > region + kReserved) return nullptr;
    blocks[block_count++] = {unused, size, false};
    void* start = unused;
    unused += size + kPage;  // the gap that a candidate's guard zone is
    return start;
}

size_t release(void* pointer, bool really) {  // the size of the block
    Lock lock;
    for (int i = block_count - 1; i >= 0; --i)
        if (blocks[i].start == pointer && !blocks[i].is_free) {
            Block block = blocks[i];
            block.is_free = really;
            if (really) {
                memmove(blocks + i, blocks + i + 1, (block_count - 1 - i) * sizeof(Block));
                blocks[block_count - 1] = block;
            }
            return block.size;
        }
    return 0;
}

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

}  // namespace

extern "C" int posix_memalign(void** result, size_t alignment, size_t size) {
    static auto original = next<int (*)(void**, size_t, size_t)>("posix_memalign");
    if (size >= kSmallest && alignment <= kPage) {
        *result = take(size);
        if (*result != nullptr) return 0;
    }
    return original(result, alignment, size);
}

extern "C" void free(void* pointer) {
    static auto original = next<void (*)(void*)>("free");
    if (is_ours(pointer)) release(pointer, true);
    else original(pointer);
}

extern "C" size_t malloc_usable_size(void* pointer) {
    static auto original = next<size_t (*)(void*)>("malloc_usable_size");
    return is_ours(pointer) ? release(pointer, false) : original(pointer);
}

extern "C" void* malloc(size_t);
extern "C" void* realloc(void* pointer, size_t size) {
    static auto original = next<void* (*)(void*, size_t)>("realloc");
    if (!is_ours(pointer)) return original(pointer, size);
    size_t old = release(pointer, false);
    void* moved = malloc(size);
    if (moved == nullptr) return nullptr;
    memcpy(moved, pointer, old < size ? old : size);
    release(pointer, true);
    return moved;
}
