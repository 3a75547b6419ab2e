"""What every kernel of a stage shares: names, parameters, offsets of tensors, expressions, lines of code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cupilot.author.axes import Group
from cupilot.author.expressions import Expressions, Text
from cupilot.author.layout import Names, Place, collapse, offset, stride
from cupilot.author.program import Node, Output, Program
from cupilot.author.stages import Stage
from cupilot.author.style import Style
from cupilot.types import DType

TYPES = {
    DType.F64: "double", DType.F32: "float", DType.F16: "_Float16", DType.BOOL: "bool",
    DType.I64: "long", DType.I32: "int", DType.I16: "short", DType.I8: "signed char",
    DType.U8: "unsigned char",
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A launch: `kernel[grid](arguments)`, with the assignments it needs before it."""

    kernel: str
    grid: tuple[str, ...]
    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kernel}[{', '.join(self.grid)}]({', '.join(self.arguments)})"


class Frame:
    """A kernel in the making."""

    def __init__(
        self,
        program: Program,
        stage: Stage,
        style: Style,
        names: Names,
        needs: set[str],
        tensors: dict[str, str],
    ) -> None:
        self.program, self.stage, self.style, self.names = program, stage, style, names
        self.pointers = tensors  # C++ names by tensor
        own = style.own and not program.is_double
        self.expressions = Expressions(program, style.vector, own, needs)
        self.needs = needs
        self.lines: list[str] = []
        self._depth = 1
        self.known: dict[int, Text] = {}  # what already has a name, by node
        roots = [r for level in stage.rounds for r in level] + [s.node for s in stage.stores]
        self.nodes = program.closure(roots)
        self.loads = tuple(i for i in self.nodes if program.nodes[i].op in ("load", "pick"))
        orders = [program.nodes[i].order for i in self.loads] + [s.order for s in stage.stores]
        windows = [program.nodes[i] for i in self.nodes if program.nodes[i].op == "window"]
        orders += [(axis,) for window in windows for axis in window.order]
        orders += [
            (axis,) for i in self.nodes for axis in program.nodes[i].over if program.nodes[i].op == "place"
        ]
        structured = [n for n in map(self.node, self.loads) if n.name in program.structures]
        orders += [(axis,) for node in structured for axis in node.order[-2:]]
        self.fine = collapse(stage.space, orders, stage.over)
        self.picked = self._picked_axes()
        self.extents: dict[Group, str] = {}
        self.used: list[str] = []  # extents, in the order of their first use
        self.local: set[str] = set()

    def _picked_axes(self) -> list[Group]:
        """Axes that lie between those of the space, in tensors of which one place each is picked."""
        picks = [self.node(i) for i in self.loads if self.node(i).op == "pick"]
        return [
            (axis,)
            for axis in dict.fromkeys(a for p in picks for a in p.over)
            if axis not in self.stage.space
        ]

    # -- lines ---------------------------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        self.lines.append(f"{'    ' * self._depth}{text}" if text and text[0] != "#" else text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block; single statements keep their braces."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def local_name(self, wanted: str) -> str:
        name = Names({}, self.names.taken | self.local | set(self.pointers.values())).free(wanted)
        self.local.add(name)
        return name

    # -- extents and offsets -------------------------------------------------------------------------------

    def name_extents(self, hints: Iterable[tuple[Group, str]]) -> None:
        for group, hint in (*hints, *((group, "n") for group in self.picked)):
            self.extents[group] = self.names.extent(group, hint)

    def use(self, name: str) -> str:
        """An extent that the code mentions becomes a parameter."""
        if name not in self.used:
            self.used.append(name)
        return name

    def extent(self, group: Group) -> str:
        """The extent of a group of the stage, or of several."""
        parts = [self.use(self.extents[g]) for g in self.fine if g[-1] in group]
        return " * ".join(parts) or "1"

    def offset(self, order: Group, places: Sequence[Place]) -> str:
        text = offset(order, places, [*self.fine, *self.picked], self.extents)
        self._mention(text)
        return text

    def stride(self, order: Group, group: Group) -> str:
        mine = [g for g in self.fine if g[-1] in group and g[-1] in order]
        factors = stride(order, mine[-1], [*self.fine, *self.picked], self.extents)
        for factor in factors:
            self.use(factor)
        return " * ".join(factors) or "1"

    def _mention(self, text: str) -> None:
        for word in text.replace("(", " ").replace(")", " ").split():
            if word in self.extents.values():
                self.use(word)

    def count(self, axes: Group) -> str:
        """How many elements lie along these axes."""
        covered = [g for g in self.fine if g[-1] in axes]
        if sorted(a for g in covered for a in g) == sorted(axes):
            return self.extent(tuple(axes))
        return self.use(self.names.extent(tuple(axes), "count"))

    # -- values --------------------------------------------------------------------------------------------

    def node(self, index: int) -> Node:
        return self.program.nodes[index]

    def pointer(self, name: str) -> str:
        return self.pointers[name]

    def element(self, pointer: str, at: str) -> str:
        return f"{pointer}[{at or '0'}]"

    def scalar_load(self, index: int, places: Sequence[Place]) -> Text:
        """One element, where every axis of the tensor has its place."""
        node = self.node(index)
        if node.op == "pick":
            return self._picked(node, places)
        text = self.element(self.pointer(node.name), self.offset(node.order, places))
        return self._as_real(node.name, text)

    def _as_real(self, tensor: str, text: str) -> Text:
        dtype = self.program.tensors[tensor]
        if dtype is DType.F16:
            self.needs.add("widened")
            return Text(f"widened({text})", scalar=True)
        if dtype in (DType.F32, DType.F64, DType.BOOL):
            return Text(text, scalar=True)
        return Text(f"(real){text}", 7, scalar=True)

    def _picked(self, node: Node, places: Sequence[Place]) -> Text:
        """The place along `over` is read from the target; where that means "none", any will do."""
        target = self.node(node.args[1])
        at = self.element(self.pointer(target.name), self.offset(target.order, places))
        step = [
            self.use(self.names.extent((axis,), "n"))
            for axis in node.order[node.order.index(node.over[-1]) + 1 :]
        ]
        index = " * ".join([f"({at} == {int(node.number)} ? 0 : {at})", *step])
        rest = self.offset(node.order, [p for p in places if not set(p.group) & set(node.over)])
        text = self.element(self.pointer(node.name), f"{rest} + {index}" if rest else index)
        return self._as_real(node.name, text)

    def extent_text(self, index: int) -> Text:
        return Text(f"(real)({self.count(self.node(index).over)})", 7, scalar=True)

    def signature(
        self, name: str, coordinates: Sequence[str], extra: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """The kernel's head, and the arguments that a launch gives it."""
        loaded = dict.fromkeys(self.node(i).name for i in self.loads)
        for i in self.loads:
            if self.node(i).op == "pick":
                loaded |= dict.fromkeys([self.node(self.node(i).args[1]).name])
        stored = {store.name: store for store in self.stage.stores}
        parameters = [f"long {c}" for c in coordinates]
        arguments: list[str] = []
        for tensor in loaded:
            if tensor not in stored:
                parameters.append(f"const {TYPES[self.program.tensors[tensor]]}* {self.pointer(tensor)}")
                arguments.append(tensor)
        for tensor, store in stored.items():
            parameters.append(f"{TYPES[store.dtype]}* {self.pointer(tensor)}")
            arguments.append(tensor)
        parameters += [f"{'double*' if p.startswith('*') else 'long'} {p.lstrip('*')}" for p in extra]
        arguments += [p.lstrip("*") for p in extra]
        parameters += [f"long {extent}" for extent in self.used]
        return f'extern "C" void {name}({", ".join(parameters)}) {{', (*arguments, *self.used)

    def text(self, head: str) -> str:
        return "\n".join([head, *self.lines, "}"])

    def store_value(self, store: Output, value: Text) -> str:
        """A value as the type of the tensor it goes to."""
        if store.dtype is DType.F16:
            return f"(_Float16)({value.text})"
        return value.text
