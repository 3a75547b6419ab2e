"""The families of elementwise operators and reductions, and all chains of them: norms, softmaxes, losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cupilot.author.axes import UnsupportedError
from cupilot.author.files import write_program
from cupilot.author.program import TRANSCENDENTALS, Program
from cupilot.author.stages import Stage, is_pair, stage
from cupilot.author.understanding import understand
from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy


@dataclass(frozen=True)
class Chain:
    """See `family.Recognised`."""

    program: Program

    @cached_property
    def family(self) -> str:
        nodes, used = self.program.nodes, self.program.closure(o.node for o in self.program.outputs)
        reductions = [i for i in used if nodes[i].is_reduction]
        if not reductions:
            return "pointwise"
        if any(is_pair(self.program, a, b) == "peak" for a in reductions for b in reductions):
            return "softmax"
        maps = any(nodes[o.node].axes & set(nodes[r].over) for o in self.program.outputs for r in reductions)
        return "norm" if maps else "reduction"

    @cached_property
    def tactics(self) -> frozenset[str]:
        """Those that change this program's code."""
        nodes, used = self.program.nodes, self.program.closure(o.node for o in self.program.outputs)
        reductions = [i for i in used if nodes[i].is_reduction]
        found = {"vectorize", "non-temporal-stores"}
        if len(self.program.steps) > 1:
            found.add("fuse-passes")
        if any(nodes[i].op in TRANSCENDENTALS for i in used) and not self.program.is_double:
            found.add("inline-transcendentals")
        if reductions:
            found.add("multiple-accumulators")
        if any(not s.over or any(map(s.is_map, s.stores)) for s in self._fused):
            found.add("unroll")
        if any(is_pair(self.program, a, b) for a in reductions for b in reductions):
            found.add("online-reduction")
        return frozenset(found)

    @cached_property
    def _fused(self) -> tuple[Stage, ...]:
        return stage(self.program, fuse=True, split=False).stages

    def write(self, strategy: Strategy) -> KernelFile:
        return write_program(self.program, strategy)


class Chains:
    """Any graph whose operators the lowering knows."""

    def recognise(self, problem: Problem) -> Chain | None:
        program = understand(problem)
        if program is None:
            return None
        try:
            stage(program, fuse=True, split=False)
        except UnsupportedError:
            return None
        return Chain(program)
