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

_BESIDE = frozenset({"multiple-accumulators", "column-tiles", "unroll", "prefetch"})  # for what is no product


@dataclass(frozen=True)
class Matrices(Chain):
    """A chain with at least one product of matrices in it."""

    @cached_property
    def family(self) -> str:
        return "product"

    @cached_property
    def tactics(self) -> frozenset[str]:
        fused = stage(self.program, fuse=True, split=False)
        products = [(one, sides(fused.program, one)) for one in fused.stages]
        spared = any(found and found.spares(fused.program, one) for one, found in products)
        mine = TACTICS | {"skip-zeros"} if spared else TACTICS
        if all(found for _, found in products):
            return mine | super().tactics - _BESIDE
        return mine | super().tactics


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
