"""From the operator graph to the author's program: one entry per operator, tables where they suffice.

An operator without an entry makes the graph unsupported, and the family declines. What depends on the shapes
(a batch mean divides by an extent) is found by looking at the same graph at other shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cupilot.author.axes import Dims, Group, UnsupportedError
from cupilot.author.elementwise import BINARY, COMPARISONS, Arithmetic, unary
from cupilot.author.program import Builder, Program
from cupilot.problem.graph import CONSTANT, Attribute, Graph, Node, Ref
from cupilot.types import DType

_FLOATS = (DType.F64, DType.F32, DType.F16)
_VIEWS = ("view", "unsqueeze", "squeeze", "expand", "permute")
SIZES = frozenset({"other", "value", "alpha", "self"})  # attributes that may follow from shapes


@dataclass(frozen=True)
class Tensor:
    """A value of the graph: its node, and the axes behind each of its dimensions."""

    node: int
    dims: Dims


@dataclass
class Lowering:
    """One walk over a graph. `sizes`: numbers that are extents in truth, as (extent, inverse)."""

    graph: Graph
    sizes: Mapping[tuple[int, str], tuple[tuple[str, int], bool]] = field(default_factory=dict)
    build: Builder = field(default_factory=Builder)
    values: dict[Ref, Tensor] = field(default_factory=dict)
    returned: dict[str, Dims] = field(default_factory=dict)
    at: int = 0  # the node being read

    def __post_init__(self) -> None:
        self.math = Arithmetic(self.build)

    def run(self, names: Sequence[str], leaves: Sequence[tuple[str, tuple[int, ...], DType]]) -> Program:
        """`names`: of the outputs; `leaves`: every tensor of the signature, used or not."""
        for name, shape, dtype in leaves:
            ref = self.graph.leaves.get(name)
            made = Tensor(*self.build.leaf(name, shape, dtype))
            if ref is not None:
                self.values[ref] = made
        steps = []
        for at, node in enumerate(self.graph.nodes):
            self.at = at
            if not node.is_leaf or node.op == CONSTANT:
                self.read(node)
                steps.append([self.values[r].node for r in self._outputs(node)])
        outputs = []
        for name, ref in zip(names, self.graph.outputs, strict=True):
            made = self.values[ref]
            outputs.append((name, made.node, made.dims, self.graph.value(ref).dtype))
            self.returned[name] = made.dims
        return self.build.finish(outputs, steps)

    def _outputs(self, node: Node) -> list[Ref]:
        return [r for r in (Ref(self.at, i) for i in range(len(node.outputs))) if r in self.values]

    def read(self, node: Node) -> None:
        """Make the values of one operator."""
        if node.op == CONSTANT:
            self._constant(node)
        elif node.op in _VIEWS:
            self._give(self._view(node))
        elif node.op in OPERATORS:
            OPERATORS[node.op](self, node)
        elif node.op in BINARY or node.op in COMPARISONS:
            self._elementwise(node, (self.operand(node, "self"), self.operand(node, "other")))
        else:
            self._elementwise(node, (self.operand(node, "self"),))

    # -- what entries are made of --------------------------------------------------------------------------

    def operand(self, node: Node, role: str) -> Tensor:
        """A tensor, or a number as a tensor without dimensions."""
        ref = node.input(role)
        if ref is not None:
            return self.values[ref]
        if (self.at, role) in self.sizes:
            (name, dim), inverse = self.sizes[self.at, role]
            extent = self.build.extent(self.build.leaves[name][dim])
            return Tensor(self.math.div(self.math.one, extent) if inverse else extent, ())
        value = node.attributes.get(role)
        if not isinstance(value, bool | int | float):
            raise UnsupportedError(f"{node.op} without {role}")
        return Tensor(self.build.number(float(value)), ())

    def optional(self, node: Node, role: str) -> Tensor | None:
        return self.operand(node, role) if node.input(role) or role in node.attributes else None

    def together(self, *tensors: Tensor) -> Dims:
        """The dimensions of an elementwise operation, the operands' axes united."""
        rank = max(len(t.dims) for t in tensors)
        dims: list[Group] = [()] * rank
        for tensor in tensors:
            shift = rank - len(tensor.dims)
            for at, group in enumerate(tensor.dims):
                dims[shift + at] = self.build.axes.unite(dims[shift + at], group)
        return tuple(dims)

    def apart(self, one: Tensor, two: Tensor, shared: Sequence[tuple[Group, Group]]) -> Tensor:
        """`two` along axes of its own, except where `shared` pairs the same: a tensor may meet itself."""
        axes = self.build.axes
        mine = {axis for group in one.dims for axis in axes.resolve(group)}
        meets = {axis for a, b in shared if axes.resolve(a) == axes.resolve(b) for axis in axes.resolve(b)}
        theirs = {axis for group in two.dims for axis in axes.resolve(group)}
        fresh = {axis: new for axis in theirs & mine - meets for new in axes.new(axes.extents[axis])}
        dims = tuple(tuple(fresh.get(axis, axis) for axis in axes.resolve(group)) for group in two.dims)
        return Tensor(self.build.renamed(two.node, fresh), dims) if fresh else two

    def _elementwise(self, node: Node, operands: tuple[Tensor, ...]) -> None:
        self._check_type(node)
        if len(operands) == 2:
            one, two = operands
            rank = min(len(one.dims), len(two.dims))
            pairs = zip(one.dims[len(one.dims) - rank :], two.dims[len(two.dims) - rank :], strict=True)
            operands = (one, self.apart(one, two, list(pairs)))
        args = [t.node for t in operands]
        dims = self.together(*operands)
        if len(args) == 2:
            table = {**BINARY, **COMPARISONS}
            result = table[node.op](self.math, args[0], args[1], node.attributes)
        else:
            result = unary(self.math, node.op, args[0], node.attributes)
        self._give(Tensor(result, dims))

    def _check_type(self, node: Node) -> None:
        if any(value.dtype not in (*_FLOATS, DType.BOOL) for value in node.outputs):
            raise UnsupportedError(f"{node.op} computes {node.outputs[0].dtype}")

    def _give(self, *tensors: Tensor) -> None:
        for index, tensor in enumerate(tensors):
            self.values[Ref(self.at, index)] = tensor

    def give(self, result: int, dims: Dims) -> None:
        self._give(Tensor(result, dims))

    def give_all(self, *tensors: Tensor) -> None:
        self._give(*tensors)

    # -- views ---------------------------------------------------------------------------------------------

    def _constant(self, node: Node) -> None:
        value = node.attributes["value"]
        if isinstance(value, tuple):
            if len(set(value)) != 1:
                raise UnsupportedError("a constant tensor")
            value = value[0]
        if not isinstance(value, bool | int | float):
            raise UnsupportedError("a constant tensor")
        self.give(self.build.number(float(value)), ())

    def _view(self, node: Node) -> Tensor:
        source = self.values[node.inputs[0]]
        after = node.outputs[0].shape
        dims = source.dims
        if node.op == "permute":
            return Tensor(source.node, tuple(dims[d] for d in node.integers("dims")))
        before = self.graph.value(node.inputs[0]).shape
        if node.op == "expand":
            rank = len(after)
            padded = ((),) * (rank - len(dims)) + tuple(dims)
            old = (1,) * (rank - len(before)) + tuple(before)
            new = self.build.axes.new  # an axis that is united with another's when they meet
            grown = (g if o == n else new(n) for g, o, n in zip(padded, old, after, strict=True))
            return Tensor(source.node, tuple(grown))
        flat = tuple(axis for group in dims for axis in group)
        return Tensor(source.node, self.build.axes.regroup(flat, after))

    # -- reductions ----------------------------------------------------------------------------------------

    def over(self, tensor: Tensor, dims: Sequence[int]) -> Group:
        return tuple(axis for d in dims for axis in self.build.axes.resolve(tensor.dims[d]))

    def reduced(self, tensor: Tensor, node: Node) -> Dims:
        """The dimensions that are left."""
        dims, keep = node.integers("dims"), bool(node.attributes.get("keepdim"))
        return tuple(
            () if d in dims else group for d, group in enumerate(tensor.dims) if keep or d not in dims
        )

    def settle_loss(self, node: Node, each: int, dims: Dims) -> None:
        """Losses end as they are, as their mean, or as their sum."""
        reduction = node.integer("reduction", 1)
        if reduction == 0:
            self.give(each, dims)
        else:
            everything = tuple(axis for group in dims for axis in group)
            op = "mean" if reduction == 1 else "sum"
            self.give(self.build.reduce(op, each, everything), ())


Entry = Callable[[Lowering, Node], None]
OPERATORS: dict[str, Entry] = {}


def entry(*names: str) -> Callable[[Entry], Entry]:
    def register(function: Entry) -> Entry:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def number(node: Node, key: str, default: float = 0.0) -> float:
    value: Attribute = node.attributes.get(key, default)
    if not isinstance(value, bool | int | float):
        raise UnsupportedError(f"{node.op}: {key} is no number")
    return float(value)
