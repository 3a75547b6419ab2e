"""What an operator family is to the built-in author: it recognises a graph and writes kernels for it."""

from __future__ import annotations

from typing import Protocol

from cupilot.kernel.file import KernelFile
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy


class Recognised(Protocol):
    """A problem of a family, understood. Holds what the family needs to write kernels for it."""

    @property
    def family(self) -> str:
        """The name under which credit is shared: "pointwise", "softmax", "norm", "product", ..."""

    @property
    def tactics(self) -> frozenset[str]:
        """The cookbook's tactics that make sense for this very problem."""

    def write(self, strategy: Strategy) -> KernelFile:
        """The kernel that realises the strategy; for the empty strategy the plain, obviously correct one.

        Every valid strategy over `tactics` can be written.
        """


class Family(Protocol):
    def recognise(self, problem: Problem) -> Recognised | None:
        """From the operator graph, never from names; None where the family does not cover the graph."""
