"""Integer instructions against Python's exact integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import ptx_kit
import pytest
from ptx_kit import Op

Exact = Callable[..., int]


def _operands(bits: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    top = 1 << bits
    edges = [0, 1, 2, 3, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1, 31, 32, 33, 63, 64]
    found = []
    for turn in range(3):
        small = rng.integers(0, 80, 64).tolist()
        wide = [int.from_bytes(rng.bytes(8), "little") % top for _ in range(ptx_kit.COUNT)]
        values = [edges[k // (1, 14, 5)[turn] % 14] % top for k in range(98)] + small + wide
        found.append(np.array(values[: ptx_kit.COUNT], np.uint64))
    return found


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _field(a: int, pos: int, length: int, bits: int, signed: bool) -> int:
    pos, length = pos & 255, length & 255
    if length == 0:
        return 0
    top = (a >> min(pos + length - 1, bits - 1)) & 1 if signed else 0
    return sum(((a >> pos + k & 1) if pos + k < bits and k < length else top) << k for k in range(bits))


def _insert(a: int, b: int, pos: int, length: int, bits: int) -> int:
    pos, length = pos & 255, length & 255
    ones = ((1 << length) - 1) << pos & ((1 << bits) - 1)
    return a << pos & ones | b & ~ones


def _shift(a: int, count: int, bits: int, signed: bool) -> int:
    return (_signed(a, bits) if signed else a) >> min(count & 0xFFFFFFFF, bits)


def _bfind(a: int, bits: int, signed: bool) -> int:
    value = ~a & (1 << bits) - 1 if signed and a >> (bits - 1) else a
    return value.bit_length() - 1


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_arithmetic(bits: int) -> None:
    kind = str(bits)
    cases: list[tuple[Op, Exact]] = []

    def case(text: str, exact: Exact, count: int = 2, result: str = kind) -> None:
        places = ", ".join(f"%{k}" for k in range(count + 1))
        cases.append((Op(f"{text} {places};", result, (kind,) * count), exact))

    for sign in "us":
        t = f"{sign}{bits}"
        n: Callable[[int], int] = (lambda v: _signed(v, bits)) if sign == "s" else (lambda v: v)
        case(f"add.{t}", lambda a, b: a + b)
        case(f"sub.{t}", lambda a, b: a - b)
        case(f"mul.lo.{t}", lambda a, b: a * b)
        case(f"mul.hi.{t}", lambda a, b, n=n: n(a) * n(b) >> bits)
        case(f"mad.lo.{t}", lambda a, b, c: a * b + c, 3)
        case(f"mad.hi.{t}", lambda a, b, c, n=n: (n(a) * n(b) >> bits) + c, 3)
        case(f"min.{t}", lambda a, b, n=n: min(a, b, key=n))
        case(f"max.{t}", lambda a, b, n=n: max(a, b, key=n))
        case(f"div.{t}", lambda a, b, n=n: _quotient(n(a), n(b)) if b else -1)
        case(f"rem.{t}", lambda a, b, n=n: n(a) - _quotient(n(a), n(b)) * n(b) if b else a)
        case(f"sad.{t}", lambda a, b, c, n=n: c + abs(n(a) - n(b)), 3)
        if bits < 64:
            wide = str(2 * bits)
            case(f"mul.wide.{t}", lambda a, b, n=n: n(a) * n(b), 2, wide)
            text = f"mad.wide.{t} %0, %1, %2, %3;"
            cases.append((Op(text, wide, (kind, kind, wide)), lambda a, b, c, n=n: n(a) * n(b) + c))
    case(f"neg.s{bits}", lambda a: -a, 1)
    case(f"abs.s{bits}", lambda a: abs(_signed(a, bits)), 1)
    for name, exact in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)):
        case(f"{name}.b{bits}", exact)
    case(f"not.b{bits}", lambda a: ~a, 1)
    case(f"cnot.b{bits}", lambda a: a == 0, 1)
    _check(cases, bits)


@pytest.mark.parametrize("bits", [32, 64])
def test_bits(bits: int) -> None:
    kind = str(bits)
    cases: list[tuple[Op, Exact]] = []

    def case(text: str, exact: Exact, operands: tuple[str, ...], result: str = kind) -> None:
        places = ", ".join(f"%{k}" for k in range(len(operands) + 1))
        cases.append((Op(f"{text} {places};", result, operands), exact))

    for sign, signed in (("u", False), ("s", True)):
        case(f"shr.{sign}{bits}", lambda a, b, s=signed: _shift(a, b, bits, s), (kind, "32"))
        case(f"bfe.{sign}{bits}", lambda a, b, c, s=signed: _field(a, b, c, bits, s), (kind, "32", "32"))
        case(f"bfind.{sign}{bits}", lambda a, s=signed: _bfind(a, bits, s), (kind,), "32")
        case(
            f"bfind.shiftamt.{sign}{bits}",
            lambda a, s=signed: bits - 1 - _bfind(a, bits, s) if _bfind(a, bits, s) >= 0 else -1,
            (kind,),
            "32",
        )
    case(f"shl.b{bits}", lambda a, b: a << min(b & 0xFFFFFFFF, bits), (kind, "32"))
    case(f"popc.b{bits}", int.bit_count, (kind,), "32")
    case(f"clz.b{bits}", lambda a: bits - a.bit_length(), (kind,), "32")
    case(f"brev.b{bits}", lambda a: int(f"{a:0{bits}b}"[::-1], 2), (kind,))
    cases.append((Op(f"bfi.b{bits} %0, %1, %2, %3, 7;", kind, (kind, kind, "32")),
                  lambda a, b, c: _insert(a, b, c, 7, bits)))  # fmt: skip
    _check(cases, bits)


def test_bytes_and_tables() -> None:
    def prmt(a: int, b: int, c: int) -> int:
        bytes_ = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        chosen = [(c >> 4 * k) & 15 for k in range(4)]
        found = [(255 if bytes_[s & 7] & 128 else 0) if s & 8 else bytes_[s & 7] for s in chosen]
        return int.from_bytes(bytes(found), "little")

    def dp4a(a: int, b: int, c: int) -> int:
        return c + sum(_signed(a >> 8 * k & 255, 8) * (b >> 8 * k & 255) for k in range(4))

    three = ("32", "32", "32")
    cases: list[tuple[Op, Exact]] = [
        (Op("prmt.b32 %0, %1, %2, %3;", "32", three), prmt),
        (Op("dp4a.s32.u32 %0, %1, %2, %3;", "32", three), dp4a),
        (Op("shf.l.wrap.b32 %0, %1, %2, %3;", "32", three), lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
        (Op("shf.r.wrap.b32 %0, %1, %2, %3;", "32", three), lambda a, b, c: (b << 32 | a) >> (c & 31)),
        (
            Op("shf.l.clamp.b32 %0, %1, %2, %3;", "32", three),
            lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
        ),
        (Op("shf.r.clamp.b32 %0, %1, %2, %3;", "32", three), lambda a, b, c: (b << 32 | a) >> min(c, 32)),
        (Op("mul24.lo.u32 %0, %1, %2;", "32", three[:2]), lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ]
    for table in (0x96, 0xE8, 0xCA, 0x01, 0x80):
        cases.append((Op(f"lop3.b32 %0, %1, %2, %3, {table};", "32", three), _lop3(table)))
    _check(cases, 32)


def _lop3(table: int) -> Exact:
    def exact(a: int, b: int, c: int) -> int:
        places = range(32)
        index = [(a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1 for k in places]
        return sum((table >> index[k] & 1) << k for k in places)

    return exact


def test_carries_travel_through_chains() -> None:
    low_high = "{ .reg .b32 a, b, c, d, e, f; mov.b64 {a, b}, %1; mov.b64 {c, d}, %2;"
    add = f"{low_high} add.cc.u32 e, a, c; addc.u32 f, b, d; mov.b64 %0, {{e, f}}; }}"
    subtract = f"{low_high} sub.cc.u32 e, a, c; subc.u32 f, b, d; mov.b64 %0, {{e, f}}; }}"
    multiply = f"{low_high} mul.lo.u32 e, a, c; mul.hi.u32 f, a, c; mad.lo.cc.u32 e, b, d, e; " \
               "madc.hi.u32 f, b, d, f; mov.b64 %0, {e, f}; }"  # fmt: skip
    two = ("64", "64")

    def products(a: int, b: int) -> int:
        mask = 0xFFFFFFFF
        return (a & mask) * (b & mask) + (a >> 32) * (b >> 32)

    cases: list[tuple[Op, Exact]] = [
        (Op(add, "64", two), int.__add__), (Op(subtract, "64", two), int.__sub__),
        (Op(multiply, "64", two), products),
    ]  # fmt: skip
    _check(cases, 64)


def test_comparisons_and_selection() -> None:
    cases: list[tuple[Op, Exact]] = []
    for name, exact in (("eq", int.__eq__), ("ne", int.__ne__), ("lt", int.__lt__), ("le", int.__le__),
                        ("gt", int.__gt__), ("ge", int.__ge__)):  # fmt: skip
        for kind, signed in (("u32", False), ("s32", True), ("u64", False), ("s64", True)):
            bits = int(kind[1:])
            compared = f".reg .pred p, q; setp.{name}.{kind} p|q, %1, %2;"
            text = f"{compared} selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;"

            def wanted(a: int, b: int, e: Exact = exact, s: bool = signed, n: int = bits) -> int:
                return 1 if (e(_signed(a, n), _signed(b, n)) if s else e(a, b)) else 2

            cases.append((Op(text, "32", (str(bits), str(bits))), wanted))
    cases.append((Op("slct.u32.s32 %0, %1, %2, %3;", "32", ("32", "32", "32")),
                  lambda a, b, c: a if _signed(c, 32) >= 0 else b))  # fmt: skip
    _check([c for c in cases if c[0].operands[0] == "32"], 32)
    _check([c for c in cases if c[0].operands[0] == "64"], 64)


def _check(cases: list[tuple[Op, Exact]], bits: int) -> None:
    values = _operands(bits, bits)
    found = ptx_kit.apply([op for op, _ in cases], *values)
    for (op, exact), got in zip(cases, found, strict=True):
        width = 1 << 8 * got.dtype.itemsize
        for k in range(ptx_kit.COUNT):
            given = [int(v[k]) % (1 << int(kind)) for v, kind in zip(values, op.operands, strict=False)]
            assert int(got[k]) == int(exact(*given)) % width, (op.text, given)
