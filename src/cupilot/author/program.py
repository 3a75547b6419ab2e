"""A graph in the author's own few words: loads, numbers, elementwise operations and reductions over axes.

Every graph operator is spelled out in these (a softmax is a maximum, exponentials, a sum and a quotient), so
that everything behind this file knows nothing of framework operators. Nodes are interned: equal means same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cupilot.author.axes import Axes, Dims, Group, UnsupportedError
from cupilot.problem.domains import Structure
from cupilot.types import DType

REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "argmax", "argmin"})
MASKS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not"})
TRANSCENDENTALS = frozenset(
    {"exp", "log", "expm1", "log1p", "tanh", "erf", "sin", "cos", "pow", "atan", "atan2", "erfc"}
)


@dataclass(frozen=True)
class Node:
    """One value. `op` is "load", "pick", "number", "extent", "place" (the index along `over`), a reduction,
    or elementwise.

    A pick is a load whose place along `over` is read from another tensor (its second argument).
    """

    op: str
    args: tuple[int, ...] = ()
    axes: frozenset[int] = frozenset()  # along which the value varies
    name: str = ""  # of a loaded tensor
    number: float = 0.0  # of a number; of a pick: the index that means "none"
    over: Group = ()  # what a reduction removes, an extent counts
    order: Group = ()  # of a load: the axes of the tensor as they lie in memory
    geometry: tuple[tuple[int, ...], ...] = ()  # of a window: size, stride, padding, dilation along each axis

    @property
    def is_reduction(self) -> bool:
        return self.op in REDUCTIONS


@dataclass(frozen=True)
class Output:
    name: str
    node: int
    order: Group  # as they lie in memory
    dtype: DType


@dataclass(frozen=True)
class Program:
    nodes: tuple[Node, ...]  # arguments come first
    outputs: tuple[Output, ...]
    steps: tuple[tuple[int, ...], ...]  # what each operator of the graph made, in order
    tensors: Mapping[str, DType]  # what is loaded
    extents: Mapping[int, str] = field(default_factory=dict)  # of each axis, in the launch language
    structures: Mapping[str, Structure] = field(default_factory=dict)  # of tensors with zeros in known places

    def closure(self, roots: Iterable[int], stop: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """Roots and all they depend on, arguments first; nothing behind `stop`."""
        return tuple(sorted(_behind(self.nodes, roots, stop)))

    @cached_property
    def has_reductions(self) -> bool:
        return any(self.nodes[i].is_reduction for i in self.closure(o.node for o in self.outputs))

    def kind(self, index: int) -> str:
        """ "mask" for truth values, "real" for all else."""
        node = self.nodes[index]
        if node.op == "select":
            return self.kind(node.args[1])
        loaded = node.op in ("load", "pick") and self.tensors[node.name] is DType.BOOL
        return "mask" if node.op in MASKS or loaded else "real"

    @cached_property
    def is_double(self) -> bool:
        dtypes = [*self.tensors.values(), *(output.dtype for output in self.outputs)]
        return DType.F64 in dtypes


def _flat(dims: Dims) -> Group:
    return tuple(axis for group in dims for axis in group)


def _behind(nodes: Sequence[Node], roots: Iterable[int], stop: frozenset[int] = frozenset()) -> set[int]:
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        index = todo.pop()
        if index not in seen:
            seen.add(index)
            if index not in stop:
                todo += nodes[index].args
    return seen


class Builder:
    """Makes nodes; numbers are folded where that changes nothing."""

    def __init__(self) -> None:
        self.axes = Axes()
        self.nodes: list[Node] = []
        self._known: dict[Node, int] = {}
        self.tensors: dict[str, DType] = {}
        self.leaves: dict[str, Dims] = {}
        self.twins: list[tuple[str, Dims]] = []  # leaves once more, along other axes

    def add(self, node: Node) -> int:
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return self._known[node]

    def leaf(self, name: str, shape: Sequence[int], dtype: DType) -> tuple[int, Dims]:
        dims = tuple(self.axes.new(extent) for extent in shape)
        order = tuple(axis for group in dims for axis in group)
        self.tensors[name], self.leaves[name] = dtype, dims
        return self.add(Node("load", axes=frozenset(order), name=name, order=order)), dims

    def number(self, value: float) -> int:
        return self.add(Node("number", number=float(value)))

    def extent(self, group: Group) -> int:
        return self.add(Node("extent", over=group)) if group else self.number(1)

    def value_of(self, index: int) -> float | None:
        node = self.nodes[index]
        return node.number if node.op == "number" else None

    def place(self, group: Group) -> int:
        """The index along a dimension, as a number."""
        group = self.axes.resolve(group)
        return self.add(Node("place", axes=frozenset(group), over=group)) if group else self.number(0)

    def apply(self, op: str, *args: int) -> int:
        """An elementwise operation."""
        folded = self._folded(op, args)
        if folded is not None:
            return folded
        axes = frozenset[int]().union(*(self.nodes[a].axes for a in args))
        return self.add(Node(op, args, axes))

    def _folded(self, op: str, args: tuple[int, ...]) -> int | None:
        numbers = [self.value_of(a) for a in args]
        match op, numbers:
            case ("mul", [x, 1.0]) | ("div", [x, 1.0]):
                return args[0]
            case ("mul", [1.0, _]):
                return args[1]
            case ("mul", [float(x), float(y)]):
                return self.number(x * y)
            case ("add", [float(x), float(y)]):
                return self.number(x + y)
            case ("sub", [float(x), float(y)]):
                return self.number(x - y)
            case ("neg", [float(x)]):
                return self.number(-x)
            case ("div", [float(x), float(y)]) if y != 0:
                return self.number(x / y)
        return None

    def reduce(self, op: str, arg: int, over: Group) -> int:
        """`over` may name axes along which the value does not vary: a sum then multiplies."""
        over = self.axes.resolve(over)
        axes = frozenset(self.axes.resolve(tuple(self.nodes[arg].axes)))
        still = tuple(axis for axis in over if axis in axes)
        constant = tuple(axis for axis in over if axis not in axes)
        if constant and op == "sum":
            arg = self.apply("mul", arg, self.extent(constant))
        if constant and op == "prod":
            arg = self.apply("pow", arg, self.extent(constant))
        if not still:
            return arg
        return self.add(Node(op, (arg,), axes - set(still), over=still))

    def pick(self, arg: int, target: int, over: Group, none: float) -> int:
        """The value at place `target` along `over`: done at the leaves, where it costs one load."""
        node = self.nodes[arg]
        over = self.axes.resolve(over)
        if not set(over) & set(self.axes.resolve(tuple(node.axes))):
            return arg
        if node.op == "place":
            raise UnsupportedError("an element picked from indices")
        axes = frozenset(self.axes.resolve(tuple(node.axes))) - set(over) | self.nodes[target].axes
        if node.op == "load":
            return self.add(
                Node("pick", (arg, target), axes, name=node.name, number=none, over=over, order=node.order)
            )
        args = tuple(self.pick(a, target, over, none) for a in node.args)
        return self.add(replace(node, args=args, axes=axes))

    def renamed(self, index: int, fresh: Mapping[int, int]) -> int:
        """The same value along other axes."""
        node = self.nodes[index]
        if not set(self.axes.resolve(tuple(node.axes))) & fresh.keys():
            return index

        def turned(group: Iterable[int]) -> Group:
            return tuple(fresh.get(axis, axis) for axis in self.axes.resolve(tuple(group)))

        if node.op in ("load", "pick"):
            self.twins.append((node.name, tuple(turned(group) for group in self.leaves[node.name])))
        args = tuple(self.renamed(a, fresh) for a in node.args)
        axes, over, order = frozenset(turned(node.axes)), turned(node.over), turned(node.order)
        return self.add(replace(node, args=args, axes=axes, over=over, order=order))

    def finish(
        self, outputs: Sequence[tuple[str, int, Dims, DType]], steps: Sequence[Sequence[int]]
    ) -> Program:
        """The program with every axis settled. May raise UnsupportedError."""
        resolve = self.axes.resolve
        settled: dict[int, int] = {}
        final = Builder()
        for index, node in enumerate(self.nodes):
            settled[index] = final.add(
                replace(
                    node,
                    args=tuple(settled[a] for a in node.args),
                    axes=frozenset(resolve(tuple(node.axes))),
                    over=resolve(node.over),
                    order=resolve(node.order),
                )
            )
        orders = [*(node.order for node in final.nodes), *(resolve(_flat(dims)) for _, _, dims, _ in outputs)]
        if any(len(set(order)) < len(order) for order in orders):
            raise UnsupportedError("a tensor meets itself along another of its dimensions")
        used = _behind(final.nodes, [settled[index] for _, index, _, _ in outputs])
        return Program(
            nodes=tuple(final.nodes),
            outputs=tuple(
                Output(name, settled[index], resolve(_flat(dims)), dtype)
                for name, index, dims, dtype in outputs
            ),
            steps=tuple(tuple(settled[i] for i in step if settled[i] in used) for step in steps),
            tensors=dict(self.tensors),
        )


def literal(value: float, double: bool = False) -> str:
    """A number as C++ text of the right type."""
    if math.isnan(value):
        return '__builtin_nan("")' if double else '__builtin_nanf("")'
    if math.isinf(value):
        text = "__builtin_inf()" if double else "__builtin_inff()"
        return text if value > 0 else f"-{text}"
    if abs(value) > 3.4028234663852886e38 and not double:
        return literal(math.copysign(math.inf, value))
    text = repr(float(value)) if double else f"{value:.9g}"
    if not set(text) & set(".en"):
        text += ".0"
    return text if double else f"{text}f"
