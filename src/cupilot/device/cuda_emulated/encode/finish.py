"""From a filled builder to a program: registers to offsets, labels to positions, names to numbers."""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.device.cuda_emulated.encode.builder import NONE, SLOT_BYTES, Builder, Const, Operand, Reg, signed
from cupilot.device.cuda_emulated.encode.liveness import allocate
from cupilot.device.cuda_emulated.encode.program import Program, record_array

_REGISTER_FIELDS = ("dst", "a", "b", "c", "d", "e")
_LOW = 0xFFFFFFFF


def finish(
    builder: Builder, entry: str, parameters: tuple[tuple[int, int], ...], max_threads: int | None
) -> Program:
    slots, slot_count = allocate(builder)
    constants: list[int] = []
    places: dict[Const, int] = {}
    for emitted in builder.code:
        for value in (*emitted.fields.values(), *emitted.extra):
            if isinstance(value, Const) and value not in places:
                places[value] = len(constants) // 2
                low, high = value.value & _LOW, value.value >> 32 & _LOW
                constants += [low, high, low, high] if value.wide else [low, low]
    base = len(constants) // 2

    def offset(value: Operand) -> int:
        if isinstance(value, Reg):
            return (base + slots[value.number]) * SLOT_BYTES
        return places[value] * SLOT_BYTES if isinstance(value, Const) else value & _LOW

    names: dict[str, int] = {}
    extra: list[int] = []
    rows: list[Mapping[str, int]] = []
    sites = [0] * builder.site_count
    for position, emitted in enumerate(builder.code):
        row = dict.fromkeys(_REGISTER_FIELDS, NONE)
        row |= {name: offset(value) for name, value in emitted.fields.items() if name != "imm"}
        row["op"] = names.setdefault(emitted.op, len(names))
        row["imm"] = signed(int(emitted.fields.get("imm", 0)))  # type: ignore[arg-type]
        if emitted.target is not None:
            row["target"] = builder.labels[emitted.target]
        if emitted.extra:
            row["imm"] = len(extra)
            extra += [offset(value) for value in emitted.extra]
        if "site" in emitted.fields:
            sites[row["site"]] = position
        rows.append(row)
    return Program(
        entry=entry,
        code=record_array(rows),
        names=tuple(names),
        origins=tuple(e.origin if e.counts else None for e in builder.code),
        places=tuple(e.origin for e in builder.code),
        sites=tuple(sites),
        constants=tuple(constants),
        extra=tuple(extra),
        register_bytes=slot_count * SLOT_BYTES,
        predicate_count=builder.predicate_count,
        static_shared=builder.shared_bytes,
        local_bytes=-(-builder.local_bytes // 16) * 16,
        parameter_bytes=max((start + size for start, size in parameters), default=0),
        parameter_offsets=parameters,
        granule_shared=builder.narrowest["shared"],
        granule_global=builder.narrowest["global"],
        synchronises=builder.synchronises,
        may_spin=builder.waits,
        max_threads=max_threads,
    )
