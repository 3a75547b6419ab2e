"""Branches, calls into the system, barriers, fences, and what the lanes of a warp do together."""

from __future__ import annotations

from cupilot.device.cuda_emulated.encode.builder import NONE, Operand
from cupilot.device.cuda_emulated.encode.frame import Frame
from cupilot.device.cuda_emulated.encode.modifiers import Modifiers
from cupilot.device.cuda_emulated.ptx.model import Instruction

_SHUFFLES = {"down": 0, "up": 1, "bfly": 2, "idx": 3}
_VOTES = {"any": 0, "all": 1, "uni": 2, "ballot": 3}
_REDUCTIONS = {"popc": 0, "and": 1, "or": 2}


def branch(frame: Frame, ins: Instruction) -> None:
    target = frame.prefix + ins.operands[0]
    if ins.guard:
        frame.builder.jump("bra.if", target, a=frame.predicate(ins.guard))
    else:
        frame.builder.jump("bra", target)


def jump_table(frame: Frame, ins: Instruction, labels: tuple[str, ...]) -> None:
    """brx.idx as a chain of comparisons."""
    index = frame.source(ins.operands[0], "u32")
    for number, label in enumerate(labels[:-1]):
        matches = frame.builder.predicate()
        frame.builder.emit(
            "setp.eq.u32", dst=matches, d=NONE, a=index, b=frame.source(str(number), "u32"), c=NONE
        )
        frame.builder.jump("bra.if", frame.prefix + label, a=matches)
    frame.builder.jump("bra", frame.prefix + labels[-1])


def leave(frame: Frame, ins: Instruction) -> None:
    frame.builder.emit("exit")


def trap(frame: Frame, ins: Instruction) -> None:
    frame.builder.emit("trap")


def nothing(frame: Frame, ins: Instruction) -> None:
    """Prefetches and hints move no values."""
    frame.builder.emit("nop")


def pause(frame: Frame, ins: Instruction) -> None:
    frame.builder.waits = True
    frame.builder.emit("nanosleep")


def barrier(frame: Frame, ins: Instruction) -> None:
    """bar.sync, bar.arrive, bar.red, bar.warp.sync, and their barrier{.cta} forms."""
    mods = Modifiers(ins)
    mods.skip("cta")
    if mods.has("warp"):
        mods.must("sync")
        mods.done()
        return frame.builder.emit("bar.warp.sync", e=frame.source(ins.operands[0], "b32"))
    aligned = mods.has("aligned") or ins.opcode[0] == "bar"
    action = mods.must("sync", "arrive", "red")
    if action == "red":
        return _reduce(frame, ins, mods)
    mods.done()
    count: Operand = frame.source(ins.operands[1], "u32") if len(ins.operands) > 1 else NONE
    number = frame.source(ins.operands[0], "u32")
    return frame.builder.emit(f"bar.{action}", a=number, b=count, y=int(aligned))


def _reduce(frame: Frame, ins: Instruction, mods: Modifiers) -> None:
    mods.type("u32", "pred")
    which = mods.must(*_REDUCTIONS)
    mods.skip("aligned")
    mods.done()
    number = frame.source(ins.operands[1], "u32")
    count: Operand = frame.source(ins.operands[2], "u32") if len(ins.operands) > 3 else NONE
    frame.builder.emit("bar.red.arrive", a=number, b=count, c=frame.predicate(ins.operands[-1]), y=1)
    target: Operand = frame.register(ins.operands[0]) if which == "popc" else frame.predicate(ins.operands[0])
    frame.builder.emit("bar.red.read", dst=target, a=number, x=_REDUCTIONS[which])


def fence(frame: Frame, ins: Instruction) -> None:
    wide = not {"cta", "proxy", "mbarrier_init"} & set(ins.opcode)
    frame.builder.synchronises |= wide
    frame.builder.emit("fence", x=int(wide))


def shuffle(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    mods.type("b32")
    mods.must("sync")
    mode = _SHUFFLES[mods.must(*_SHUFFLES)]
    mods.done()
    target, _, predicate = ins.operands[0].partition("|")
    frame.builder.emit(
        "shfl.sync.b32", dst=frame.register(target.strip()), a=frame.source(ins.operands[1], "b32"),
        b=frame.source(ins.operands[2], "b32"), d=frame.source(ins.operands[3], "b32"),
        e=frame.source(ins.operands[4], "b32"), x=mode,
        c=frame.predicate(predicate.strip()) if predicate.strip() not in ("", "_") else NONE,
    )  # fmt: skip


def vote(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    mods.type("pred", "b32")
    mods.must("sync")
    which = mods.must(*_VOTES)
    mods.done()
    target: Operand = (
        frame.register(ins.operands[0]) if which == "ballot" else frame.predicate(ins.operands[0])
    )
    frame.builder.emit(
        "vote.sync", dst=target, a=frame.predicate_source(ins.operands[1]),
        e=frame.source(ins.operands[2], "b32"), x=_VOTES[which],
    )  # fmt: skip


def match(frame: Frame, ins: Instruction) -> None:
    mods = Modifiers(ins)
    type_name = mods.type("b32", "b64")
    mods.must("sync")
    which = mods.must("any", "all")
    mods.done()
    target, _, predicate = ins.operands[0].partition("|")
    frame.builder.emit(
        f"match.{which}.sync.{type_name}", dst=frame.register(target.strip()),
        a=frame.source(ins.operands[1], type_name), e=frame.source(ins.operands[2], "b32"),
        c=frame.predicate(predicate.strip()) if predicate.strip() not in ("", "_") else NONE,
    )  # fmt: skip


def reduce_warp(frame: Frame, ins: Instruction) -> None:
    frame.builder.emit(
        ".".join(ins.opcode), dst=frame.register(ins.operands[0]), a=frame.source(ins.operands[1], "b32"),
        e=frame.source(ins.operands[2], "b32"),
    )  # fmt: skip


def elect(frame: Frame, ins: Instruction) -> None:
    target, _, predicate = ins.operands[0].partition("|")
    frame.builder.emit(
        "elect.sync", dst=NONE if target.strip() == "_" else frame.register(target.strip()),
        c=frame.predicate(predicate.strip()), e=frame.source(ins.operands[1], "b32"),
    )  # fmt: skip


def active_mask(frame: Frame, ins: Instruction) -> None:
    frame.builder.emit("activemask.b32", dst=frame.register(ins.operands[0]))
