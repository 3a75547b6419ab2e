"""Captures the operator graph of a program without data: trace, make functional, spell canonically, prune.

Tracing sees through the user's Python; what depends on the values of tensors cannot be captured and raises.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from cupilot.errors import ProblemError
from cupilot.problem.canonical import IDENTITIES, attributes_of, operator_name
from cupilot.problem.dtypes import dtype_of
from cupilot.problem.graph import BUFFER, CONSTANT, Attribute, Graph, Node, Ref, Value
from cupilot.problem.program import Program
from cupilot.problem.pruning import pruned
from cupilot.problem.usercode import guarded, seeded
from cupilot.types import Signature

_CONSTANT_LIMIT = (
    64  # elements of a constant made inside forward; a larger one a kernel would have to be handed
)


def capture(program: Program, signature: Signature) -> Graph:
    """The graph at the shapes of `signature`; refused when forward draws random numbers."""
    specs = signature.tensors

    def run(values: list[torch.Tensor]) -> list[torch.Tensor]:
        return list(
            program.call({spec.name: value for spec, value in zip(specs, values, strict=True)}).values()
        )

    functional = torch.func.functionalize(run, remove="mutations")
    with (
        guarded(program.path, "tracing forward"),
        program.blank(specs) as tensors,
        seeded(0),
        _without_fused_layers(),
    ):
        before = (random.getstate(), _numpy_state())
        trace = make_fx(functional, _error_on_data_dependent_ops=False)(list(tensors.values()))
        if (random.getstate(), _numpy_state()) != before:
            raise _is_random("Python's or numpy's random numbers")
    reader = _Reader(trace)
    reader.read([(str(spec.role), spec.name) for spec in specs])
    graph = pruned(reader.nodes, reader.outputs, tuple(reader.mutated), reader.random)
    graph = replace(graph, complete=reader.complete)
    if graph.random:
        raise _is_random(", ".join(sorted(set(graph.random))))
    return graph


@contextlib.contextmanager
def _without_fused_layers() -> Iterator[None]:
    """A recurrent layer in one operator would hide what it computes."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def _numpy_state() -> str:
    return str(np.random.get_state(legacy=False))


def _is_random(what: str) -> ProblemError:
    return ProblemError(
        f"forward is random ({what}): no output of a kernel could be called right or wrong",
        hint="pass the random tensor as an input, or call .eval() in Model.__init__ to switch dropout off",
    )


@dataclass
class _Reader:
    """Turns the nodes of a trace into ours, one after the other."""

    trace: fx.GraphModule
    nodes: list[Node] = field(default_factory=list)
    refs: dict[fx.Node, Ref | tuple[Ref, ...]] = field(default_factory=dict)
    outputs: tuple[Ref, ...] = ()
    mutated: dict[str, None] = field(default_factory=dict)
    complete: bool = True
    random: dict[int, str] = field(default_factory=dict)  # by node

    def read(self, leaves: list[tuple[str, str]]) -> None:
        remaining = iter(leaves)
        for node in self.trace.graph.nodes:
            match node.op:
                case "placeholder":
                    role, name = next(remaining)
                    self._add(node, Node(role, (), (), {"name": name}, _values(node.meta["val"], name)))
                case "get_attr":
                    tensor = getattr(self.trace, node.target)
                    self._add(node, _constant(tensor))
                case "call_function":
                    self._call(node)
                case "output":
                    self.outputs = tuple(self._ref(item) for item in node.args[0])

    def _add(self, source: fx.Node, node: Node) -> None:
        self.nodes.append(node)
        self.refs[source] = tuple(Ref(len(self.nodes) - 1, index) for index in range(len(node.outputs)))

    def _ref(self, node: fx.Node) -> Ref:
        found = self.refs[node]
        return found[0] if isinstance(found, tuple) else found

    def _value(self, ref: Ref) -> Value:
        return self.nodes[ref.node].outputs[ref.output]

    def _call(self, node: fx.Node) -> None:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):  # operator.getitem on a node with several outputs
            several = self.refs[node.args[0]]  # type: ignore[index]
            assert isinstance(several, tuple)
            self.refs[node] = several[node.args[1]]  # type: ignore[index]
            return
        if "val" not in node.meta:  # a number taken out of a tensor, which has gone its way through Python
            self.complete = False
            return
        inputs, roles, given = self._arguments(target, node)
        op = operator_name(target)
        if op == "copy" and self.nodes[inputs[0].node].op == BUFFER:
            self.mutated[str(self.nodes[inputs[0].node].attributes["name"])] = None
        if op in _SPLIT and given["alpha"] == given["beta"] == 1:
            self._split_product(node, op, inputs)
            return
        inputs, roles = self._fold_numbers(inputs, roles, given)
        if op in _FILLS:  # takes only the shape of its input
            op, inputs, roles = _FILLS[op], (), ()
        first = self._value(inputs[0]) if inputs else None
        made = Node(op, inputs, roles, attributes_of(target, op, given, first), _values(node.meta["val"], op))
        if op == "scalar_tensor":
            made = Node(CONSTANT, (), (), {"value": _number(given["s"])}, made.outputs)
        if (
            inputs
            and target._schema.name.removeprefix("aten::") in IDENTITIES
            and self._changes_nothing(made)
        ):
            self.refs[node] = inputs[0]
            return
        if op == "dropout" and made.attributes.get("p") == 0.0:
            self.refs[node] = (inputs[0],)
            return
        if op == "select" and (picked := self._stacked(made)) is not None:
            self.refs[node] = (picked,)
            return
        self._note_effects(target, made)
        self._add(node, made)

    def _arguments(
        self, target: torch._ops.OpOverload, node: fx.Node
    ) -> tuple[tuple[Ref, ...], tuple[str, ...], dict[str, Any]]:
        """Tensors with their roles, and everything else by name, defaults filled in."""
        inputs: list[Ref] = []
        roles: list[str] = []
        given: dict[str, Any] = {}
        for index, argument in enumerate(target._schema.arguments):
            value = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
            if value is None and argument.has_default_value():
                value = argument.default_value
            items = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(item, fx.Node) for item in items):
                present = [(at, item) for at, item in enumerate(items) if isinstance(item, fx.Node)]
                inputs += [self._ref(item) for _, item in present]
                # Positions matter where entries may be missing: x[:, i] is index(indices = [None, i]).
                sparse = len(present) < len(items)
                roles += [f"{argument.name}{at}" if sparse else argument.name for at, _ in present]
            else:
                given[argument.name] = value
        return tuple(inputs), tuple(roles), given

    def _split_product(self, source: fx.Node, op: str, inputs: tuple[Ref, ...]) -> None:
        """`addmm` as a product and a sum, so that a linear layer and a product with a bias look the same."""
        values = _values(source.meta["val"], op)
        bias, one, two = inputs
        self._add(source, Node(_SPLIT[op], (one, two), ("self", "mat2"), {}, values))
        self._add(source, Node("add", (self._ref(source), bias), ("self", "other"), {"alpha": 1}, values))

    def _fold_numbers(
        self, inputs: tuple[Ref, ...], roles: tuple[str, ...], given: dict[str, Any]
    ) -> tuple[tuple[Ref, ...], tuple[str, ...]]:
        """Constants without dimensions become attributes, like the numbers they are, unless all are."""
        numbers = {
            role: self.nodes[ref.node].attributes["value"]
            for ref, role in zip(inputs, roles, strict=True)
            if self.nodes[ref.node].op == CONSTANT and not self._value(ref).shape and role not in _LISTS
        }
        if len(numbers) == len(inputs):
            return inputs, roles
        given.update(numbers)
        kept = [(ref, role) for ref, role in zip(inputs, roles, strict=True) if role not in numbers]
        return tuple(ref for ref, _ in kept), tuple(role for _, role in kept)

    def _stacked(self, select: Node) -> Ref | None:
        """The tensor that a selection takes out of a stack again, as the last step of a recurrent layer."""
        dim, source = select.integer("dim"), self.nodes[select.inputs[0].node]
        if source.op == "permute":
            dims = source.integers("dims")
            rest = [at for at in dims if at != dims[dim]]
            if rest != sorted(rest):
                return None
            dim, source = dims[dim], self.nodes[source.inputs[0].node]
        stacks = source.op == "stack" and source.integer("dim") == dim
        return source.inputs[select.integer("index")] if stacks else None

    def _changes_nothing(self, node: Node) -> bool:
        before, after = self._value(node.inputs[0]), node.outputs[0]
        if node.op == "permute":
            return node.attributes["dims"] == tuple(range(len(before.shape)))
        return before == after

    def _note_effects(self, target: torch._ops.OpOverload, node: Node) -> None:
        if torch.Tag.nondeterministic_seeded in target.tags and node.attributes.get("p") != 0.0:
            self.random[len(self.nodes)] = node.op
        if node.op == "batch_norm" and node.attributes.get("training"):
            for role in ("running_mean", "running_var"):
                ref = node.input(role)
                if ref is not None and self.nodes[ref.node].op == BUFFER:
                    self.mutated[str(self.nodes[ref.node].attributes["name"])] = None


def _values(meta: Any, name: str) -> tuple[Value, ...]:
    tensors = meta if isinstance(meta, list | tuple) else (meta,)
    return tuple(
        Value(tuple(tensor.shape), dtype_of(tensor, name))
        for tensor in tensors
        if isinstance(tensor, torch.Tensor)
    )


def _constant(tensor: torch.Tensor) -> Node:
    value = Value(tuple(tensor.shape), dtype_of(tensor, "a constant in forward"))
    if tensor.numel() > _CONSTANT_LIMIT:
        raise ProblemError(
            f"forward uses a constant tensor of shape {tuple(tensor.shape)} that is neither input nor weight",
            hint="make it a buffer of the module (self.register_buffer) or an argument of the function",
        )
    numbers = tuple(_number(item) for item in tensor.flatten().tolist())
    return Node(CONSTANT, (), (), {"value": numbers[0] if tensor.dim() == 0 else numbers}, (value,))


def _number(value: Any) -> Attribute:
    return value if isinstance(value, bool | int | float) else str(value)


_SPLIT = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}
_FILLS = {
    "zeros_like": "zeros", "ones_like": "ones", "full_like": "full", "empty_like": "empty",
    "new_zeros": "zeros", "new_ones": "ones", "new_full": "full", "new_empty": "empty",
}  # fmt: skip
_LISTS = frozenset({"tensors", "indices"})
