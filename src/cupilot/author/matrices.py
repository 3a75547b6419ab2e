"""The family of matrix products, alone or in chains: linear layers, batches, contractions, attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cupilot.author.axes import UnsupportedError
from cupilot.author.chains import Chain
from cupilot.author.products import TACTICS, sides
from cupilot.author.stages import stage
from cupilot.author.understanding import understand
from cupilot.problem.problem import Problem


@dataclass(frozen=True)
class Matrices(Chain):
    """A chain with at least one product of matrices in it."""

    @cached_property
    def family(self) -> str:
        return "product"

    @cached_property
    def tactics(self) -> frozenset[str]:
        fused = stage(self.program, fuse=True, split=False)
        if all(sides(fused.program, one) for one in fused.stages):
            return TACTICS | super().tactics - {"multiple-accumulators"}
        return TACTICS | super().tactics


class Products:
    def recognise(self, problem: Problem) -> Matrices | None:
        program = understand(problem)
        if program is None:
            return None
        try:
            stages = stage(program, fuse=True, split=False)
        except UnsupportedError:
            return None
        if not any(sides(stages.program, one) for one in stages.stages):
            return None
        return Matrices(program)
