// Describing what went wrong, as JSON for the parent: the place in the code, the thread, the address.
#include <cstdarg>
#include <cstdio>

#include "machine.h"

namespace emu {

std::string text(const char* format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

std::string quoted(const std::string& plain) {
    std::string out;
    for (const char c : plain) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<u8>(c) < 32 || static_cast<u8>(c) > 126) out += text("\\u%04x", static_cast<u8>(c));
        else out += c;
    }
    return out;
}

const Ins* fault(Warp& w, const Ins* i, const char* kind, int lane, u64 address, const std::string& detail) {
    Machine& m = *w.m;
    if (m.fault.empty()) {
        const u32* size = m.shape.block;
        const u32 thread = w.id * kLanes + static_cast<u32>(lane < 0 ? __builtin_ctz(w.mask | 1u << 31) : lane);
        const u32* id = w.block->id;
        m.fault = text("{\"kind\":\"%s\",\"ins\":%u,\"thread\":[%u,%u,%u],\"block\":[%u,%u,%u],\"address\":%llu", kind,
                       index_of(w, i), thread % size[0], thread / size[0] % size[1], thread / (size[0] * size[1]),
                       id[0], id[1], id[2], static_cast<unsigned long long>(address));
        m.fault += detail.empty() ? "}" : "," + detail + "}";
    }
    return halt(w);
}

}  // namespace emu
