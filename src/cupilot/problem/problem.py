"""A problem: what has to be computed, on which shapes, in which precision. The reference lives here.

Held-out shapes, domains of the inputs and counts are learned on first use and kept. Does not judge kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from cupilot.errors import UsageError
from cupilot.problem.capture import capture
from cupilot.problem.cases import ShapeCase
from cupilot.problem.counts import Counts, count
from cupilot.problem.domains import Domain
from cupilot.problem.graph import Graph
from cupilot.problem.influence import without_influence
from cupilot.problem.learning import draw_values, learn_domains
from cupilot.problem.precision import Precision
from cupilot.problem.program import Arguments, Program, Shapes, computing_in
from cupilot.problem.shapes import held_out_cases, scaled_case
from cupilot.types import Signature


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

    @staticmethod
    def from_function(function: Callable[..., Any], inputs: Any, **options: str) -> Problem:
        """See `loading.from_function`."""
        from cupilot.problem import loading  # it makes problems: it stands above this file

        return loading.from_function(function, inputs, **options)

    @property
    def target(self) -> Signature:
        return self.targets[0].signature

    def reference(self, tensors: Mapping[str, torch.Tensor], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """The outputs for these inputs and weights, at any shapes, computed in `dtype`."""
        return self.program.reference(tensors, dtype)

    def differentiable(self, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs in double precision with their graph, for the influence of each element."""
        with computing_in(torch.float64):
            return tuple(self.program.call(tensors, grad=True).values())

    def draw(self, seed: int, case: ShapeCase | None = None) -> dict[str, torch.Tensor]:
        """Inputs from the user's own generator and fresh weights, at one target (else the first)."""
        arguments = (case or self.targets[0]).arguments
        if arguments is None:
            raise UsageError(
                "the problem's generator makes the targets only", hint="draw at problem.targets, or project"
            )
        return self.program.draw_inputs(arguments, seed) | self.weights(seed)

    def draw_values(self, seed: int, case: ShapeCase) -> dict[str, torch.Tensor]:
        """The user's own values for a case: a draw at a target, elsewhere one of any shape."""
        if case.arguments is not None:
            return self.draw(seed, case)
        return {**draw_values(self.program, self.targets[0].arguments or (), seed), **self.weights(seed)}

    def weights(self, seed: int) -> dict[str, torch.Tensor]:
        """Parameters and buffers as the module's constructor makes them."""
        return self.program.draw_state(seed)

    def signature_at(self, case: ShapeCase | Shapes) -> Signature:
        """What a kernel is handed at these input shapes; a `ProblemError` when the module rejects them."""
        return self.program.signature(case.shapes if isinstance(case, ShapeCase) else case)

    @cached_property
    def shapes(self) -> tuple[ShapeCase, ...]:
        """The targets, then the held-out shapes; the targets alone when the problem fixes its shape."""
        held_out = () if self.fixed_shape else held_out_cases(self.program, self.targets)
        return (*self.targets, *held_out)

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        """The values each input and weight may take, at the target; `domains_at` for other shapes."""
        given = self.targets[0].arguments or ()
        return learn_domains(self.program, self.target, given, self.graph, self._trial)

    def domains_at(self, case: ShapeCase) -> Mapping[str, Domain]:
        shapes = {spec.name: spec.shape for spec in case.signature.tensors}
        return {name: domain.at(shapes) for name, domain in self.domains.items()}

    @cached_property
    def counts(self) -> Counts:
        """The least any kernel must do at the (first) target."""
        return count(self.graph, self.target, self.domains, self._idle)

    def counts_at(self, case: ShapeCase) -> Counts:
        return count(capture(self.program, case.signature), case.signature, self.domains, self._idle)

    @cached_property
    def _trial(self) -> ShapeCase:
        """A small shape to try the module out at."""
        return next((case for case in self.shapes if case.name == "odd"), self.targets[0])

    @cached_property
    def _idle(self) -> frozenset[str]:
        if not self._trial.is_small:
            return frozenset()
        return without_influence(self.program, self.domains, self._trial.signature)

    def scaled(self, limit_bytes: int) -> ShapeCase | None:
        """The target made smaller until its tensors fit into `limit_bytes`; None when it cannot shrink."""
        return None if self.fixed_shape else scaled_case(self.program, self.targets, limit_bytes)

    def target_fits(self, memory_bytes: int) -> bool:
        """Whether the fp64 reference with its error bound can run at every target in this much memory."""
        return max(self.reference_bytes(case) for case in self.targets) <= memory_bytes

    def reference_bytes(self, case: ShapeCase) -> int:
        """An estimate for the fp64 reference: every tensor it holds at once, as value, bound and scratch."""
        graph = self.graph if case is self.targets[0] else capture(self.program, case.signature)
        return 3 * 8 * _peak_elements(graph)


def _peak_elements(graph: Graph) -> int:
    """The most elements alive at once when every value is dropped after its last use."""
    last = {ref: index for index, node in enumerate(graph.nodes) for ref in node.inputs}
    returned = set(graph.outputs)
    alive = peak = 0
    for index, node in enumerate(graph.nodes):
        alive += sum(value.numel for value in node.outputs)
        peak = max(peak, alive)
        if not node.is_leaf:
            dead = [ref for ref in set(node.inputs) if last[ref] == index and ref not in returned]
            alive -= sum(graph.value(ref).numel for ref in dead if not graph.node(ref).is_leaf)
    return peak


def target_cases(program: Program, arguments: tuple[Arguments, ...]) -> tuple[ShapeCase, ...]:
    """The shapes of the user's own inputs, one case for each tuple of generator arguments."""
    cases = []
    for index, given in enumerate(arguments):
        shapes = program.input_shapes(given)
        name = "target" if len(arguments) == 1 else f"target-{index + 1}"
        cases.append(ShapeCase(name, shapes, program.signature(shapes), given))
    return tuple(cases)
