"""The champion as one plain C++ file without cuPilot: the kernel, and one entry for every proven shape.

What a launch program comes to at a shape is fixed, so grids and numbers become constants. Blocks are spread
over threads by OpenMP, which shares its pool with torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from cupilot.errors import UsageError
from cupilot.evaluate.preparation import planned_shapes
from cupilot.evaluate.result import Evaluation
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Launch, Plan, ScratchSpec, TensorArg, Zero
from cupilot.kernel.tunables import Point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import Signature, TensorSpec

_SUPPORT = """
#include <string.h>

namespace {
struct Any {  // a tensor's memory, as whatever pointer the kernel wants
    void* at;
    template <class T> operator T*() const { return static_cast<T*>(at); }
};
template <class Block> void spread(long blocks, int threads, Block block) {
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1 && blocks > 1)
    for (long i = 0; i < blocks; ++i) block(i);
}
}  // namespace
"""


@dataclass(frozen=True)
class Proven:
    """One shape at which the kernel was proven, and where its code is."""

    case: ShapeCase
    source: int  # which of the sources
    entry: str
    scratch_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Native:
    sources: tuple[str, ...]  # one for each tuned point
    proven: tuple[Proven, ...]


def native_code(problem: Problem, kernel: KernelFile, proof: Evaluation) -> Native:
    """Everything that `proof` covers."""
    cases = [case for case in planned_shapes(problem)[0] if case.name in proof.shapes]
    if not cases:
        raise UsageError("the proof covers no shape", hint="prove the kernel again: cupilot resume RUN")
    points: list[Point] = []
    entries: dict[int, list[str]] = {}
    proven = []
    for number, case in enumerate(cases):
        point = dict(proof.targets[case.name].tuned if case.name in proof.targets else proof.tuned)
        if point not in points:
            points.append(point)
        source = points.index(point)
        plan = run(kernel.launch, bind(kernel, case.signature, point), grid_style=GridStyle.CPU)
        entries.setdefault(source, []).append(_entry(number, plan, case.signature))
        proven.append(Proven(case, source, f"cupilot_{number}", tuple(s.size_bytes for s in plan.scratch)))
    sources = tuple(_source(kernel, point, entries[i]) for i, point in enumerate(points))
    return Native(sources, tuple(proven))


def _source(kernel: KernelFile, point: Mapping[str, int], entries: Sequence[str]) -> str:
    defines = "".join(f"#define {name} {value}\n" for name, value in sorted(point.items()))
    return f"{defines}{kernel.source}{_SUPPORT}" + "".join(entries)


def _entry(number: int, plan: Plan, signature: Signature) -> str:
    """`memory`: inputs and weights in order, then outputs, then scratch."""
    specs: tuple[TensorSpec | ScratchSpec, ...] = (*signature.tensors, *signature.outputs, *plan.scratch)
    place = {spec.name: index for index, spec in enumerate(specs)}
    sizes = {spec.name: spec.size_bytes for spec in specs}
    lines = [f'\nextern "C" void cupilot_{number}(void* const* memory, int threads) {{']
    for step in plan.steps:
        if isinstance(step, Zero):
            lines.append(f"    memset(memory[{place[step.name]}], 0, {sizes[step.name]});")
        else:
            lines.append(_launch(step, place))
    return "\n".join([*lines, "}", ""])


def _launch(step: Launch, place: Mapping[str, int]) -> str:
    args = [_index(step.grid, dim) for dim in range(len(step.grid))]
    for arg in step.args:
        if isinstance(arg, TensorArg):
            args.append(f"Any{{memory[{place[arg.name]}]}}")
        else:
            args.append(f"{arg!r}L" if isinstance(arg, int) else repr(arg))
    call = f"{step.kernel}({', '.join(args)})"
    return f"    spread({prod(step.grid)}, threads, [&](long i) {{ {call}; }});"


def _index(grid: Sequence[int], dim: int) -> str:
    """The first extent varies fastest."""
    below = prod(grid[:dim])
    inside = "i" if below == 1 else f"i / {below}"
    return inside if dim == len(grid) - 1 else f"{inside} % {grid[dim]}"
