"""An operator of the benchmark: the reference in PyTorch, and honest kernels for it as compact texts.

A kernel text is a launch program, a line `---`, and C++; the header of a kernel file is put around it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

_INCLUDES = "#include <algorithm>\n#include <cmath>\n#include <cstring>\n"


@dataclass(frozen=True, eq=False)
class Operator:
    """`kernels` are different algorithms for `function`, by name; every one of them deserves to pass."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], list[torch.Tensor]]
    kernels: Mapping[str, str]

    def kernel_file(self, kernel: str) -> str:
        launch, _, source = self.kernels[kernel].strip().partition("\n---\n")
        summary = f"{self.name}: {kernel}"
        return (
            f"/* cupilot 1\n{summary}\nlaunch:\n{textwrap.indent(launch, '    ')}\n*/\n{_INCLUDES}{source}\n"
        )


def elementwise(value: str, helpers: str = "") -> str:
    """A kernel for a function of one element: `value` is C++ that computes it from `v`."""
    return f"""
n = x.numel
kernel[cdiv(n, 4096)](x, out, n)
---
{helpers}
extern "C" void kernel(long block, const float* x, float* out, long n) {{
    for (long i = block * 4096; i < std::min(n, block * 4096 + 4096); i++) {{
        float v = x[i];
        out[i] = {value};
    }}
}}
"""


def per_row(value: str, arguments: str = "x", helpers: str = "") -> str:
    """A kernel that makes one number of every row: `value` is a C++ block that ends in `return`."""
    names = [name.strip() for name in arguments.split(",")]
    parameters = ", ".join(f"const float* {name}" for name in names)
    rows = "\n".join(f"    {name} += row * n;" for name in names)
    calls = ", ".join(names)
    return f"""
rows, n = {names[0]}.shape
kernel[rows]({calls}, out, n)
---
{helpers}
static float reduce({parameters}, long n) {{{value}}}

extern "C" void kernel(long row, {parameters}, float* out, long n) {{
{rows}
    out[row] = reduce({calls}, n);
}}
"""
