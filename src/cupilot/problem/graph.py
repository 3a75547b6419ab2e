"""The operator graph of a problem at one set of shapes: what is computed, free of the user's names and style.

Nodes stand in an order in which each comes after its inputs; nothing in the graph is unused. Operators carry
one name for all their overloads, dimensions are counted from the front, and every attribute is spelled out
(see `canonical`). A graph describes; it does not execute and does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cupilot.types import DType

Attribute = bool | int | float | str | tuple["Attribute", ...]

INPUT, PARAMETER, BUFFER, CONSTANT = "input", "parameter", "buffer", "constant"
LEAVES = frozenset({INPUT, PARAMETER, BUFFER, CONSTANT})

# Attributes that may follow from shapes (`other` can be 1/n); the shape-free fingerprint leaves them out.
_SIZES = frozenset(
    {
        "shape",
        "size",
        "sizes",
        "split_size",
        "split_sizes",
        "end",
        "input_size",
        "output_size",
        "other",
        "value",
    }
)


@dataclass(frozen=True)
class Ref:
    """One output of a node."""

    node: int
    output: int = 0


@dataclass(frozen=True)
class Value:
    """What is known of a tensor without its data."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def numel(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Node:
    """One operator application, or a leaf (`op` in `LEAVES`, attribute `name`; a constant has `value`)."""

    op: str
    inputs: tuple[Ref, ...]
    roles: tuple[str, ...]  # what each input is to the operator: "self", "other", "weight", "tensors", ...
    attributes: Mapping[str, Attribute]
    outputs: tuple[Value, ...]

    def input(self, role: str) -> Ref | None:
        """The first input in this role."""
        return next((ref for ref, have in zip(self.inputs, self.roles, strict=True) if have == role), None)

    def integer(self, key: str, default: int = 0) -> int:
        """An attribute that is a whole number."""
        value = self.attributes.get(key, default)
        assert isinstance(value, int), (self.op, key, value)
        return value

    def integers(self, key: str) -> tuple[int, ...]:
        """An attribute that is a tuple of whole numbers; empty when there is none."""
        value = self.attributes.get(key, ())
        assert isinstance(value, tuple)
        return tuple(item for item in value if isinstance(item, int))

    @property
    def is_leaf(self) -> bool:
        return self.op in LEAVES


@dataclass(frozen=True)
class Graph:
    """Nodes, the returned values, and what the module changes besides."""

    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]
    mutated: tuple[str, ...] = ()  # buffers that forward writes to; their new values are not outputs
    complete: bool = True  # False when values went through Python, as `.item()` does: they look constant
    random: tuple[str, ...] = ()  # operators among the nodes that draw random numbers

    def node(self, ref: Ref) -> Node:
        return self.nodes[ref.node]

    def value(self, ref: Ref) -> Value:
        return self.nodes[ref.node].outputs[ref.output]

    @cached_property
    def users(self) -> Mapping[Ref, tuple[int, ...]]:
        """The nodes that read each value; a value that is only returned has none."""
        found: dict[Ref, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for ref in dict.fromkeys(node.inputs):
                found.setdefault(ref, []).append(index)
        return {ref: tuple(indices) for ref, indices in found.items()}

    @cached_property
    def leaves(self) -> Mapping[str, Ref]:
        """Inputs, parameters and buffers by their name in kernel files."""
        return {
            str(n.attributes["name"]): Ref(i)
            for i, n in enumerate(self.nodes)
            if n.is_leaf and n.op != CONSTANT
        }

    def fingerprint(self, *, shapes: bool = True) -> str:
        """A hash of the structure that depends neither on names nor on the order of independent statements.

        Without shapes, the same operators at other sizes agree; ranks and element types still count.
        """
        order: dict[int, int] = {}
        lines = [self._line(index, order, shapes) for index in self._from_outputs(order)]
        lines.append("return " + " ".join(self._name(ref, order) for ref in self.outputs))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]

    def _from_outputs(self, order: dict[int, int]) -> list[int]:
        """Nodes as a depth-first walk from the outputs completes them; their numbers go to `order`."""
        stack = [(ref.node, False) for ref in reversed(self.outputs)]
        while stack:
            index, done = stack.pop()
            if index in order:
                continue
            if done:
                order[index] = len(order)
            else:
                stack.append((index, True))
                stack.extend((ref.node, False) for ref in reversed(self.nodes[index].inputs))
        return list(order)

    def _name(self, ref: Ref, order: Mapping[int, int]) -> str:
        return f"{order[ref.node]}.{ref.output}"

    def _line(self, index: int, order: Mapping[int, int], shapes: bool) -> str:
        node = self.nodes[index]
        hidden = {"name"} if shapes else _SIZES | {"name"}
        attributes = [
            f"{key}={value!r}" for key, value in sorted(node.attributes.items()) if key not in hidden
        ]
        values = [str(value) if shapes else f"{value.dtype}/{len(value.shape)}" for value in node.outputs]
        inputs = [
            f"{role}:{self._name(ref, order)}" for ref, role in zip(node.inputs, node.roles, strict=True)
        ]
        return " ".join([node.op, *inputs, *attributes, "->", *values])

    def __str__(self) -> str:
        lines = []
        for index, node in enumerate(self.nodes):
            inputs = [f"{role}={_label(ref)}" for ref, role in zip(node.inputs, node.roles, strict=True)]
            arguments = ", ".join(inputs + [f"{key}={value}" for key, value in node.attributes.items()])
            lines.append(f"%{index} = {node.op}({arguments}) -> {', '.join(map(str, node.outputs))}")
        lines.append("return " + ", ".join(map(_label, self.outputs)))
        return "\n".join(lines)


def _label(ref: Ref) -> str:
    return f"%{ref.node}.{ref.output}" if ref.output else f"%{ref.node}"
