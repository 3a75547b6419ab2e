"""How long a verdict takes, and where the time goes: right and wrong kernels on inputs of 16 MB.

    python -m benchmarks.verdict_cost                                # every operator
    python -m benchmarks.verdict_cost --operator gelu                # these only
    python -m benchmarks.verdict_cost --results FILE --minutes 2     # a slice; the same line again goes on

The operators, their kernels and the changes that make them wrong are those of `benchmarks.false_verdicts`, at
other sizes. Measured is the correctness part of an evaluation, after compilation, the same for `--quick` and
without it: first with an empty cache of references (cold), then again with the references it left (cached),
each with a problem loaded anew. Wall time on one thread: run it on a quiet machine. Does not time kernels.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from benchmarks.false_verdicts.__main__ import chosen
from benchmarks.false_verdicts.operator import Operator
from benchmarks.false_verdicts.operators import OPERATORS

from cupilot.device.base import Session
from cupilot.device.registry import open_device
from cupilot.evaluate.built import VERIFY_RING, BuiltKernel, build
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.verify import Verified, verify
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem
from cupilot.types import Failed

Tensors = list[torch.Tensor]
ROWS, COLUMNS = 4096, 1024  # 16 MB of single precision
# By operator: which of its honest kernels, and inputs of 16 MB in all.
CASES: Mapping[str, tuple[str, Callable[[], Tensors]]] = {
    "gelu": ("error function", lambda: [torch.randn(ROWS, COLUMNS)]),
    "softmax": ("online", lambda: [torch.randn(ROWS, COLUMNS)]),
    "layer_norm": (
        "two passes", lambda: [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS), torch.randn(COLUMNS)],
    ),
    "sum": ("lanes", lambda: [torch.randn(ROWS, COLUMNS)]),
    "argmin": ("sequential", lambda: [torch.randn(COLUMNS, ROWS)]),
    "cumsum": ("sequential", lambda: [torch.randn(COLUMNS, ROWS)]),
    "max_pool1d": ("direct", lambda: [torch.randn(COLUMNS, ROWS)]),
    "depthwise": ("direct", lambda: [torch.randn(4, 64, 128, 128), torch.randn(64, 9)]),
    "transpose": ("tiles", lambda: [torch.randn(4, COLUMNS, COLUMNS)]),
    "cross_entropy": (
        "two passes", lambda: [torch.randn(ROWS, COLUMNS), torch.randint(0, COLUMNS, (ROWS,))],
    ),
    "matmul": ("tiles", lambda: [torch.randn(1448, 1448), torch.randn(1448, 1448)]),
}  # fmt: skip
WRONG = 5  # kernels for each operator
PARTS = ("learn", "prepare", "load", "fresh", "run", "compare")
GOALS_S = {"right": 6.0, "wrong": 1.5}


@dataclass(frozen=True)
class Cost:
    """Seconds; those of a right kernel by part."""

    operator: str
    cold_s: Mapping[str, float]
    cached_s: Mapping[str, float]
    wrong_s: Sequence[float]  # one for each wrong kernel, references cached


def main() -> int:
    options = _options()
    known = _known(options.results)
    stop_s = time.monotonic() + options.minutes * 60
    torch.set_num_threads(1)
    for name in options.operator or CASES:
        if name in known:
            continue
        if time.monotonic() >= stop_s:
            print(f"{len(known)} of {len(options.operator or CASES)} done; the same line again goes on")
            return 3
        known[name] = cost_of(name)
        if options.results is not None:
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(known[name])) + "\n")
    print(page([known[name] for name in options.operator or CASES]))
    return 0


def cost_of(name: str) -> Cost:
    operator = next(each for each in OPERATORS if each.name == name)
    kernel, inputs = CASES[name]
    operator = replace(operator, inputs=inputs, kernels={kernel: operator.kernels[kernel]})
    with tempfile.TemporaryDirectory(prefix="cupilot-cost-") as folder:
        cache = ReferenceCache(Path(folder))
        right = _built(operator, operator.kernel_file(kernel))
        assert isinstance(right, BuiltKernel), right
        cold_s, cached_s = (_right_s(operator, right, cache) for _ in range(2))
        wrong_s = list(itertools.islice(_wrong_s(operator, cache), WRONG))
    return Cost(name, cold_s, cached_s, wrong_s)


def _problem(operator: Operator) -> Problem:
    return from_function(operator.function, operator.inputs, name=operator.name)


def _built(operator: Operator, text: str) -> BuiltKernel | Failed:
    kernel = parse_kernel(text)
    return build(kernel, first_point(kernel), _problem(operator).target, open_device("cpu"))


def _right_s(operator: Operator, built: BuiltKernel, cache: ReferenceCache) -> dict[str, float]:
    problem, start_s = _problem(operator), time.perf_counter()
    _ = problem.shapes, problem.domains
    learned_s = time.perf_counter() - start_s
    found = verify(problem, _opener(built), VERIFY_RING, cache)
    assert isinstance(found, Verified), found
    return {"learn": learned_s, **found.time_s, "all": time.perf_counter() - start_s}


def _wrong_s(operator: Operator, cache: ReferenceCache) -> Iterator[float]:
    """Seconds to the verdict on wrong kernels; a change that leaves a kernel right makes none."""
    for _, _, mutant in chosen([operator]):
        assert mutant is not None
        built = _built(operator, mutant.text)
        if isinstance(built, Failed):
            continue
        problem, start_s = _problem(operator), time.perf_counter()
        found = verify(problem, _opener(built), VERIFY_RING, cache)
        if isinstance(found, Failed):
            yield time.perf_counter() - start_s


def _opener(built: BuiltKernel) -> Callable[[ShapeCase], Session | Failed]:
    return lambda case: built.open(case.signature, VERIFY_RING)


def page(costs: Sequence[Cost]) -> str:
    lines = ["a right kernel, seconds; of which:", _row("", "", "all", *PARTS, "rest")]
    for cost in costs:
        for kind, spent_s in (("cold", cost.cold_s), ("cached", cost.cached_s)):
            rest = spent_s["all"] - sum(spent_s.get(part, 0.0) for part in PARTS)
            figures = (spent_s["all"], *(spent_s.get(part, 0.0) for part in PARTS), rest)
            lines.append(_row(cost.operator, kind, *(f"{figure:.2f}" for figure in figures)))
    lines += ["", "a wrong kernel, references cached, seconds:", _row("", "kernels", "median", "most")]
    for cost in costs:
        median, most = statistics.median(cost.wrong_s), max(cost.wrong_s)
        lines.append(_row(cost.operator, str(len(cost.wrong_s)), f"{median:.2f}", f"{most:.2f}"))
    lines.append("")
    for goal, worst_s in (
        ("right", [cost.cached_s["all"] for cost in costs]),
        ("wrong", [seconds for cost in costs for seconds in cost.wrong_s]),
    ):
        within = sum(seconds <= GOALS_S[goal] for seconds in worst_s)
        lines.append(f"{goal}, cached: {within} of {len(worst_s)} within {GOALS_S[goal]} s")
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"  {cells[0]:14}" + "".join(f"{cell:>9}" for cell in cells[1:])


def _known(path: Path | None) -> dict[str, Cost]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    costs = [Cost(**json.loads(line)) for line in lines]
    return {cost.operator: cost for cost in costs}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operator", action="append", choices=list(CASES), metavar="NAME")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep each figure here, and reuse it")
    parser.add_argument(
        "--minutes", type=float, default=1e6, help="begin no further operator after this long"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
