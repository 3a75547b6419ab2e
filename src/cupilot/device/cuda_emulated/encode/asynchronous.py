"""cp.async with its groups, and mbarrier. Bulk copies (TMA) and transaction counts are not there."""

from __future__ import annotations

from cupilot.device.cuda_emulated.encode.builder import NONE, Operand
from cupilot.device.cuda_emulated.encode.frame import Frame
from cupilot.device.cuda_emulated.encode.modifiers import Modifiers
from cupilot.device.cuda_emulated.encode.moving import address_fields
from cupilot.device.cuda_emulated.ptx.model import Instruction

_SIZES = (4, 8, 16)
_PARITY, _MAY_SLEEP = 1, 2
_DROPS, _STAYS = 1, 2


def copy(frame: Frame, ins: Instruction) -> None:
    """cp.async and all that begins so."""
    mods = Modifiers(ins)
    if not mods.has("async"):
        raise frame.fail()
    builder = frame.builder
    if mods.has("commit_group"):
        mods.done()
        builder.emit("cp.async.commit")
    elif mods.has("wait_group"):
        mods.done()
        builder.emit("cp.async.wait", x=int(ins.operands[0], 0))
    elif mods.has("wait_all"):
        mods.done()
        builder.emit("cp.async.wait.all")
    elif mods.has("mbarrier"):
        mods.must("arrive")
        expected = mods.has("noinc")
        mods.skip("shared", "shared::cta", "b64")
        mods.done()
        builder.emit("cp.async.arrive", **_barrier(frame, ins.operands[0]), x=int(expected))
    else:
        _issue(frame, ins, mods)


def _issue(frame: Frame, ins: Instruction, mods: Modifiers) -> None:
    mods.must("ca", "cg")
    mods.must("shared", "shared::cta")
    mods.must("global")
    mods.skip(prefixes=("L2::",))
    mods.done()
    target, source, size_text, *rest = ins.operands
    size = int(size_text, 0)
    if size not in _SIZES or len(rest) > 1:
        raise frame.fail()
    frame.builder.note_access("shared", size)
    _, origin = address_fields(frame, source, "global")
    _, place = address_fields(frame, target, "shared")
    taken: Operand = frame.source(rest[0], "u32") if rest else NONE
    frame.builder.emit(
        "cp.async", **place, b=origin["a"], e=origin["imm"], c=taken, x=size, site=frame.builder.site()
    )


def _barrier(frame: Frame, text: str) -> dict[str, Operand]:
    frame.builder.note_access("shared", 8)
    return address_fields(frame, text, "shared")[1]


def memory_barrier(frame: Frame, ins: Instruction) -> None:
    """mbarrier.*"""
    mods = Modifiers(ins)
    mods.skip("b64", "shared", "shared::cta", "release", "acquire", "relaxed", "cta")
    builder, operands = frame.builder, ins.operands
    if mods.has("init"):
        mods.done()
        builder.emit("mbarrier.init", **_barrier(frame, operands[0]), b=frame.source(operands[1], "u32"))
    elif mods.has("inval"):
        mods.done()
        builder.emit("mbarrier.inval", **_barrier(frame, operands[0]))
    elif mods.has("pending_count"):
        mods.done()
        builder.emit("mbarrier.pending", dst=frame.register(operands[0]), b=frame.source(operands[1], "u64"))
    elif (drop := mods.has("arrive_drop")) or mods.has("arrive"):
        stays = mods.has("noComplete")
        mods.done()
        count = operands[2] if len(operands) > 2 else "1"
        target: Operand = NONE if operands[0] == "_" else frame.register(operands[0])
        builder.emit(
            "mbarrier.arrive", **_barrier(frame, operands[1]), dst=target, b=frame.source(count, "u32"),
            x=_DROPS * drop | _STAYS * stays,
        )  # fmt: skip
    else:
        sleeps = mods.must("test_wait", "try_wait") == "try_wait"
        parity = mods.has("parity")
        mods.done()
        builder.emit(
            "mbarrier.test", **_barrier(frame, operands[1]), dst=frame.predicate(operands[0]),
            b=frame.source(operands[2], "u32" if parity else "u64"), x=_PARITY * parity | _MAY_SLEEP * sleeps,
        )  # fmt: skip
