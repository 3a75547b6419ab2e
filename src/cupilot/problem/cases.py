"""One set of shapes at which a kernel must be right."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.problem.program import Arguments, Shapes
from cupilot.types import Signature


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

    def __str__(self) -> str:
        tensors = [spec for spec in self.signature.tensors if spec.name in self.shapes]
        return f"{self.name}: " + ", ".join(map(str, tensors))
