"""The inside of loops: what is loaded, what is computed ahead, what is computed each time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from cupilot.author.axes import Group
from cupilot.author.expressions import Text
from cupilot.author.frame import Frame
from cupilot.author.layout import Place
from cupilot.author.program import Output
from cupilot.types import DType

Known = dict[int, Text]
_AHEAD = "AHEAD"


class Bodies:
    """Writes expressions of a frame's program at given places; vectors walk the `lane`, if there is one."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.vector = frame.style.vector
        self.prefetches = False  # by a distance that is tuned
        self._distance = _AHEAD

    @contextmanager
    def prefetching(self, distance: str) -> Iterator[None]:
        """How many elements ahead loads ask for, where they do; not at all if empty."""
        before, self._distance = self._distance, distance
        yield
        self._distance = before

    def unmoved(self, roots: Iterable[int], moving: Collection[int], known: Mapping[int, Text]) -> list[int]:
        """The largest parts of the roots that do not vary along `moving`; numbers are not worth it."""
        nodes, found, seen = self.frame.program.nodes, list[int](), set[int]()
        todo = list(roots)
        while todo:
            index = todo.pop()
            node = nodes[index]
            if index in seen or index in known or node.op in ("number", "extent"):
                continue
            seen.add(index)
            if not node.axes & set(moving):
                found.append(index)
            elif node.op != "pick":
                todo += node.args
        return sorted(found)

    def is_ready(self, index: int, known: Mapping[int, Text]) -> bool:
        """Whether no reduction is missing."""
        nodes = self.frame.program.nodes
        behind = self.frame.program.closure([index], frozenset(known))
        return not any(nodes[i].is_reduction and i not in known for i in behind)

    def ahead(
        self, roots: Iterable[int], moving: Collection[int], known: Known, places: Sequence[Place]
    ) -> None:
        """Compute, under names, what does not vary along `moving`."""
        wanted = [i for i in self.unmoved(roots, moving, known) if self.is_ready(i, known)]
        for index, text in zip(wanted, self.values(wanted, known, places, None), strict=True):
            known[index] = self.named(index, text)

    def named(self, index: int, text: Text) -> Text:
        node = self.frame.node(index)
        mask = self.frame.program.kind(index) == "mask"
        name = self.frame.local_name(
            f"{node.op}1" if node.op not in ("load", "pick") else f"{node.name}_here"
        )
        kind = self.frame.expressions.value_type(text.scalar or not self.vector, mask)
        self.frame.line(f"const {kind} {name} = {text.text};")
        return Text(name, scalar=text.scalar)

    def values(
        self, roots: Sequence[int], known: Known, places: Sequence[Place], lane: Place | None
    ) -> list[Text]:
        """Lines that load and compute, and the roots' expressions. `known` is left as it is."""
        frame, inside = self.frame, dict(known)
        for index in frame.program.closure(roots, frozenset(known)):
            if index in inside:
                continue
            node = frame.node(index)
            if node.op == "extent":
                inside[index] = frame.extent_text(index)
            elif node.op == "place":
                inside[index] = self._place(node.over, places, lane)
            elif node.op in ("load", "pick"):
                inside[index] = self._load(index, places, lane)
        expressions = frame.expressions if lane is not None and self.vector else frame.expressions.single()
        lines, texts = expressions.print(roots, inside, frame.local | frame.names.taken)
        for line in lines:
            frame.local.add(line.split(" = ")[0].split()[-1])
            frame.line(line)
        return texts

    def _place(self, group: Group, places: Sequence[Place], lane: Place | None) -> Text:
        """The index along a group, every axis of which has its own place."""
        text, moves = "", False
        for axis in group:
            place = next(p for p in [*places, *([lane] if lane else [])] if p.group == (axis,))
            moves = moves or (place == lane and self.vector)
            text = f"({text}) * {self.frame.extent((axis,))} + {place.variable}" if text else place.variable
        if not moves:
            return Text(f"(real)({text})", 7, scalar=True)
        return Text(f"as_real(lanes() + (whole)({text}))")

    def _load(self, index: int, places: Sequence[Place], lane: Place | None) -> Text:
        frame, node = self.frame, self.frame.node(index)
        moves = lane is not None and self.vector and bool(node.axes & set(lane.group))
        if not moves:
            return frame.scalar_load(index, [*places, *([lane] if lane else [])])
        assert lane is not None
        mask = frame.program.tensors[node.name] is DType.BOOL
        if node.op == "pick":
            text = self._gather(index, places, lane)
        else:
            at = frame.offset(node.order, [*places, lane])
            pointer = f"{frame.pointer(node.name)} + {at}"
            stride = frame.stride(node.order, lane.group)
            if stride != "1":
                text = self._need("load_strided", f"({pointer}, {stride}, rest...)")
            else:
                text = self._need("load_mask" if mask else "load", f"({pointer}, rest...)")
            if stride == "1" and frame.style.prefetch and self._distance:
                self.prefetches = self.prefetches or self._distance == _AHEAD
                frame.line(f"__builtin_prefetch({pointer} + {self._distance});")
        name = frame.local_name(f"{node.name}_here")
        frame.line(f"const {'ivec' if mask else 'vec'} {name} = {text};")
        return Text(name)

    def _gather(self, index: int, places: Sequence[Place], lane: Place) -> str:
        frame = self.frame
        name, one = frame.local_name("picked"), frame.local_name("l")
        frame.needs.add("span")
        frame.line(f"vec {name} = {{}};")
        shifted = Place(lane.group, f"({lane.variable} + {one})")
        text = frame.scalar_load(index, [*places, shifted])
        frame.line(f"for (long {one} = 0; {one} < span(rest...); {one}++) {name}[{one}] = {text.text};")
        return name

    def _need(self, snippet: str, rest: str) -> str:
        self.frame.needs.add(snippet)
        return snippet + rest

    def store(self, want: Output, value: Text, places: Sequence[Place], lane: Place | None) -> None:
        """One element, or a vector of them."""
        frame = self.frame
        everywhere = [*places, *([lane] if lane else [])]
        at, pointer = frame.offset(want.order, everywhere), frame.pointer(want.name)
        moves = lane is not None and self.vector and bool(set(want.order) & set(lane.group))
        if not moves:
            frame.line(f"{frame.element(pointer, at)} = {frame.store_value(want, value)};")
            return
        assert lane is not None
        mask = want.dtype is DType.BOOL
        stride = frame.stride(want.order, lane.group)
        text = frame.expressions.splat(value, mask)
        if stride != "1":
            call = self._need("store_strided", f"({pointer} + {at}, {stride}, {text}, rest...)")
        elif mask:
            call = self._need("store_mask", f"({pointer} + {at}, {text}, rest...)")
        elif frame.style.stream:
            call = self._need("stream", f"({pointer} + {at}, {text}, rest...)")
        else:
            call = self._need("store", f"({pointer} + {at}, {text}, rest...)")
        frame.line(f"{call};")


def flat(group: Iterable[Group]) -> Group:
    return tuple(axis for part in group for axis in part)
