"""What a device without a clock says of a kernel: what it takes, executes, and asks of memory. For people.

Shows the facts of an evaluation; judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cupilot.cli.units import scaled

_OPCODES = 10
Facts = Mapping[str, float | str]


def counts(facts: Facts) -> RenderableType | None:
    """None where there is nothing to show."""
    names = dict.fromkeys(key.split(": ")[0] for key in facts if ": " in key)
    if not names:
        return None
    parts: list[RenderableType] = []
    for name in names:
        own = {key.removeprefix(f"{name}: "): v for key, v in facts.items() if key.startswith(f"{name}: ")}
        parts += [_block(name, _launch(own), _kernel(own)), Text()]
    if "counted" in facts:
        parts.append(_block("counters", f"({facts['counted']})", _counters(facts)))
    else:
        parts.pop()
    return Group(*parts)


def _block(title: str, beside: str, rows: Iterator[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, value)
    head = Text.assemble((title, "bold"), ("  " if beside else "", ""), (beside, "dim"))
    return Group(head, Padding(table, (0, 0, 0, 2)))


def _launch(own: Facts) -> str:
    if "blocks" not in own:
        return ""
    blocks = int(own["blocks"])
    return f"{blocks:,} block{'s' * (blocks > 1)} of {int(own['threads']):,} threads"


def _kernel(own: Facts) -> Iterator[tuple[str, str]]:
    spilled = int(own["spilled bytes"])
    words = f"{spilled:,} bytes spilled" if spilled else "nothing spilled"
    yield "registers", f"{int(own['registers'])} per thread, {words}"
    shared, stack, barriers = (int(own[key]) for key in ("shared bytes", "stack bytes", "barriers"))
    memory = f"{shared:,} bytes shared per block, {stack:,} bytes of stack per thread"
    yield "memory", f"{memory}, {barriers} barrier{'s' * (barriers != 1)}"
    if "occupancy" in own:
        yield "occupancy", str(own["occupancy"])
    if "machine code" in own:
        opcodes = str(own["machine code"]).split(", ")
        more = f", {len(opcodes) - _OPCODES} more opcodes" if len(opcodes) > _OPCODES else ""
        yield "SASS", ", ".join(opcodes[:_OPCODES]) + more
    for label in ("executed", "races between blocks"):
        if label in own:
            yield label, str(own[label])


def _counters(facts: Facts) -> Iterator[tuple[str, str]]:
    value = {key: float(v) for key, v in facts.items() if not isinstance(v, str)}
    lanes = f"{value['active lanes']:.0%} of lanes active"
    yield "instructions", f"{value['warp instructions']:,.0f} by warps, {lanes}"
    sizes = [f"{scaled(value[f'global bytes {what}'], 'B')} {what}" for what in ("asked", "moved", "touched")]
    yield "global memory", ", ".join(sizes)
    yield "", f"{value['sectors per request']:.2f} sectors of 32 bytes per request"
    if value["wavefronts per shared request"]:
        yield "shared memory", f"{value['wavefronts per shared request']:.2f} wavefronts per request"
    yield "barriers", f"{value['barriers']:,.0f}"
    if value["atomics"]:
        shared = value["atomics at another lane's address"]
        yield "atomics", f"{value['atomics']:,.0f}, {shared:,.0f} at another lane's address"
