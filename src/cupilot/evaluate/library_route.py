"""The best library route reachable from torch on this CPU, as a torch.compile backend that swaps operators.

Products in fp32 go to oneDNN's inner product instead of MKL, which is slow on processors of other makers.
All else stays eager: convolutions, pooling and softmax are oneDNN's or torch's own already. Fuses nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.nn import functional

ROUTE = "oneDNN inner product (torch.ops.mkldnn._linear_pointwise)"


class LibraryBackend:
    """A backend for torch.compile. `swapped` counts the operators that now go another way."""

    def __init__(self) -> None:
        self.swapped = 0

    def __call__(self, graph: fx.GraphModule, _examples: list[torch.Tensor]) -> Callable[..., Any]:
        for node in graph.graph.nodes:
            if node.op == "call_function" and node.target in _SWAPS:
                node.target = _SWAPS[node.target]
                self.swapped += 1
            elif node.op == "call_method" and node.target in ("matmul", "mm", "mv", "__matmul__"):
                node.op, node.target = "call_function", product
                self.swapped += 1
        graph.recompile()
        return graph.forward


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    if not _is_eligible(x, weight) or weight.dim() != 2:
        return functional.linear(x, weight, bias)
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if not _is_eligible(left, right):
        return torch.matmul(left, right)
    if right.dim() == 2 and left.dim() >= 2:
        return linear(left, right.mT)
    if right.dim() == 1 and left.dim() == 2:
        return linear(right[None], left)[0]
    return torch.matmul(left, right)


def _is_eligible(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.dtype is torch.float32 and right.dtype is torch.float32


_SWAPS: dict[Any, Callable[..., torch.Tensor]] = {
    torch.matmul: product,
    torch.mm: product,
    torch.mv: product,
    operator.matmul: product,
    functional.linear: linear,
    torch._C._nn.linear: linear,
}
