"""The kernels of examples/cuda: each right at its target and at a small odd shape, without a false alarm.

`benchmarks/cuda_examples.py` puts them through the whole contract.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cupilot.device.base import Ran, Ring
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.evaluate.built import build
from cupilot.evaluate.compare import compare
from cupilot.evaluate.inputs import Distribution, draw_inputs
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.rounding import rounding_of
from cupilot.evaluate.suite import raw_arrays
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.types import Failed

FOLDER = Path(__file__).parents[3] / "examples" / "cuda"
KERNELS = sorted(FOLDER.glob("*/*.cu"))


@cache
def _problem(folder: Path) -> Problem:
    return load(str(folder / "problem.py"))


@cache
def _material(folder: Path, name: str) -> tuple[ShapeCase, dict, Reference]:  # type: ignore[type-arg]
    problem = _problem(folder)
    case = next(case for case in problem.shapes if case.name == name)
    tensors = draw_inputs(problem, case, Distribution("normal"), 3)
    names = [spec.name for spec in case.signature.outputs]
    reference = build_reference(problem.reference, tensors, names, rounding_of(problem.precision))
    return case, raw_arrays(tensors), reference


def test_there_are_enough_of_them() -> None:
    assert len(KERNELS) >= 30


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_is_right(path: Path) -> None:
    check(path, CudaEmulated())


def check(path: Path, device: CudaEmulated) -> None:
    problem, file = _problem(path.parent), parse_kernel(path.read_text())
    built = build(file, first_point(file), problem.target, device)
    assert not isinstance(built, Failed), built
    for name in ("target", *(case.name for case in problem.shapes if case.name == "odd")):
        case, raw, reference = _material(path.parent, name)
        opened = built.open(case.signature, Ring(1, 1))
        assert not isinstance(opened, Failed), opened
        with opened as session:
            session.write(0, raw)
            ran = session.run(0, 1, order_seed=11)
            assert isinstance(ran, Ran), ran
            found = session.read(0)
        for spec, expected in zip(case.signature.outputs, reference.outputs, strict=True):
            assert compare(found[spec.name], spec.dtype, expected).is_right, (name, spec.name)
