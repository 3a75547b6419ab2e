"""Stages that need all of a row or column only where something in it is not finite: a product with a diagonal
matrix. They are computed as if everything were finite, and looked through meanwhile; a second launch does the
exact work where something was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cupilot.author.expressions import Text
from cupilot.author.frame import Call, Frame
from cupilot.author.layout import Place
from cupilot.author.maps import finish, to_align
from cupilot.author.program import Node, Program
from cupilot.author.stages import Stage
from cupilot.author.walks import Walk, Written

_SPOILED = "double"  # of a block: whether it met what is not finite


@dataclass(frozen=True)
class Guarded:
    """A stage as it is where everything in `source` is finite."""

    program: Program
    stage: Stage
    source: int


def guarded(program: Program, stage: Stage) -> Guarded | None:
    """None where a stage is more than a map that counts what is not finite."""
    if len(stage.rounds) != 1 or len(stage.rounds[0]) != 1 or not all(map(stage.is_map, stage.stores)):
        return None
    total = stage.rounds[0][0]
    source = _looked_through(program, total)
    if source is None or stage.part is not None:
        return None
    nodes, again = list(program.nodes), dict[int, int]()
    for index in program.closure(store.node for store in stage.stores):
        node = program.nodes[index]
        if node.op == "select" and _is_elsewhere(program, node, total):
            again[index] = again[node.args[2]]
        else:
            again[index] = len(nodes)
            nodes.append(replace(node, args=tuple(again[a] for a in node.args)))
    finite = replace(program, nodes=tuple(nodes))
    stores = tuple(replace(store, node=again[store.node]) for store in stage.stores)
    if again[total] in finite.closure(store.node for store in stores):
        return None
    return Guarded(finite, Stage(stage.space, frozenset(), (), stores), again[source])


def _looked_through(program: Program, total: int) -> int | None:
    """What a sum counts the elements of that are not finite: x - x is zero for all others."""
    nodes = program.nodes
    if nodes[total].op != "sum":
        return None
    spoils = nodes[nodes[total].args[0]]
    if spoils.op != "select" or [nodes[a].number for a in spoils.args[1:]] != [0, 1]:
        return None
    test = nodes[spoils.args[0]]
    difference = nodes[test.args[0]]
    if test.op != "eq" or difference.op != "sub" or len(set(difference.args)) != 1:
        return None
    is_zero = nodes[test.args[1]] == Node("number", number=0.0)
    return difference.args[0] if is_zero else None


def _is_elsewhere(program: Program, node: Node, total: int) -> bool:
    """Whether it chooses its last argument unless something was counted, here not included."""
    mask = program.nodes[node.args[0]]
    if mask.op != "gt" or program.nodes[mask.args[1]] != Node("number", number=0.0):
        return False
    found = program.nodes[mask.args[0]]
    return found.op == "sub" and found.args == (total, program.nodes[total].args[0])


def write_guarded(frame: Frame, one: Guarded, write_exact: Callable[[Walk], Written], name: str) -> Written:
    """The quick launch, and the exact one, which returns at once where nothing was found."""
    names = frame.names
    made = Frame(one.program, one.stage, frame.style, names, frame.needs, frame.pointers)
    quick = Walk(made, names.free("quick"))
    spoiled, pieces = names.free("spoiled"), names.free("pieces")
    call = _quick(quick, one.source, spoiled)
    exact = Walk(frame, names.free(name))
    found = frame.local_name("is_finite")
    frame.line(f"bool {found} = true;")
    test = f"{found} = {found} && {spoiled}[t] == 0;"
    frame.line(f"for (long t = 0; t < {frame.use(pieces)}; t++) {test}")
    frame.line(f"if ({found}) return;")
    written = write_exact(exact)
    head, body = written.text.split(") {\n", 1)
    before = (
        *call.before,
        f"{pieces} = {call.grid[0]}",
        f"{spoiled} = scratch(({pieces},), f64)",
        str(call),
        *written.call.before,
    )
    exact_call = replace(written.call, arguments=(*written.call.arguments, spoiled), before=before)
    return Written(
        f"{made.text(_head(quick, spoiled))}\n\n{head}, const {_SPOILED}* {spoiled}) {{\n{body}",
        exact_call,
        tuple(dict.fromkeys([*quick.tunables, *written.tunables])),
    )


def _head(walk: Walk, spoiled: str) -> str:
    return walk.frame.signature(walk.name, ["block"], [f"*{spoiled}"])[0]


def _quick(walk: Walk, source: int, spoiled: str) -> Call:
    """Every element as a map has it. One that is not finite makes `bad` NaN: zero times it is."""
    frame, stores, bodies = walk.frame, walk.stage.stores, walk.bodies
    *outer, lane = frame.fine
    extent, bad = frame.extent(lane), frame.local_name("bad")
    frame.needs.add("padded")
    frame.line(f"vec {bad} = {{}};")
    with walk.items(outer, extent) as (places, grid):
        known = dict[int, Text]()
        bodies.ahead([s.node for s in stores], lane, known, places)

        def body(place: Place) -> None:
            value, *values = bodies.values([source, *(s.node for s in stores)], known, places, place)
            frame.line(f"{bad} += padded({frame.expressions.splat(value)}, 0, rest...) * (real)0;")
            for want, text in zip(stores, values, strict=True):
                bodies.store(want, text, places, place)

        walk.lanes(lane, "0", extent, body, aligned=to_align(walk, stores, places, lane, "0"))
    frame.line(f"{spoiled}[block] = 0;")
    frame.line(f"for (int l = 0; l < LANES; l++) if ({bad}[l] != 0) {spoiled}[block] = 1;")
    finish(walk)
    return walk.written(["block"], grid, [f"*{spoiled}"]).call
