"""Cuts a program into stages: what one launch computes. Says nothing about code.

A stage walks one space of axes. It may reduce some of them, in rounds that depend on one another; it stores
values that vary along the whole space (maps) or along what is kept (results of reductions). What a later
stage needs of an earlier one is kept in scratch memory at the smallest place it can be had: a mean, not
deviations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from cupilot.author.accumulators import is_place
from cupilot.author.axes import Group, UnsupportedError
from cupilot.author.program import Node, Output, Program
from cupilot.types import DType


@dataclass(frozen=True)
class Stage:
    """`space` in the order of memory; `over`: the axes that are reduced, none for a map."""

    space: Group
    over: frozenset[int]
    rounds: tuple[tuple[int, ...], ...]  # reductions
    stores: tuple[Output, ...]
    part: int | None = None  # the axis of parts, each of which reduces its share of the outermost group

    @property
    def kept(self) -> Group:
        return tuple(axis for axis in self.space if axis not in self.over)

    def is_map(self, store: Output) -> bool:
        return not self.over or bool(self.over & set(store.order))


@dataclass
class _Phase:
    space: frozenset[int]
    over: frozenset[int]
    reductions: list[int] = field(default_factory=list)
    stores: list[Output] = field(default_factory=list)

    @property
    def kept(self) -> frozenset[int]:
        return self.space - self.over


@dataclass(frozen=True)
class Staged:
    """The stages in order, with the program in which what earlier stages left in scratch is loaded."""

    program: Program
    stages: tuple[Stage, ...]
    scratch: tuple[Output, ...]


def stage(program: Program, *, fuse: bool, split: bool) -> Staged:
    """`fuse`: everything in as few stages as possible, otherwise one per operator of the graph. `split`:
    reductions that will be shared out to several blocks end their stage."""
    work = _Staging(program, split)
    if not fuse:
        for step in program.steps:
            work.unit([work.scratch_for(i) for i in step if work.is_worth_keeping(i)])
    work.unit(program.outputs)
    return work.result()


class _Staging:
    def __init__(self, program: Program, split: bool) -> None:
        self._program = program
        self._nodes = program.nodes
        self._split = split
        self._held: dict[int, Output] = {}  # by node: where it lies
        self._returned = {output.node: output for output in reversed(program.outputs)}
        self._done: list[tuple[_Phase, frozenset[int]]] = []  # with what was held before

    def is_worth_keeping(self, index: int) -> bool:
        node = self._nodes[index]
        return index not in self._held and node.op not in ("load", "number", "extent", "place")

    def scratch_for(self, index: int) -> Output:
        """Where a value goes: the output it is, or scratch memory."""
        node = self._nodes[index]
        returned = self._returned.get(index)
        dtype = DType.F64 if self._program.is_double else DType.F32
        if is_place(node.op):
            dtype = DType.I64
        if returned is not None and returned.dtype is dtype and frozenset(returned.order) == node.axes:
            return returned
        if self._program.kind(index) == "mask":
            dtype = DType.BOOL
        return Output(f"kept{index}", index, self._order(node.axes), dtype)

    def _order(self, axes: frozenset[int]) -> Group:
        """As the first tensor that has all of them lies."""
        orders = [node.order for node in self._nodes if node.op == "load"]
        orders += [output.order for output in self._program.outputs]
        for order in orders:
            if axes <= set(order):
                return tuple(axis for axis in order if axis in axes)
        return tuple(sorted(axes))

    # -- phases of one unit --------------------------------------------------------------------------------

    def unit(self, wanted: Sequence[Output]) -> None:
        """Add the stages that compute these, out of loads and of what is held."""
        before = frozenset(self._held)
        wanted = [w for w in wanted if self._held.get(w.node) != w]
        phases: list[_Phase] = []
        home: dict[int, int] = {}  # of each reduction: its phase
        for index in self._program.closure((w.node for w in wanted), before):
            if self._nodes[index].is_reduction and index not in before:
                home[index] = self._place(index, phases, home, before)
        for want in wanted:
            phases[self._place_store(want, phases, home, before)].stores.append(want)
        for at, phase in enumerate(phases):
            self._hold_for(at, phase, phases, home)
            self._done.append((phase, before | self._held_by(phases[:at])))
        self._held |= {w.node: w for w in wanted}

    def _held_by(self, phases: Sequence[_Phase]) -> frozenset[int]:
        return frozenset(store.node for phase in phases for store in phase.stores)

    def _reductions(self, roots: Iterable[int], before: frozenset[int]) -> list[int]:
        found = self._program.closure(roots, before)
        return [i for i in found if self._nodes[i].is_reduction and i not in before]

    def _place(self, index: int, phases: list[_Phase], home: dict[int, int], before: frozenset[int]) -> int:
        node = self._nodes[index]
        space, over = self._nodes[node.args[0]].axes, frozenset(node.over)
        lowest = 0
        for other in self._reductions(node.args, before):
            same = phases[home[other]].space == space and phases[home[other]].over == over
            lowest = max(lowest, home[other] + (0 if same and not self._split else 1))
        for at in range(lowest, len(phases)):
            if phases[at].space == space and phases[at].over == over:
                phases[at].reductions.append(index)
                return at
        phases.append(_Phase(space, over, [index]))
        return len(phases) - 1

    def _place_store(
        self, want: Output, phases: list[_Phase], home: dict[int, int], before: frozenset[int]
    ) -> int:
        axes = frozenset(want.order)
        behind = max((home[r] for r in self._reductions([want.node], before)), default=-1)
        for at in range(max(behind, 0), len(phases)):
            phase = phases[at]
            whole = axes == phase.space and not (self._split and phase.over)
            if at >= behind and (whole or (axes == phase.kept and at == behind)):
                return at
        phases.append(_Phase(axes, frozenset()))
        return len(phases) - 1

    def _hold_for(self, at: int, phase: _Phase, phases: list[_Phase], home: dict[int, int]) -> None:
        """Earlier phases store what this one needs of them."""
        todo = [a for r in phase.reductions for a in self._nodes[r].args] + [s.node for s in phase.stores]
        seen: set[int] = set()
        while todo:
            index = todo.pop()
            if index in seen or index in self._held:
                continue
            seen.add(index)
            behind = max((home[r] for r in self._reductions([index], frozenset(self._held))), default=-1)
            if behind < 0:
                continue
            source = phases[behind]
            if behind < at and self._nodes[index].axes == source.kept:
                if all(store.node != index for store in source.stores):
                    source.stores.append(self.scratch_for(index))
            else:
                todo += self._nodes[index].args

    # -- the result ----------------------------------------------------------------------------------------

    def result(self) -> Staged:
        """Phases as stages, each value loaded from where it lies."""
        stored = [s for phase, _ in self._done for s in phase.stores]
        everything = {s.node: s for s in reversed(stored)}  # the first place of each
        scratch = {s.name: s for s in stored if s not in self._program.outputs}
        outputs = {output.name: output.dtype for output in self._program.outputs}
        tensors = {**self._program.tensors, **outputs, **{s.name: s.dtype for s in stored}}
        nodes = list(self._nodes)
        stages: list[Stage] = []
        for phase, held in self._done:
            moved = {i: self._loaded(nodes, everything[i]) for i in held if i in everything}
            stages.append(self._settled(phase, nodes, moved))
        program = replace(self._program, nodes=tuple(nodes), tensors=tensors)
        return Staged(program, tuple(stages), tuple(scratch.values()))

    def _loaded(self, nodes: list[Node], store: Output) -> int:
        nodes.append(Node("load", axes=frozenset(store.order), name=store.name, order=store.order))
        return len(nodes) - 1

    def _settled(self, phase: _Phase, nodes: list[Node], moved: dict[int, int]) -> Stage:
        """The phase over copies of its nodes, in which what is held is loaded."""
        roots = [*phase.reductions, *(s.node for s in phase.stores if s.node not in moved)]
        copies = dict(moved)
        for index in self._program.closure(roots, frozenset(moved)):
            if index not in copies:
                node = self._nodes[index]
                nodes.append(replace(node, args=tuple(copies[a] for a in node.args)))
                copies[index] = len(nodes) - 1
        stores = tuple(replace(s, node=copies[s.node]) for s in phase.stores)
        depth: dict[int, int] = {}
        for index in sorted(phase.reductions):
            behind = [r for r in depth if r in self._program.closure(self._nodes[index].args)]
            depth[index] = 1 + max((depth[r] for r in behind), default=-1)
        rounds = tuple(
            tuple(copies[i] for i, d in depth.items() if d == level)
            for level in range(max(depth.values(), default=-1) + 1)
        )
        used = self._program_orders(
            nodes, [*(copies[i] for i in phase.reductions), *(s.node for s in stores)]
        )
        return Stage(_space(phase.space, [s.order for s in stores], used), phase.over, rounds, stores)

    def _program_orders(self, nodes: list[Node], roots: list[int]) -> list[Group]:
        seen, todo = set[int](), list(roots)
        while todo:
            index = todo.pop()
            if index not in seen:
                seen.add(index)
                todo += nodes[index].args
        return [nodes[i].order for i in seen if nodes[i].op == "load"]


def _space(axes: frozenset[int], stored: Sequence[Group], loaded: Sequence[Group]) -> Group:
    """The order in which a stage walks: that of what it stores, else of what it loads most of."""
    whole = [order for order in stored if frozenset(order) == axes]
    candidates = whole or sorted(loaded, key=len, reverse=True)
    order: list[int] = []
    for candidate in candidates:
        mine = [axis for axis in candidate if axis in axes]
        if not order:
            order = mine
        missing = [axis for axis in mine if axis not in order]
        for axis in reversed(missing):  # before the one it precedes
            after = next((a for a in mine[mine.index(axis) + 1 :] if a in order), None)
            order.insert(order.index(after) if after is not None else len(order), axis)
    if frozenset(order) != axes:
        raise UnsupportedError("a value varies along something no tensor has")
    return tuple(order)


def is_pair(program: Program, head: int, tail: int) -> str | None:
    """Two reductions that can be merged block by block: "moments" (a mean and squares around it) or "peak" (a
    maximum and exponentials below it); None for others."""
    nodes = program.nodes
    one, two = nodes[head], nodes[tail]
    if one.over != two.over or two.op not in ("sum", "mean"):
        return None
    term = nodes[two.args[0]]

    def is_away(index: int) -> bool:
        away = nodes[index]
        return away.op == "sub" and away.args == (one.args[0], head)

    if one.op == "mean" and term.op == "mul" and term.args[0] == term.args[1] and is_away(term.args[0]):
        return "moments"
    if one.op == "max" and two.op == "sum" and term.op == "exp" and is_away(term.args[0]):
        return "peak"
    return None


_SPREADS = frozenset({"add", "sub", "mul", "div", "neg", "abs", "exp", "log", "sqrt", "rsqrt", "inverse"})


def is_nan_with(program: Program, one: Stage, head: int, tail: int) -> bool:
    """Whether all that a stage computes of `head` is NaN when `tail` is."""
    nodes = program.nodes

    @cache
    def behind(index: int) -> frozenset[int]:
        return frozenset(program.closure([index], frozenset([head, tail])))

    @cache
    def is_nan(index: int) -> bool:
        return index == tail or (nodes[index].op in _SPREADS and any(map(is_nan, nodes[index].args)))

    @cache
    def is_good(index: int) -> bool:
        node = nodes[index]
        if node.op == "select" and head not in behind(node.args[0]):
            return all(map(is_good, node.args[1:]))
        return is_nan(index) or head not in behind(index)

    reductions = {r for level in one.rounds for r in level} - {head, tail}
    return all(map(is_good, (*(store.node for store in one.stores), *reductions)))
