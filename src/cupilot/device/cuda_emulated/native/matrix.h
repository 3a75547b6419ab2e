// Matrix operations of a warp: what the fragments' registers hold, and the shapes.
#pragma once

#include "lanes.h"
#include "numbers.h"

namespace emu {

// Element types, as encode/matrix.py numbers them.
enum Element : u32 { kF16, kBf16, kTf32, kF64, kS8, kU8, kF32, kS32 };

struct Shape {
    u32 m, n, k;
};
inline Shape shape_of(u32 packed) { return {packed & 255, packed >> 8 & 255, packed >> 16 & 255}; }

inline u32 bits_of(Element e) { return e == kF64 ? 64 : e == kF16 || e == kBf16 ? 16 : e == kS8 || e == kU8 ? 8 : 32; }
inline u32 per_register(Element e) { return e == kF64 ? 1 : 32 / bits_of(e); }

inline f64 value_of(Element e, u64 bits) {
    switch (e) {
        case kF16: return from_half(static_cast<u16>(bits));
        case kBf16: return from_bfloat(static_cast<u16>(bits));
        case kTf32: return bits_as<f32>(static_cast<u32>(bits) & 0xffffe000);  // the hardware does not read the rest
        case kF64: return bits_as<f64>(bits);
        case kS8: return static_cast<s8>(bits);
        case kU8: return static_cast<u8>(bits);
        case kF32: return bits_as<f32>(static_cast<u32>(bits));
        default: return static_cast<s32>(bits);
    }
}

// Register `number` of an instruction with many operands; element `part` of it in a lane.
inline u32 operand(const Warp& w, const Ins* i, u32 number) {
    return w.m->program->extra[static_cast<u32>(i->imm) + number];
}
inline u64 get_element(Warp& w, u32 offset, Element e, u32 part, u32 lane) {
    if (e == kF64) return reg<u64>(w, offset)[lane];
    const u32 bits = bits_of(e), word = reg<u32>(w, offset)[lane];
    return bits == 32 ? word : word >> (bits * part) & ((1u << bits) - 1);
}
inline void set_element(Warp& w, u32 offset, Element e, u32 part, u32 lane, u64 value) {
    if (e == kF64) {
        reg<u64>(w, offset)[lane] = value;
        return;
    }
    const u32 bits = bits_of(e);
    u32& word = reg<u32>(w, offset)[lane];
    if (bits == 32) {
        word = static_cast<u32>(value);
        return;
    }
    const u32 ones = ((1u << bits) - 1) << (bits * part);
    word = (word & ~ones) | (static_cast<u32>(value) << (bits * part) & ones);
}

// wmma's fragments have a layout that CUDA does not tell; ours: a lane's slots are consecutive elements of the
// row-major matrix, and a fragment with more slots than elements holds them several times.
inline u32 element_of(u32 lane, u32 slots, u32 slot, u32 count) { return (lane * slots + slot) % count; }

// All 32 lanes, together: i once they are here.
inline const Ins* whole_warp(Warp& w, const Ins* i) {
    const Ins* next = converge(w, i, w.live);
    if (next == i && w.mask != ~0u) return fault(w, i, "incomplete-warp", -1, 0, text("\"lanes\":%d", __builtin_popcount(w.mask)));
    return next;
}

}  // namespace emu
