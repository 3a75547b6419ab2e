"""Integer, floating-point and half arithmetic, logic, bit fields, selection and special functions."""

from __future__ import annotations

from cupilot.device.cuda_emulated.encode.builder import Const, Reg, Source
from cupilot.device.cuda_emulated.encode.frame import Frame, is_wide
from cupilot.device.cuda_emulated.encode.modifiers import FLUSH, RELU, ROUNDINGS, SATURATE, Modifiers
from cupilot.device.cuda_emulated.ptx.model import Instruction

INTEGERS = ("u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64")
FLOATS = ("f32", "f64")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_BITS = {"u16": "b16", "s16": "b16", "u32": "b32", "s32": "b32", "u64": "b64", "s64": "b64"}
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_TESTS = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def bits(type_name: str) -> str:
    return _BITS.get(type_name, type_name)


def _sources(frame: Frame, ins: Instruction, type_name: str, count: int) -> dict[str, Source]:
    return {
        key: frame.source(text, type_name)
        for key, text in zip("abcd", ins.operands[1 : count + 1], strict=False)
    }


def _destination(frame: Frame, ins: Instruction) -> Reg:
    return frame.register(ins.operands[0])


def add_sub_mul_fma(frame: Frame, ins: Instruction) -> None:
    """add, sub, mul, mad, fma in all types."""
    mods = Modifiers(ins)
    type_name = mods.type(*INTEGERS, *FLOATS, *HALVES)
    op = ins.opcode[0]
    if type_name in FLOATS:
        _floating(frame, ins, mods, "fma" if op == "mad" else op, type_name)
    elif type_name in HALVES:
        _half(frame, ins, mods, op, type_name)
    else:
        _integer(frame, ins, mods, op, type_name)


def _integer(frame: Frame, ins: Instruction, mods: Modifiers, op: str, type_name: str) -> None:
    carry_out = mods.has("cc")
    part = mods.must("lo", "hi", "wide") if op in ("mul", "mad") else None
    mods.done()
    if carry_out:
        return _carry(frame, ins, op, part, type_name, take=False, give=True)
    count = 3 if op == "mad" else 2
    sources = _sources(frame, ins, type_name, count)
    if part == "wide" and op == "mad":
        sources["c"] = frame.source(ins.operands[3], _WIDER[type_name])
    name = op if part is None else f"{op}.{part}"
    kind = type_name if part in ("hi", "wide") else bits(type_name)
    frame.builder.emit(f"{name}.{kind}", dst=_destination(frame, ins), **sources)
    return None


def carry(frame: Frame, ins: Instruction) -> None:
    """addc, subc, madc: take the carry in, with .cc give one out."""
    mods = Modifiers(ins)
    type_name = mods.type("u32", "s32", "u64", "s64")
    give = mods.has("cc")
    op = ins.opcode[0][:-1]
    part = mods.must("lo", "hi") if op == "mad" else None
    mods.done()
    _carry(frame, ins, op, part, type_name, take=True, give=give)


def _carry(
    frame: Frame, ins: Instruction, op: str, part: str | None, type_name: str, *, take: bool, give: bool
) -> None:
    sources = _sources(frame, ins, type_name, 3 if op == "mad" else 2)
    if part == "hi" and type_name[0] == "s":
        raise frame.fail("signed high half with carry")
    kind = f"u{type_name[1:]}" if part == "hi" else bits(type_name)
    name = op if part is None else f"{op}.{part}"
    frame.builder.emit(f"{name}.carry.{kind}", dst=_destination(frame, ins), x=take | give << 1, **sources)


def _floating(frame: Frame, ins: Instruction, mods: Modifiers, op: str, type_name: str) -> None:
    rounding = ROUNDINGS[mods.one_of(*ROUNDINGS) or "rn"]
    flush, saturate = mods.has("ftz"), mods.has("sat")
    mods.done()
    sources = _sources(frame, ins, type_name, 3 if op == "fma" else 2)
    if rounding or saturate:
        sources.setdefault("c", sources["b"])
        flags = rounding | flush * FLUSH | saturate * SATURATE
        frame.builder.emit(f"{op}.{type_name}.x", dst=_destination(frame, ins), x=flags, **sources)
    else:
        name = f"{op}.ftz.{type_name}" if flush else f"{op}.{type_name}"
        frame.builder.emit(name, dst=_destination(frame, ins), **sources)


def _half(frame: Frame, ins: Instruction, mods: Modifiers, op: str, type_name: str) -> None:
    mods.skip("rn")
    flags = mods.has("ftz") * FLUSH | mods.has("sat") * SATURATE | mods.has("relu") * RELU
    mods.done()
    sources = _sources(frame, ins, "b32", 3 if op in ("fma", "mad") else 2)
    frame.builder.emit(f"{op}.{type_name}", dst=_destination(frame, ins), x=flags, **sources)


def divide(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type("u16", "s16", "u32", "s32", "u64", "s64", *FLOATS)
    if type_name not in FLOATS:
        mods.done()
        frame.builder.emit(
            f"div.{type_name}", dst=_destination(frame, ins), **_sources(frame, ins, type_name, 2)
        )
    elif (approximate := mods.one_of("approx", "full")) is not None:
        flush = mods.has("ftz")
        mods.done()
        frame.builder.emit(
            f"div.{approximate}.{type_name}", dst=_destination(frame, ins), x=flush * FLUSH,
            **_sources(frame, ins, type_name, 2),
        )  # fmt: skip
    else:
        _floating(frame, ins, mods, "div", type_name)


def root_or_reciprocal(frame: Frame, ins: Instruction) -> None:
    """sqrt, rcp, rsqrt: exact with a rounding mode, or .approx."""
    mods = Modifiers(ins)
    type_name = mods.type(*FLOATS)
    op = ins.opcode[0]
    flush = mods.has("ftz")
    source = frame.source(ins.operands[1], type_name)
    if mods.has("approx"):
        mods.done()
        name = "rsqrt.coarse" if op == "rsqrt" and type_name == "f64" and flush else f"{op}.approx"
        frame.builder.emit(f"{name}.{type_name}", dst=_destination(frame, ins), a=source, x=flush * FLUSH)
        return
    rounding = ROUNDINGS[mods.must(*ROUNDINGS)]
    mods.done()
    if rounding or flush:
        flags = rounding | flush * FLUSH
        frame.builder.emit(
            f"{op}.{type_name}.x", dst=_destination(frame, ins), a=source, b=source, c=source, x=flags
        )
    else:
        frame.builder.emit(f"{op}.{type_name}", dst=_destination(frame, ins), a=source)


def approximate(frame: Frame, ins: Instruction) -> None:
    """sin, cos, lg2, ex2, tanh."""
    mods = Modifiers(ins)
    type_name = mods.type("f32", *HALVES)
    mods.must("approx")
    flush = mods.has("ftz")
    mods.done()
    frame.builder.emit(
        f"{ins.opcode[0]}.approx.{type_name}", dst=_destination(frame, ins),
        a=frame.source(ins.operands[1], "f32"), x=flush * FLUSH,
    )  # fmt: skip


def unary(frame: Frame, ins: Instruction) -> None:
    """neg, abs, not, cnot, popc, clz, brev, bfind."""
    mods = Modifiers(ins)
    type_name = mods.type(*INTEGERS, *FLOATS, *HALVES, "pred")
    op = ins.opcode[0]
    if type_name == "pred":
        return frame.builder.emit(
            "pred", dst=frame.predicate(ins.operands[0]), a=frame.predicate(ins.operands[1]), x=4
        )
    if mods.has("shiftamt"):
        op += ".shiftamt"
    if type_name == "f32" and mods.has("ftz"):
        op += ".ftz"
    mods.done()
    operand_type = "b32" if type_name in HALVES else type_name
    return frame.builder.emit(
        f"{op}.{type_name}", dst=_destination(frame, ins), a=frame.source(ins.operands[1], operand_type)
    )


def logic(frame: Frame, ins: Instruction) -> None:
    """and, or, xor on registers and predicates."""
    mods = Modifiers(ins)
    type_name = mods.type("pred", "b16", "b32", "b64")
    mods.done()
    if type_name == "pred":
        target = frame.predicate(ins.operands[0])
        a, b = (frame.predicate_source(text) for text in ins.operands[1:])
        which = {"and": 1, "or": 2, "xor": 3}[ins.opcode[0]]
        frame.builder.emit("pred", dst=target, a=a, b=b, x=which)
    else:
        frame.builder.emit(
            f"{ins.opcode[0]}.{type_name}", dst=_destination(frame, ins), **_sources(frame, ins, type_name, 2)
        )


def minimum_maximum(frame: Frame, ins: Instruction) -> None:
    """Of two values, or of three (from sm_100 on)."""
    mods = Modifiers(ins)
    type_name = mods.type("u16", "s16", "u32", "s32", "u64", "s64", *FLOATS, *HALVES)
    op = ins.opcode[0]
    flush, nan = mods.has("ftz"), mods.has("NaN")
    mods.done()
    halves = type_name in HALVES
    quality = (".ftz" if flush and not halves else "") + (".NaN" if nan else "")
    name, x = f"{op}{quality}.{type_name}", flush * FLUSH if halves else 0
    target = _destination(frame, ins)
    first, *others = (frame.source(text, "b32" if halves else type_name) for text in ins.operands[1:])
    for other in others[:-1]:
        between = frame.builder.reg(target.wide)
        frame.builder.emit(name, dst=between, a=first, b=other, x=x)
        first = between
    frame.builder.emit(name, dst=target, a=first, b=others[-1], x=x)


def plain(frame: Frame, ins: Instruction) -> None:
    """Name and operand types say everything: rem, sad, mul24, mad24, dp4a, copysign, prmt, shf."""
    parts = ins.opcode
    type_name = parts[-1]
    frame.builder.emit(
        ".".join(parts),
        dst=_destination(frame, ins),
        **_sources(frame, ins, type_name, len(ins.operands) - 1),
    )


def bit_field(frame: Frame, ins: Instruction) -> None:
    """bfe and bfi: position and length are 32-bit whatever the type."""
    mods = Modifiers(ins)
    type_name = mods.type("u32", "s32", "u64", "s64", "b32", "b64")
    mods.done()
    values = 1 if ins.opcode[0] == "bfe" else 2
    kinds = [type_name] * values + ["u32", "u32"]
    sources = {
        key: frame.source(text, kind)
        for key, text, kind in zip("abcd", ins.operands[1:], kinds, strict=False)
    }
    frame.builder.emit(f"{ins.opcode[0]}.{type_name}", dst=_destination(frame, ins), **sources)


def shift(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*INTEGERS)
    mods.done()
    kind = bits(type_name) if ins.opcode[0] == "shl" else type_name.replace("b", "u")
    frame.builder.emit(
        f"{ins.opcode[0]}.{kind}", dst=_destination(frame, ins), a=frame.source(ins.operands[1], type_name),
        b=frame.source(ins.operands[2], "u32"),
    )  # fmt: skip


def lop3(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    mods.type("b32")
    mods.done()
    table = frame.source(ins.operands[4], "u32")
    if not isinstance(table, Const):
        raise frame.fail("a table that is not constant")
    sources = _sources(frame, ins, "b32", 3)
    frame.builder.emit("lop3.b32", dst=_destination(frame, ins), x=table.value & 0xFF, **sources)


def select(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*INTEGERS, *FLOATS, "f16", "bf16")
    mods.done()
    frame.builder.emit(
        "selp.b64" if is_wide(type_name) else "selp.b32", dst=_destination(frame, ins),
        a=frame.source(ins.operands[1], type_name), b=frame.source(ins.operands[2], type_name),
        c=frame.predicate(ins.operands[3]),
    )  # fmt: skip


def select_by_sign(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    condition, type_name = (
        mods.type("s32", "f32"),
        mods.type("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"),
    )
    mods.done()
    frame.builder.emit(
        f"slct.{'b64' if is_wide(type_name) else 'b32'}.{condition}", dst=_destination(frame, ins),
        a=frame.source(ins.operands[1], type_name), b=frame.source(ins.operands[2], type_name),
        c=frame.source(ins.operands[3], condition),
    )  # fmt: skip


def test_property(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*FLOATS)
    which = _TESTS.index(mods.must(*_TESTS))
    mods.done()
    frame.builder.emit(
        f"testp.{type_name}",
        dst=frame.predicate(ins.operands[0]),
        a=frame.source(ins.operands[1], type_name),
        x=which,
    )
