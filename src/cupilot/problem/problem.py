"""A problem: what has to be computed, on which shapes, in which precision. The reference lives here.

Held-out shapes, domains of the inputs and counts are learned on first use and kept. Does not judge kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from cupilot.errors import ProblemError
from cupilot.problem.graph import Graph
from cupilot.problem.precision import Precision
from cupilot.problem.program import Arguments, Program, Shapes, computing_in
from cupilot.types import Signature


@dataclass(frozen=True)
class ShapeCase:
    """One set of shapes a kernel must be right at. `shapes` are those of the inputs; weights never change."""

    name: str
    shapes: Shapes
    signature: Signature
    arguments: Arguments | None = None  # of the user's generator, for the cases it can draw itself

    def __str__(self) -> str:
        return f"{self.name}: " + ", ".join(
            str(spec) for spec in self.signature.tensors if spec.name in self.shapes
        )


@dataclass(frozen=True)
class Problem:
    """A user's module, ready to be looked at, drawn from and run."""

    name: str
    source: str
    program: Program
    targets: tuple[ShapeCase, ...]  # one, or those of SHAPES; the score is made on these
    precision: Precision
    graph: Graph  # at the (first) target
    fixed_shape: bool = False
    path: Path | None = None  # with `size`, enough to load it again in another process
    size: str | None = None

    @property
    def target(self) -> Signature:
        return self.targets[0].signature

    def reference(self, tensors: Mapping[str, torch.Tensor], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """The outputs for these inputs and weights, at any shapes, computed in `dtype`."""
        return self.program.reference(tensors, dtype)

    def differentiable(self, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs in double precision with their graph, for the influence of each element of `tensors`."""
        with computing_in(torch.float64):
            return tuple(self.program.call(tensors, grad=True).values())

    def draw(self, seed: int) -> dict[str, torch.Tensor]:
        """Inputs from the user's own generator and fresh weights, at the (first) target."""
        return self.program.draw_inputs(self.targets[0].arguments or (), seed) | self.weights(seed)

    def weights(self, seed: int) -> dict[str, torch.Tensor]:
        """Parameters and buffers as the module's constructor makes them."""
        return self.program.draw_state(seed)

    def signature_at(self, case: ShapeCase | Shapes) -> Signature:
        """What a kernel is handed at these input shapes; a `ProblemError` when the module rejects them."""
        return self.program.signature(case.shapes if isinstance(case, ShapeCase) else case)

    @cached_property
    def shapes(self) -> tuple[ShapeCase, ...]:
        """The targets, then the held-out shapes."""
        return self.targets


def target_cases(program: Program, arguments: tuple[Arguments, ...]) -> tuple[ShapeCase, ...]:
    """The shapes of the user's own inputs, one case for each tuple of generator arguments."""
    cases = []
    for index, given in enumerate(arguments):
        shapes = {spec.name: spec.shape for spec in program.inputs}
        name = "target" if len(arguments) == 1 else f"target-{index + 1}"
        cases.append(ShapeCase(name, shapes, program.signature(shapes), given))
    if len({frozenset(case.shapes) for case in cases}) > 1:
        raise ProblemError(
            "SHAPES give different inputs", hint="every entry must make tensors of the same names"
        )
    return tuple(cases)
