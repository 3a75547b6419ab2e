"""Comparisons into predicates and values, and conversions between types."""

from __future__ import annotations

from cupilot.device.cuda_emulated.encode.arithmetic import HALVES
from cupilot.device.cuda_emulated.encode.builder import NONE, Reg, Source
from cupilot.device.cuda_emulated.encode.frame import Frame, is_wide
from cupilot.device.cuda_emulated.encode.modifiers import FLUSH, INTEGER, RELU, ROUNDINGS, SATURATE, Modifiers
from cupilot.device.cuda_emulated.ptx.model import Instruction

_COMPARISONS = (
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
    "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
)  # fmt: skip
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE = {"and": 1, "or": 2, "xor": 3}
_TRUE = {"f32": 0x3F800000, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f16": 0x3C00, "bf16": 0x3F80,
         "u16": 0xFFFF, "s16": 0xFFFF}  # fmt: skip
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def set_predicate(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type()
    low, _, high = ins.operands[0].partition("|")
    targets = [
        frame.predicate(name.strip()) if name.strip() not in ("", "_") else NONE for name in (low, high)
    ]
    combine = mods.one_of(*_COMBINE)
    other = frame.predicate(ins.operands[3]) if combine else NONE
    _compare(frame, ins, mods, type_name, targets, _COMBINE.get(combine or "", 0), other)


def _compare(
    frame: Frame,
    ins: Instruction,
    mods: Modifiers,
    type_name: str,
    targets: list[int],
    combine: int,
    other: int,
) -> None:
    comparison = mods.must(*_COMPARISONS)
    flush = type_name == "f32" and mods.has("ftz")
    mods.done()
    if type_name[0] == "b" and type_name[1:] in _SIZES:
        type_name = f"u{type_name[1:]}"
    if comparison in _UNSIGNED_NAMES:
        comparison, type_name = _UNSIGNED_NAMES[comparison], f"u{type_name[1:]}"
    operand_type = "b32" if type_name in HALVES else type_name
    a, b = (frame.source(text, operand_type) for text in ins.operands[1:3])
    if flush:
        a, b = _flushed(frame, a), _flushed(frame, b)
    frame.builder.emit(
        f"setp.{comparison}.{type_name}", dst=targets[0], d=targets[1], a=a, b=b, c=other, x=combine
    )


def _flushed(frame: Frame, value: Source) -> Reg:
    temporary = frame.builder.reg(False)
    frame.builder.assist("flush.f32", dst=temporary, a=value)
    return temporary


def set_value(frame: Frame, ins: Instruction) -> None:
    """set: ones, or 1.0, where the comparison holds."""
    mods = Modifiers(ins)
    type_name, result = mods.type(), mods.type(*_TRUE, "f16x2", "bf16x2")
    combine = mods.one_of(*_COMBINE)
    other = frame.predicate(ins.operands[3]) if combine else NONE
    low, high = frame.builder.predicate(), frame.builder.predicate()
    _compare(frame, ins, mods, type_name, [low, high], _COMBINE.get(combine or "", 0), other)
    target = frame.register(ins.operands[0])
    if type_name not in ("f16x2", "bf16x2"):
        if result not in _TRUE:
            raise frame.fail()
        return frame.builder.emit("set.b32", dst=target, a=low, imm=_TRUE[result])
    one = 0xFFFF if result in ("u32", "s32") else _TRUE[result.removesuffix("x2")]
    halves = [frame.builder.reg(False), frame.builder.reg(False)]
    for register, predicate, value in zip(halves, (low, high), (one, one << 16), strict=True):
        frame.builder.emit("set.b32", dst=register, a=predicate, imm=value)
    return frame.builder.emit("or.b32", dst=target, a=halves[0], b=halves[1])


# Conversions that need neither rounding mode nor saturation, on whole vectors at once.
_NOW = frozenset({
    "f32.s32", "f32.u32", "f64.f32", "f32.f64", "f64.s32", "f64.u32", "s64.s32", "u64.u32", "f16.f32",
    "f32.f16", "bf16.f32", "f32.bf16", "f16x2.f32", "bf16x2.f32",
})  # fmt: skip
_TYPES = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64")
_TO_WHOLE = {"rni": 0, "rzi": 1, "rmi": 2, "rpi": 3}


def convert(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    source_type = mods.type(*_TYPES)
    target_type = mods.type(*_TYPES, "f16x2", "bf16x2", "tf32")
    flush, saturate, relu = mods.has("ftz"), mods.has("sat"), mods.has("relu")
    whole = mods.one_of(*_TO_WHOLE)
    rounding = mods.one_of(*ROUNDINGS, "rna")
    mods.done()
    pair = f"{target_type}.{source_type}"
    if target_type == "tf32":
        if saturate or relu or rounding not in ("rna", "rn"):
            raise frame.fail()
        return frame.builder.emit(
            f"cvt.{rounding}.{pair}",
            dst=frame.register(ins.operands[0]),
            a=frame.source(ins.operands[1], "f32"),
        )
    if rounding == "rna":
        raise frame.fail()
    mode = _TO_WHOLE[whole] if whole else ROUNDINGS[rounding or "rn"]
    flags = mode | flush * FLUSH | saturate * SATURATE | (whole is not None) * INTEGER | relu * RELU
    if target_type in ("f16x2", "bf16x2"):
        a, b = (frame.source(text, "f32") for text in ins.operands[1:3])
        name = f"cvt.{pair}" if flags else f"cvt.now.{pair}"
        return frame.builder.emit(name, dst=frame.register(ins.operands[0]), a=a, b=b, x=flags)
    source = frame.source(ins.operands[1], source_type)
    chop = whole == "rzi" and not flush and not saturate and pair in ("s32.f32", "u32.f32")
    name = f"cvt.now.{pair}" if (pair in _NOW and not flags) or chop else f"cvt.{pair}"
    target = frame.register(ins.operands[0])
    emit_narrow(frame, target, frame.type_of(ins.operands[0]), target_type, name, a=source, x=flags)
    return None


def emit_narrow(
    frame: Frame, target: Reg, declared: str, type_name: str, name: str, **fields: Source | int
) -> None:
    """Emit an operation of a type that may be narrower than its destination, and extend the result."""
    builder = frame.builder
    if target.wide and not is_wide(type_name):
        narrow = builder.reg(False)
        builder.emit(name, dst=narrow, **fields)
        extend = f"sext{type_name[1:]}.b64" if type_name[0] == "s" else "zext.b64"
        builder.assist(extend, dst=target, a=narrow)
    elif is_wide(type_name) and not target.wide:
        wide = builder.reg(True)
        builder.emit(name, dst=wide, **fields)
        builder.assist("cvt.now.u32.u64", dst=target, a=wide)
    else:
        builder.emit(name, dst=target, **fields)
        if type_name == "s8":
            builder.assist("sext8.b16" if declared.endswith("16") else "sext8.b32", dst=target, a=target)
        elif type_name == "s16" and declared.endswith("32"):
            builder.assist("sext16.b32", dst=target, a=target)
