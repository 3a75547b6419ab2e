"""Puts a kernel file together: a program cut into stages, each written as one kernel, and the launches."""

from __future__ import annotations

from collections.abc import Sequence

from cupilot.author.axes import Group
from cupilot.author.columns import is_across, write_columns
from cupilot.author.finite import guarded, write_guarded
from cupilot.author.frame import Frame
from cupilot.author.layout import KEYWORDS, Names
from cupilot.author.maps import write_map
from cupilot.author.pools import write_pool
from cupilot.author.products import product_of, write_product
from cupilot.author.program import Program
from cupilot.author.rewriting import without_divisions
from cupilot.author.rows import write_rows
from cupilot.author.scans import write_scan
from cupilot.author.snippets import preamble
from cupilot.author.splitting import PARTS, split_reductions
from cupilot.author.stages import Stage, Staged, stage
from cupilot.author.style import Style
from cupilot.author.walks import Walk, Written
from cupilot.kernel.expressions import RESERVED
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.strategy.strategy import Strategy

_UNITS = frozenset(
    {
        "LANES",
        "UNROLL",
        "BLOCK",
        "CHUNK",
        "KEEP",
        "TILE",
        "AREA",
        "PARTS",
        "AHEAD",
        "block",
        "tile",
        "item",
        "last",
        "ahead",
        "u",
    }
)

_WORDS = """found tap line first here begin end origin span at inside carry carries running row total top left
    strip panel entry sums factor part settle kept highs slot from to there i j l t v rest"""
_LOCAL = (
    _UNITS | KEYWORDS | set(_WORDS.split())
)  # words of the kernels' own; tensors so called get an underscore


def write_program(program: Program, strategy: Strategy) -> KernelFile:
    """The kernels that compute the program in the style the strategy asks for."""
    style = Style.of(strategy)
    if style.multiply:
        program = without_divisions(program)
    staged = stage(program, fuse=style.fuse, split=style.split)
    return assemble(split_reductions(staged) if style.split else staged, style)


def assemble(staged: Staged, style: Style) -> KernelFile:
    """Each stage as a kernel, and the launches."""
    program = staged.program
    names = Names(program.extents, set(RESERVED | _UNITS | program.tensors.keys()))
    needs: set[str] = set()
    tensors = {name: f"{name}_" if name in _LOCAL else name for name in program.tensors}
    written = [_write(Frame(program, one, style, names, needs, tensors)) for one in staged.stages]
    return parse_kernel(_text(staged, names, written, needs, style))


def _write(frame: Frame) -> Written:
    special = {frame.node(i).op for level in frame.stage.rounds for i in level}
    if "scan" in special:
        return write_scan(Walk(frame, frame.names.free("scan")))
    if "window" in special:
        return write_pool(Walk(frame, frame.names.free("pool")))
    product = product_of(frame)
    if product is not None:
        return write_product(Walk(frame, frame.names.free("multiply"), product.names), product)
    expected = guarded(frame.program, frame.stage) if frame.style.finite_first else None
    if expected is not None:
        return write_guarded(frame, expected, _write_chain, "reduce")
    part = frame.stage.part
    hints: dict[Group, str] = {} if part is None else {(part,): "parts"}
    return _write_chain(Walk(frame, frame.names.free("reduce" if frame.stage.over else "map"), hints))


def _write_chain(walk: Walk) -> Written:
    frame = walk.frame
    if is_across(frame):
        return write_columns(walk)
    return write_rows(walk) if frame.stage.over else write_map(walk)


def _text(staged: Staged, names: Names, written: Sequence[Written], needs: set[str], style: Style) -> str:
    wanted = [t for kernel in written for t in kernel.tunables]
    if any(one.part is not None for one in staged.stages):
        wanted.append(PARTS)
    tunables = {t.split()[0]: t for t in reversed(wanted)}  # the values of the kernel that names it first
    scratch = []
    for one in staged.scratch:
        shape = ", ".join(names.extent((axis,)) for axis in one.order) or "1"
        scratch.append(f"{one.name} = scratch(({shape},), {one.dtype})")
    launch = [*(f"{name} = {formula}" for formula, name in names.variables.items()), *scratch]
    for kernel in written:
        launch += [*kernel.call.before, str(kernel.call)]
    header = ["/* cupilot 1", f" {_summary(staged.stages)}"]
    if tunables:
        header += [
            "tune:",
            *(f"    {tunables[name]}" for name in dict.fromkeys(t.split()[0] for t in wanted)),
        ]
    header += ["launch:", *(f"    {line}" for line in launch), "*/"]
    text = preamble(needs, double=staged.program.is_double, vector=style.vector)
    return "\n".join(header) + "\n" + text + "\n" + "\n\n".join(kernel.text for kernel in written) + "\n"


def _summary(stages: Sequence[Stage]) -> str:
    """In words, what the launches do."""
    parts = []
    for one in stages:
        maps = sum(one.is_map(s) for s in one.stores)
        if not one.over:
            parts.append("computes every element by itself")
        elif maps:
            parts.append("reduces, and uses the results on every element")
        else:
            parts.append("reduces")
    count = "One launch" if len(parts) == 1 else f"{len(parts)} launches"
    return f"{count}: {'; '.join(parts)}."
