// D = A * B + C by a warp: mma.sync with its documented fragments, wmma.mma with ours (matrix.h).
// Products are exact; eight at a time are added and cut to the accumulator's format, as tensor cores do at best.
// x: element types of a, b, c, d (four bits each), 1 << 16: saturate. y: shape and the numbers of registers.
#include "matrix.h"

#include "families.h"

namespace emu {
namespace {

constexpr u32 kMost = 32 * 32;
struct Matrices {
    f64 a[kMost], b[kMost], c[kMost];  // m x k, k x n, m x n
};

f32 cut(f64 v) {  // towards zero
    const f32 near = static_cast<f32>(v);
    return std::fabs(static_cast<f64>(near)) > std::fabs(v) && std::isfinite(v) ? std::nextafter(near, 0.0f) : near;
}

void multiply(Matrices& x, Shape s, Element accumulator) {
    constexpr u32 kStep = 8;
    for (u32 row = 0; row < s.m; ++row) {
        for (u32 start = 0; start < s.k; start += kStep) {
            f64* c = x.c + row * s.n;
            for (u32 k = start; k < s.k && k < start + kStep; ++k) {
                const f64 a = x.a[row * s.k + k];
                const f64* b = x.b + k * s.n;
                if (accumulator == kF64) for (u32 n = 0; n < s.n; ++n) c[n] = __builtin_fma(a, b[n], c[n]);
                else for (u32 n = 0; n < s.n; ++n) c[n] += a * b[n];
            }
            if (accumulator == kF32 || accumulator == kF16) for (u32 n = 0; n < s.n; ++n) c[n] = cut(c[n]);
        }
    }
}

u64 stored(Element e, f64 v, bool saturate) {
    if (e == kF64) return bits_as<u64>(v);
    if (e == kF32) return std::isnan(v) ? 0x7fffffff : bits_as<u32>(static_cast<f32>(v));
    if (e == kF16) return std::isnan(v) ? 0x7fff : half_from_double(saturate && std::fabs(v) > 65504 ? std::copysign(65504.0, v) : v, kNearest);
    const auto whole = static_cast<s64>(v);
    if (saturate) return static_cast<u32>(static_cast<s32>(whole > 0x7fffffff ? 0x7fffffff : whole < -0x80000000ll ? -0x80000000ll : whole));
    return static_cast<u32>(whole);
}

struct Types {
    Element a, b, c, d;
    bool saturate;
    explicit Types(u32 x)
        : a(Element(x & 15)), b(Element(x >> 4 & 15)), c(Element(x >> 8 & 15)), d(Element(x >> 12 & 15)), saturate(x >> 16 & 1) {}
};
struct Counts {  // registers of d, a, b
    u32 d, a, b, c;
    explicit Counts(const Ins* i) : d(i->a), a(i->b), b(i->c), c(i->d) {}
};

// ---- mma.sync: lane = 4 * group + member ----
template <class F> void each_fragment_a(Shape s, Element e, F f) {  // f(lane, register, part, row, column)
    const u32 parts = per_register(e), rows = s.m / 8, registers = s.m * s.k / kLanes / parts;
    for (u32 lane = 0; lane < kLanes; ++lane)
        for (u32 r = 0; r < registers; ++r)
            for (u32 p = 0; p < parts; ++p) f(lane, r, p, lane / 4 + 8 * (r % rows), parts * (lane % 4) + 4 * parts * (r / rows) + p);
}
template <class F> void each_fragment_b(Shape s, Element e, F f) {
    const u32 parts = per_register(e), registers = s.n * s.k / kLanes / parts;
    for (u32 lane = 0; lane < kLanes; ++lane)
        for (u32 r = 0; r < registers; ++r)
            for (u32 p = 0; p < parts; ++p) f(lane, r, p, parts * (lane % 4) + 4 * parts * r + p, lane / 4);
}
template <class F> void each_fragment_c(Shape s, Element e, F f) {
    const u32 parts = per_register(e) > 2 ? 1 : per_register(e), slots = s.m * s.n / kLanes;
    for (u32 lane = 0; lane < kLanes; ++lane)
        for (u32 slot = 0; slot < slots; ++slot) f(lane, slot / parts, slot % parts, lane / 4 + 8 * (slot / 2), 2 * (lane % 4) + slot % 2);
}

const Ins* mma(Warp& w, const Ins* i) {
    if (const Ins* next = whole_warp(w, i); next != i) return next;
    const Shape s = shape_of(i->y);
    const Types t(i->x);
    const Counts n(i);
    static Matrices x;
    each_fragment_a(s, t.a, [&](u32 lane, u32 r, u32 p, u32 row, u32 column) {
        x.a[row * s.k + column] = value_of(t.a, get_element(w, operand(w, i, n.d + r), t.a, p, lane));
    });
    each_fragment_b(s, t.b, [&](u32 lane, u32 r, u32 p, u32 row, u32 column) {
        x.b[row * s.n + column] = value_of(t.b, get_element(w, operand(w, i, n.d + n.a + r), t.b, p, lane));
    });
    each_fragment_c(s, t.c, [&](u32 lane, u32 r, u32 p, u32 row, u32 column) {
        x.c[row * s.n + column] = value_of(t.c, get_element(w, operand(w, i, n.d + n.a + n.b + r), t.c, p, lane));
    });
    multiply(x, s, t.d);
    each_fragment_c(s, t.d, [&](u32 lane, u32 r, u32 p, u32 row, u32 column) {
        set_element(w, operand(w, i, r), t.d, p, lane, stored(t.d, x.c[row * s.n + column], t.saturate));
    });
    return i + 1;
}

// ---- wmma.mma ----
template <class F> void each_slot(u32 registers, Element e, u32 count, F f) {  // f(lane, register, part, element)
    const u32 parts = per_register(e), slots = registers * parts;
    for (u32 lane = 0; lane < kLanes; ++lane)
        for (u32 slot = 0; slot < slots; ++slot) f(lane, slot / parts, slot % parts, element_of(lane, slots, slot, count));
}
void gather(Warp& w, const Ins* i, u32 first, u32 registers, Element e, u32 count, f64* into) {
    each_slot(registers, e, count, [&](u32 lane, u32 r, u32 p, u32 element) {
        into[element] = value_of(e, get_element(w, operand(w, i, first + r), e, p, lane));
    });
}

const Ins* wmma(Warp& w, const Ins* i) {
    if (const Ins* next = whole_warp(w, i); next != i) return next;
    const Shape s = shape_of(i->y);
    const Types t(i->x);
    const Counts n(i);
    static Matrices x;
    gather(w, i, n.d, n.a, t.a, s.m * s.k, x.a);
    gather(w, i, n.d + n.a, n.b, t.b, s.k * s.n, x.b);
    gather(w, i, n.d + n.a + n.b, n.c, t.c, s.m * s.n, x.c);
    multiply(x, s, t.d);
    each_slot(n.d, t.d, s.m * s.n, [&](u32 lane, u32 r, u32 p, u32 element) {
        set_element(w, operand(w, i, r), t.d, p, lane, stored(t.d, x.c[element], t.saturate));
    });
    return i + 1;
}

}  // namespace

const std::vector<OpEntry> kMatrixOps = {{"mma", mma}, {"wmma.mma", wmma}};

}  // namespace emu
