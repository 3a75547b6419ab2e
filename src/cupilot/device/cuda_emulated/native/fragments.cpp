// Fragments to and from memory: wmma.load, wmma.store, ldmatrix, stmatrix.
// a: address (y: 1 = 64 bits wide, 2 = shared space), imm: first of the many operands, e: displacement.
#include "checks.h"
#include "families.h"
#include "matrix.h"
#include "request.h"

namespace emu {
namespace {

u64 address_of(Warp& w, const Ins* i, u32 lane) {
    const u64 base = i->y & 1 ? reg<u64>(w, i->a)[lane] : reg<u32>(w, i->a)[lane];
    const u64 sum = base + static_cast<u64>(static_cast<s64>(static_cast<s32>(i->e)));
    return i->y & 2 ? kSharedWindow + static_cast<u32>(sum) : sum;
}

void count(Warp& w, const Ins* i, u32 lanes, u32 units) {
    Site& s = site_of(w, i);
    ++s.requests;
    s.lanes += lanes;
    s.units += units;
}

// x: element type, 1 << 4: by columns, rows << 8, columns << 16; c: stride register or none; b: how many registers
struct Tile {
    Element type;
    bool by_columns;
    u32 rows, columns, registers;
    explicit Tile(const Ins* i)
        : type(Element(i->x & 15)), by_columns(i->x >> 4 & 1), rows(i->x >> 8 & 255), columns(i->x >> 16 & 255), registers(i->b) {}
    u32 count() const { return rows * columns; }
    u64 place(u32 element, u64 stride) const {
        const u64 row = element / columns, column = element % columns;
        return by_columns ? column * stride + row : row * stride + column;
    }
};

template <bool kStore> const Ins* wmma_move(Warp& w, const Ins* i) {
    if (const Ins* next = whole_warp(w, i); next != i) return next;
    const Tile tile(i);
    const u32 bytes = bits_of(tile.type) / 8, parts = per_register(tile.type), slots = tile.registers * parts;
    const u64 base = address_of(w, i, 0);
    const u64 stride = i->c == kNone ? (tile.by_columns ? tile.rows : tile.columns) : reg<u32>(w, i->c)[0];
    if (base % 16) return fault(w, i, "misaligned", 0, base, "\"bytes\":16");
    const auto access = static_cast<u32>(kStore ? Access::kWrite : Access::kRead);
    u8* where[32 * 32] = {};
    for (u32 lane = 0; lane < kLanes; ++lane) {
        for (u32 slot = 0; slot < slots; ++slot) {
            const u32 element = element_of(lane, slots, slot, tile.count());
            if (!where[element]) {
                where[element] = locate(w, i, base + tile.place(element, stride) * bytes, bytes, static_cast<int>(lane), access);
                if (!where[element]) return nullptr;
            }
            const u32 offset = operand(w, i, slot / parts);
            u64 value = 0;
            if (kStore) {
                value = get_element(w, offset, tile.type, slot % parts, lane);
                memcpy(where[element], &value, bytes);
            } else {
                memcpy(&value, where[element], bytes);
                set_element(w, offset, tile.type, slot % parts, lane, value);
            }
        }
    }
    const u32 lines = tile.by_columns ? tile.columns : tile.rows, line_bytes = tile.count() / lines * bytes;
    count(w, i, kLanes, i->y & 2 ? (tile.count() * bytes + 127) / 128 : lines * ((line_bytes + 31) / 32));
    return i + 1;
}

// x: matrices, 1 << 4: transposed. Lane 8 * m + r gives the address of row r of matrix m.
template <bool kStore> const Ins* matrices(Warp& w, const Ins* i) {
    if (const Ins* next = whole_warp(w, i); next != i) return next;
    const u32 number = i->x & 15;
    const bool transposed = i->x >> 4 & 1;
    const auto access = static_cast<u32>(kStore ? Access::kWrite : Access::kRead);
    u8* rows[kLanes];
    s32 relative[kLanes] = {};
    const u64 first = address_of(w, i, 0);
    for (u32 l = 0; l < 8 * number; ++l) {
        const u64 address = address_of(w, i, l);
        if (space_of(address) != kShared) return fault(w, i, "wild-address", static_cast<int>(l), address, "\"bytes\":16");
        rows[l] = locate(w, i, address, 16, static_cast<int>(l), access);
        if (!rows[l]) return nullptr;
        relative[l] = static_cast<s32>(address - first);
    }
    recall<16, true>(site_of(w, i), relative, number == 4 ? ~0u : (1u << 8 * number) - 1, first);
    for (u32 matrix = 0; matrix < number; ++matrix) {
        const u32 offset = operand(w, i, matrix);
        for (u32 lane = 0; lane < kLanes; ++lane) {
            for (u32 half = 0; half < 2; ++half) {
                const u32 row = transposed ? lane % 4 * 2 + half : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + half;
                u8* at = rows[8 * matrix + row] + 2 * column;
                u16 value;
                if (kStore) {
                    value = static_cast<u16>(get_element(w, offset, kF16, half, lane));
                    memcpy(at, &value, 2);
                } else {
                    memcpy(&value, at, 2);
                    set_element(w, offset, kF16, half, lane, value);
                }
            }
        }
    }
    return i + 1;
}

}  // namespace

const std::vector<OpEntry> kFragmentOps = {
    {"wmma.load", wmma_move<false>}, {"wmma.store", wmma_move<true>}, {"ldmatrix", matrices<false>}, {"stmatrix", matrices<true>},
};

}  // namespace emu
