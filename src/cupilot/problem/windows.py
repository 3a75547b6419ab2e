"""Sliding windows of pools and convolutions: what they read, and the pairs of output and tap inside."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cupilot.problem.axes import Shape
from cupilot.problem.graph import Node


@dataclass(frozen=True)
class Window:
    """Along one dimension."""

    read: int  # positions of the data inside any window
    pairs: int  # (output, tap) with the tap inside the data
    taps: int  # taps that are ever inside


def window_sizes(node: Node, data: Shape, out: Shape, weight: Shape | None = None) -> list[Window]:
    """One for each spatial dimension of a pool, or of a convolution with this weight."""
    kernel = weight[2:] if weight is not None else node.integers("kernel_size")
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    stride = node.integers("stride") or kernel
    padding, dilation = node.integers("padding") or zeros, node.integers("dilation") or ones
    sizes = []
    for dim, width in enumerate(kernel):
        before, after = data[dim - len(kernel)], out[dim - len(kernel)]
        if node.attributes.get("transposed"):
            # Input and output change places: every input position spreads over a window of the output.
            spread = _window(after, before, width, stride[dim], padding[dim], dilation[dim])
            sizes.append(Window(before if spread.pairs else 0, spread.pairs, spread.taps))
        else:
            sizes.append(_window(before, after, width, stride[dim], padding[dim], dilation[dim]))
    return sizes


def _window(extent: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int) -> Window:
    read: set[int] = set()
    pairs = taps = 0
    for tap in range(kernel):
        offset = tap * dilation - padding
        first = max(0, math.ceil(-offset / stride))
        last = min(outputs - 1, (extent - 1 - offset) // stride)
        if last >= first:
            taps += 1
            pairs += last - first + 1
            read.update(range(first * stride + offset, last * stride + offset + 1, stride))
    return Window(len(read), pairs, taps)
