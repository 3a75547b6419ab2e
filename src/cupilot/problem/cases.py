"""One set of shapes at which a kernel must be right."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.problem.program import Arguments, Shapes
from cupilot.types import Signature

_SMALL_ELEMENTS = 1 << 25


@dataclass(frozen=True)
class ShapeCase:
    """`shapes` are those of the inputs; the weights of a module never change theirs."""

    name: str
    shapes: Shapes
    signature: Signature
    arguments: Arguments | None = None  # of the user's generator, for the cases it can draw itself

    @property
    def numel(self) -> int:
        """Elements of inputs and outputs together."""
        inputs = sum(spec.numel for spec in self.signature.tensors if spec.name in self.shapes)
        return inputs + sum(spec.numel for spec in self.signature.outputs)

    @property
    def is_small(self) -> bool:
        """Whether the module, weights and all, can be tried out here in no time."""
        return self.numel + sum(spec.numel for spec in self.signature.tensors) <= _SMALL_ELEMENTS

    def __str__(self) -> str:
        tensors = [spec for spec in self.signature.tensors if spec.name in self.shapes]
        return f"{self.name}: " + ", ".join(map(str, tensors))
