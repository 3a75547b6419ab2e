"""Moves, loads, stores, atomics, and conversions between address spaces."""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.device.cuda_emulated.encode.arithmetic import bits
from cupilot.device.cuda_emulated.encode.builder import NONE, Const, Operand, Reg, Source
from cupilot.device.cuda_emulated.encode.comparing import emit_narrow
from cupilot.device.cuda_emulated.encode.frame import LOCAL_WINDOW, SHARED_WINDOW, Frame, is_wide
from cupilot.device.cuda_emulated.encode.modifiers import Modifiers
from cupilot.device.cuda_emulated.ptx.model import Instruction

_TYPES = (
    "b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16", "b32", "u32", "s32", "f32", "f16x2", "bf16x2",
    "b64", "u64", "s64", "f64",
)  # fmt: skip
_SPACES = ("global", "shared", "shared::cta", "local", "const", "param", "param::entry", "param::func")
_CACHING = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "cta", "gpu", "sys", "cluster", "unified")
_CACHING_PREFIXES = ("L1::", "L2::")
_STRONG, _ACQUIRE, _RELEASE = 1, 2, 4  # of native/memory.cpp
_WINDOWS = {"shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "local": LOCAL_WINDOW}
_PARTS = ("dst", "c", "d", "e")
_IS_SPACE: Mapping[str, int] = {"shared": 0, "local": 1, "global": 2}


def _bytes(type_name: str) -> int:
    return 4 if type_name.endswith("x2") else int(type_name.lstrip("bfsu")) // 8


def move(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*_TYPES, "pred")
    mods.done()
    target, source = ins.operands
    if type_name == "pred":
        frame.builder.emit("pred", dst=frame.predicate(target), a=frame.predicate_source(source), x=0)
    elif source.startswith("{"):
        _pack(frame, target, _items(source))
    elif target.startswith("{"):
        _unpack(frame, _items(target), source)
    else:
        register = frame.register(target)
        if register.wide != is_wide(type_name):
            raise frame.fail("a register of another width")
        kind = "b64" if register.wide else "b32"
        frame.builder.emit(f"mov.{kind}", dst=register, a=frame.source(source, type_name))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.strip("{} ").split(",")]


def _pack(frame: Frame, target: str, items: list[str]) -> None:
    register, builder = frame.register(target), frame.builder
    declared = [frame.type_of(item) if frame.is_register(item) else "" for item in items]
    narrow = any(name.endswith("16") for name in declared) or len(items) == 4
    parts: list[Source] = [frame.source(item, "b16" if narrow else "b32") for item in items]
    if len(items) == 4 and register.wide:
        low, high = builder.reg(False), builder.reg(False)
        builder.emit("pack.16x2", dst=low, a=parts[0], b=parts[1])
        builder.assist("pack.16x2", dst=high, a=parts[2], b=parts[3])
        builder.assist("pack.32x2", dst=register, a=low, b=high)
    elif len(items) == 2:
        builder.emit("pack.32x2" if register.wide else "pack.16x2", dst=register, a=parts[0], b=parts[1])
    else:
        raise frame.fail()


def _unpack(frame: Frame, items: list[str], text: str) -> None:
    wide = len(items) == 4 or any(
        frame.is_register(item) and frame.type_of(item).endswith("32") for item in items
    )
    source = frame.source(text, "b64" if wide else "b32")
    size = (64 if wide else 32) // len(items)
    if size not in (16, 32):
        raise frame.fail()
    copies = source
    targets = [frame.register(item) for item in items if item != "_"]
    if isinstance(source, Reg) and source.number in [t.number for t in targets[:-1]]:
        copies = frame.builder.reg(source.wide)
        frame.builder.assist("mov.b64" if wide else "mov.b32", dst=copies, a=source)
    for position, item in enumerate(items):
        if item != "_":
            name = f"unpack.{'b64' if wide else 'b32'}.{size}"
            frame.builder.emit(name, dst=frame.register(item), a=copies, x=position * size)


def convert_address(frame: Frame, ins: Instruction) -> None:
    """cvta: shared and local addresses get or lose their window; global, constant and parameter ones stay."""
    mods = Modifiers(ins)
    mods.type("u64")
    to = mods.has("to")
    space = mods.must(*_SPACES)
    mods.done()
    source = frame.source(ins.operands[1], "u64")
    target = frame.register(ins.operands[0])
    if space in _WINDOWS:
        window = Const(_WINDOWS[space], True)
        frame.builder.emit("sub.b64" if to else "add.b64", dst=target, a=source, b=window)
    else:
        frame.builder.emit("mov.b64", dst=target, a=source)


def is_space(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    space = mods.must(*_IS_SPACE)
    mods.done()
    frame.builder.emit(
        "isspacep",
        dst=frame.predicate(ins.operands[0]),
        a=frame.source(ins.operands[1], "u64"),
        x=_IS_SPACE[space],
    )


def address_fields(frame: Frame, text: str, space: str) -> tuple[str, dict[str, Operand]]:
    """The space an access goes to (symbols know theirs) and the fields of its address."""
    base, displacement = frame.memory(text)
    if frame.is_register(base):
        register = frame.register(base)
        if space not in ("shared", "local") and not register.wide:
            raise frame.fail("a 32-bit address")
        return space, {"a": register, "imm": displacement, "y": int(register.wide)}
    if base[0] == "-" or base[0].isdigit():
        return space, {"a": Const(int(base, 0), True), "imm": displacement, "y": 1}
    found, address = frame.address(base)
    if space == "generic" and found in ("shared", "local"):
        space = found
    return space, {"a": Const(address, True), "imm": displacement, "y": 1}


def _space(mods: Modifiers) -> str:
    """const and param live in global buffers that cannot be written."""
    named = mods.one_of(*_SPACES) or "generic"
    named = named.split("::")[0]
    return "global" if named in ("const", "param") else named


def _order(mods: Modifiers, frame: Frame) -> int:
    named = mods.one_of("volatile", "relaxed", "acquire", "release", "mmio")
    if named is None:
        return 0
    frame.builder.waits |= named != "release"
    frame.builder.synchronises |= named in ("acquire", "release")
    return _STRONG | _ACQUIRE * (named == "acquire") | _RELEASE * (named == "release")


def load(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*_TYPES)
    if ins.opcode[1].startswith("param") and _parameter_load(frame, ins, type_name):
        return
    order = _order(mods, frame)
    mods.skip(*_CACHING, prefixes=_CACHING_PREFIXES)
    vector = mods.one_of("v2", "v4")
    space, address = address_fields(frame, ins.operands[1], _space(mods))
    mods.done()
    size = _bytes(type_name)
    frame.builder.note_access(space, size)
    name = f"ld.{space}{'.' + vector if vector else ''}.b{8 * size}"
    fields: dict[str, Operand] = {**address, "x": order, "site": frame.builder.site()}
    items = _items(ins.operands[0])
    if vector is None:
        target = frame.register(items[0])
        emit_narrow(frame, target, frame.type_of(items[0]), type_name, name, **fields)
        return
    _load_vector(frame, items, type_name, name, fields)


def _load_vector(
    frame: Frame, items: list[str], type_name: str, name: str, fields: dict[str, Operand]
) -> None:
    loaded: dict[str, Reg] = {}
    for part, item in zip(_PARTS, items, strict=False):
        if item != "_":
            target = frame.register(item)
            loaded[part] = (
                target if target.wide == is_wide(type_name) else frame.builder.reg(is_wide(type_name))
            ).written()
    frame.builder.emit(name, **{**fields, **loaded})
    for part, item in zip(_PARTS, items, strict=False):
        if item != "_":
            got = Reg(loaded[part].number, loaded[part].wide)
            _settle(frame, frame.register(item), frame.type_of(item), type_name, got)


def _settle(frame: Frame, target: Reg, declared: str, type_name: str, got: Reg) -> None:
    """A loaded value into the register that wants it, extended."""
    if target.wide and not got.wide:
        name = f"sext{type_name[1:]}.b64" if type_name[0] == "s" else "zext.b64"
        frame.builder.assist(name, dst=target, a=got)
    elif type_name == "s8":
        name = "sext8.b16" if declared.endswith("16") else "sext8.b32"
        frame.builder.assist(name, dst=target, a=got)
    elif type_name == "s16" and declared.endswith("32"):
        frame.builder.assist("sext16.b32", dst=target, a=got)


def _parameter_load(frame: Frame, ins: Instruction, type_name: str) -> bool:
    """Parameters by name: the kernel's own are constants of the launch, a called function's are registers."""
    base, displacement = frame.memory(ins.operands[1])
    if frame.is_register(base):
        return False
    items = _items(ins.operands[0])
    step = _bytes(type_name)
    held = frame.parameter(base)
    for position, item in enumerate(items):
        offset = displacement + position * step
        if item == "_":
            continue
        target, declared = frame.register(item), frame.type_of(item)
        if held is None:
            if base not in frame.entry_parameters:
                raise frame.fail(f"unknown parameter {base}")
            at = frame.entry_parameters[base] + offset
            emit_narrow(frame, target, declared, type_name, f"ld.param.b{8 * step}", imm=at)
            continue
        if offset not in held or _bytes(held[offset][0]) != step:
            raise frame.fail("a parameter read in other pieces than it was written")
        emit_narrow(
            frame, target, declared, type_name, f"mov.b{64 if is_wide(type_name) else 32}", a=held[offset][1]
        )
    return True


def store(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type(*_TYPES)
    values = _items(ins.operands[1])
    if ins.opcode[1].startswith("param"):
        return _parameter_store(frame, ins, type_name, values)
    order = _order(mods, frame)
    mods.skip(*_CACHING, prefixes=_CACHING_PREFIXES)
    vector = mods.one_of("v2", "v4")
    space, address = address_fields(frame, ins.operands[0], _space(mods))
    mods.done()
    size = _bytes(type_name)
    frame.builder.note_access(space, size)
    sources = {part: frame.source(value, type_name) for part, value in zip(_PARTS, values, strict=False)}
    # A store's first value is read, not written: it may not look like a destination.
    first = sources.pop("dst")
    fields: dict[str, Operand] = {**address, **sources, "x": order, "site": frame.builder.site(), "b": first}
    name = f"st.{space}{'.' + vector if vector else ''}.b{8 * size}"
    return frame.builder.emit(name, **fields)


def _parameter_store(frame: Frame, ins: Instruction, type_name: str, values: list[str]) -> None:
    base, displacement = frame.memory(ins.operands[0])
    held = frame.parameter(base)
    if held is None:
        raise frame.fail(f"unknown parameter {base}")
    for position, value in enumerate(values):
        offset = displacement + position * _bytes(type_name)
        # One register per piece, whichever of several paths stores it.
        known = held.get(offset)
        register = known[1] if known is not None else frame.builder.reg(is_wide(type_name))
        if not isinstance(register, Reg) or register.wide != is_wide(type_name):
            raise frame.fail("a parameter written in different pieces")
        source = frame.source(value, type_name)
        frame.builder.emit("mov.b64" if is_wide(type_name) else "mov.b32", dst=register, a=source)
        held[offset] = (type_name, register)


_ATOMIC = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def atomic(frame: Frame, ins: Instruction) -> None:
    """atom and red."""
    mods = Modifiers(ins)
    type_name = mods.type(*_TYPES)
    returns = ins.opcode[0] == "atom"
    mods.skip("cta", "gpu", "sys", "cluster", "noftz", prefixes=_CACHING_PREFIXES)
    named = mods.one_of("relaxed", "acquire", "release", "acq_rel")
    frame.builder.synchronises |= named not in (None, "relaxed")
    operation = mods.must(*_ATOMIC)
    space = _space(mods)
    mods.done()
    operands = ins.operands if returns else ("_", *ins.operands)
    target, place, value, *rest = operands
    space, address = address_fields(frame, place, space)
    frame.builder.note_access(space, _bytes(type_name))
    frame.builder.waits |= returns
    if operation in ("and", "or", "xor", "exch", "cas"):
        type_name = bits(type_name)
    kind = "b32" if type_name in ("f16x2", "bf16x2") else type_name
    fields: dict[str, Operand] = {
        **address, "b": frame.source(value, kind), "site": frame.builder.site(),
        "x": _STRONG | _ACQUIRE * (named in ("acquire", "acq_rel"))
        | _RELEASE * (named in ("release", "acq_rel")),
        "dst": NONE if target == "_" else frame.register(target),
    }  # fmt: skip
    if rest:
        fields["c"] = frame.source(rest[0], kind)
    if space == "shared":
        fields["y"] = int(fields["y"]) | 2  # type: ignore[arg-type]
    frame.builder.emit(f"atom.{operation}.{type_name}", **fields)
