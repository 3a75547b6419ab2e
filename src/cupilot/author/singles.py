"""Families around one operator that nothing else is like: a scan, a pool. Elementwise operators before and
behind it are part of its one kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from cupilot.author.files import assemble
from cupilot.author.program import TRANSCENDENTALS, Program
from cupilot.author.stages import Stage, Staged
from cupilot.author.style import Style
from cupilot.author.understanding import understand
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy

_FAMILIES = {"scan": "scan", "window": "pool"}


@dataclass(frozen=True)
class Single:
    """See `family.Recognised`."""

    program: Program
    stage: Stage

    @cached_property
    def family(self) -> str:
        return _FAMILIES[self.program.nodes[self.stage.rounds[0][0]].op]

    @cached_property
    def tactics(self) -> frozenset[str]:
        used = self.program.closure(o.node for o in self.program.outputs)
        found = {"vectorize", "non-temporal-stores"}
        node = self.program.nodes[self.stage.rounds[0][0]]
        if node.op == "window":
            found |= {"unroll", "separable-windows"}
            if node.name == "max" and node.geometry[-1][0] > 2:
                found.add("doubling-windows")
        elif self.stage.space[-1] in self.stage.over:
            found |= {"unroll", "two-level-scan"}
        else:
            found.add("line-by-line")
        if any(self.program.nodes[i].op in TRANSCENDENTALS for i in used) and not self.program.is_double:
            found.add("inline-transcendentals")
        return frozenset(found)

    def write(self, strategy: Strategy) -> KernelFile:
        return assemble(Staged(self.program, (self.stage,), ()), Style.of(strategy))


@dataclass(frozen=True)
class Singles:
    """Graphs with exactly one node of this operation, whose outputs are all as large as its result."""

    op: str

    def recognise(self, problem: Problem) -> Single | None:
        program = understand(problem, special=self.op)
        if program is None:
            return None
        nodes, order = program.nodes, program.outputs[0].order
        used = program.closure(o.node for o in program.outputs)
        mine = [i for i in used if nodes[i].op == self.op]
        if len(mine) != 1 or any(nodes[i].is_reduction for i in used):
            return None
        node = nodes[mine[0]]
        if any(o.order != order for o in program.outputs) or node.axes != set(order):
            return None
        if node.op == "window" and node.order[-1:] != order[-1:]:
            return None
        tensors = {**program.tensors, **{o.name: o.dtype for o in program.outputs}}
        program = replace(program, tensors=tensors)
        return Single(program, Stage(order, frozenset(node.over) & node.axes, ((mine[0],),), program.outputs))
