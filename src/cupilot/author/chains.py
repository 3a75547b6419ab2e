"""The families of elementwise operators and reductions, and all chains of them: norms, softmaxes, losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cupilot.author.accumulators import is_place
from cupilot.author.axes import UnsupportedError
from cupilot.author.expressions import OWN
from cupilot.author.files import write_program
from cupilot.author.finite import guarded
from cupilot.author.keeping import kept_pair
from cupilot.author.program import Output, Program
from cupilot.author.rewriting import without_divisions
from cupilot.author.splitting import has_splittable
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
        nodes, reductions = self.program.nodes, self._reductions
        if not reductions:
            return "pointwise"
        if any(is_place(nodes[i].op) for i in reductions):
            return "arg-reduction"
        if "peak" in self._pairs:
            return "softmax"
        return "norm" if any(map(self._uses_what_it_reduces, self.program.outputs)) else "reduction"

    @cached_property
    def tactics(self) -> frozenset[str]:
        """Those that change this program's code."""
        found = {"vectorize", "prefetch"}
        rows = any(one.over and one.space[-1] in one.over for one in self._stages)
        columns = any(one.over and one.space[-1] not in one.over for one in self._stages)
        maps = any(not one.over or any(map(one.is_map, one.stores)) for one in self._stages)
        fused, apart = (stage(self.program, fuse=fuse, split=False) for fuse in (True, False))
        if (fused.stages, fused.scratch) != (apart.stages, apart.scratch):
            found.add("fuse-passes")
        if not self.program.is_double and any(self.program.nodes[i].op in OWN for i in self._used):
            found.add("inline-transcendentals")
        if without_divisions(self.program) != self.program:
            found.add("avoid-division")
        if rows:
            found.add("multiple-accumulators")
        if columns:
            found.add("column-tiles")
        if has_splittable(stage(self.program, fuse=True, split=True)):
            found.add("split-reduction")
        if maps:
            found.add("non-temporal-stores")
        if maps and (rows or not columns):
            found.add("unroll")
        if rows and self._pairs:
            found.add("online-reduction")
        if any(guarded(fused.program, one) for one in fused.stages):
            found.add("finite-first")
        if rows and any(kept_pair(fused.program, one) for one in fused.stages if one.space[-1] in one.over):
            found.add("keep-exponentials")
        return frozenset(found)

    def _uses_what_it_reduces(self, output: Output) -> bool:
        nodes = self.program.nodes
        behind = (nodes[i] for i in self.program.closure([output.node]))
        return any(node.is_reduction and set(node.over) & set(output.order) for node in behind)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        return self.program.closure(output.node for output in self.program.outputs)

    @cached_property
    def _reductions(self) -> tuple[int, ...]:
        return tuple(i for i in self._used if self.program.nodes[i].is_reduction)

    @cached_property
    def _pairs(self) -> frozenset[str]:
        pairs = (is_pair(self.program, a, b) for a in self._reductions for b in self._reductions)
        return frozenset(pair for pair in pairs if pair)

    @cached_property
    def _stages(self) -> tuple[Stage, ...]:
        both = (stage(self.program, fuse=fuse, split=False).stages for fuse in (True, False))
        return tuple(one for stages in both for one in stages)

    @property
    def is_writable(self) -> bool:
        """Places are whole numbers: returned once, used for nothing else. May raise UnsupportedError."""
        nodes = self.program.nodes
        arguments = [a for i in self._used for a in nodes[i].args]
        returned = [output.node for output in self.program.outputs]
        places = [i for i in (*arguments, *returned) if is_place(nodes[i].op)]
        return bool(self._stages) and len(set(places)) == len(places) and not set(places) & set(arguments)

    def write(self, strategy: Strategy) -> KernelFile:
        return write_program(self.program, strategy)


class Chains:
    """Any graph whose operators the lowering knows."""

    def recognise(self, problem: Problem) -> Chain | None:
        program = understand(problem)
        if program is None:
            return None
        chain = Chain(program)
        try:
            return chain if chain.is_writable else None
        except UnsupportedError:
            return None
