"""mma.sync, wmma, ldmatrix and stmatrix: dense, in f16, bf16, tf32, f64 and 8-bit integers."""

from __future__ import annotations

import re

from cupilot.device.cuda_emulated.encode.builder import NONE, Operand, Source
from cupilot.device.cuda_emulated.encode.frame import Frame, is_wide
from cupilot.device.cuda_emulated.encode.modifiers import Modifiers
from cupilot.device.cuda_emulated.encode.moving import address_fields
from cupilot.device.cuda_emulated.ptx.model import Instruction

_ELEMENTS = {"f16": 0, "bf16": 1, "tf32": 2, "f64": 3, "s8": 4, "u8": 5, "f32": 6, "s32": 7}
_SATURATE = 1 << 16
_BY_COLUMNS = _TRANSPOSED = 1 << 4
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SHAPES = {
    "f16": ("m16n8k16", "m16n8k8"), "bf16": ("m16n8k16", "m16n8k8"), "tf32": ("m16n8k8", "m16n8k4"),
    "f64": ("m8n8k4",), "s8": ("m16n8k32", "m16n8k16", "m8n8k16"), "u8": ("m16n8k32", "m16n8k16", "m8n8k16"),
}  # fmt: skip
_SPACES = ("global", "shared", "shared::cta")


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.strip("{} ").split(",")]


def _shape(frame: Frame, ins: Instruction) -> tuple[str, int, int, int]:
    for part in ins.opcode:
        match = _SHAPE.fullmatch(part)
        if match:
            return part, int(match[1]), int(match[2]), int(match[3])
    raise frame.fail()


def _written(frame: Frame, text: str) -> list[Operand]:
    return [frame.register(item).written() for item in _items(text)]


def _read(frame: Frame, text: str, element: str) -> list[Source]:
    kind = "b64" if is_wide(element) else "b32"
    return [frame.source(item, kind) for item in _items(text)]


def multiply(frame: Frame, ins: Instruction) -> None:
    """mma.sync with dense operands: a by rows, b by columns."""
    shape, m, n, k = _shape(frame, ins)
    mods = Modifiers(ins)
    mods.must("sync")
    mods.skip("aligned", shape, "row", "col")
    if ins.opcode[:3] != ("mma", "sync", "aligned") or ins.opcode[4:6] != ("row", "col"):
        raise frame.fail()
    accumulator, b, a, result = (mods.type(*_ELEMENTS) for _ in range(4))
    saturate = mods.has("satfinite")
    mods.done()
    if shape not in _SHAPES.get(a, ()):
        raise frame.fail("shape")
    _emit(frame, ins, "mma", (a, b, accumulator, result), (m, n, k), saturate)


def _emit(
    frame: Frame, ins: Instruction, op: str, types: tuple[str, str, str, str], shape: tuple[int, int, int],
    saturate: bool,
) -> None:  # fmt: skip
    results: list[Operand] = _written(frame, ins.operands[0])
    sources = [_read(frame, text, kind) for text, kind in zip(ins.operands[1:4], types[:3], strict=True)]
    x = sum(_ELEMENTS[kind] << 4 * place for place, kind in enumerate(types)) | _SATURATE * saturate
    y = shape[0] | shape[1] << 8 | shape[2] << 16
    every: list[Operand] = [*results, *(value for group in sources for value in group)]
    counts = dict(zip("abcd", (len(results), *map(len, sources)), strict=True))
    frame.builder.emit_many(op, every, x=x, y=y, **counts)


def wmma(frame: Frame, ins: Instruction) -> None:
    shape, m, n, k = _shape(frame, ins)
    mods = Modifiers(ins)
    mods.must("sync")
    mods.skip("aligned", shape)
    if mods.has("mma"):
        mods.skip("row", "col")
        saturate = mods.has("satfinite")
        named = [part for part in ins.opcode if part in _ELEMENTS]
        # Half precision names d and c only; the others name d, a, b and c.
        d, a, b, c = (named[0], "f16", "f16", named[1]) if len(named) == 2 else named
        mods.skip(*_ELEMENTS, "rn")
        mods.done()
        return _emit(frame, ins, "wmma.mma", (a, b, c, d), (m, n, k), saturate)
    store = mods.must("load", "store") == "store"
    which = mods.must("a", "b", "c", "d")
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    by_columns = mods.must("row", "col") == "col"
    space = mods.one_of(*_SPACES) or "generic"
    element = mods.type(*_ELEMENTS)
    mods.done()
    place, registers = ins.operands[:2] if store else ins.operands[1::-1]
    values: list[Operand] = [*_read(frame, registers, element)] if store else _written(frame, registers)
    stride: Operand = frame.source(ins.operands[2], "u32") if len(ins.operands) > 2 else NONE
    _move(
        frame, f"wmma.{'store' if store else 'load'}", place, space, values, c=stride, b=len(values),
        x=_ELEMENTS[element] | _BY_COLUMNS * by_columns | rows << 8 | columns << 16,
    )  # fmt: skip
    frame.builder.note_access("shared" if space != "global" else "global", _bytes(element))
    return None


def _bytes(element: str) -> int:
    return int(element.lstrip("bfstu")) // 8 if element != "tf32" else 4


def _move(frame: Frame, op: str, place: str, space: str, values: list[Operand], **fields: Operand) -> None:
    found, address = address_fields(frame, place, space.split("::")[0])
    y = int(_number(address["y"])) | 2 * (found == "shared")
    frame.builder.emit_many(
        op, values, a=address["a"], e=address["imm"], y=y, site=frame.builder.site(), **fields
    )


def _number(value: Operand) -> int:
    assert isinstance(value, int)
    return value


def move_matrices(frame: Frame, ins: Instruction) -> None:
    """ldmatrix and stmatrix of 8 x 8 matrices of 16-bit elements."""
    mods = Modifiers(ins)
    mods.must("sync")
    mods.must("aligned")
    mods.must("m8n8")
    mods.must("b16")
    number = int(mods.must("x1", "x2", "x4")[1:])
    transposed = mods.has("trans")
    space = mods.one_of("shared", "shared::cta") or "generic"
    mods.done()
    store = ins.opcode[0] == "stmatrix"
    place, registers = ins.operands if store else ins.operands[::-1]
    values: list[Operand] = [*_read(frame, registers, "f16")] if store else _written(frame, registers)
    if len(values) != number:
        raise frame.fail(f"{len(values)} registers")
    frame.builder.note_access("shared", 16)
    _move(frame, ins.opcode[0], place, space, values, x=number | _TRANSPOSED * transposed)
