"""Problems from a few lines, and kernels run in the sandbox beside the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from cupilot.device.base import Died, Ring
from cupilot.device.cpu import Cpu
from cupilot.evaluate.built import build
from cupilot.kernel.file import KernelFile
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.strategy.strategy import Strategy, TacticUse
from cupilot.types import DType, Failed

_TORCH = {DType.F64: torch.float64, DType.F32: torch.float32, DType.F16: torch.float16}
_HEAD = """
import torch
import torch.nn.functional as F
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, {parameters}):
        {body}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def problem(folder: Path, body: str, *inputs: str, init: str = "pass", parameters: str = "") -> Problem:
    """A module with this forward. Inputs are expressions; they are called x, y, z unless named."""
    names = parameters or ", ".join("xyz"[: len(inputs)])
    text = _HEAD.format(init=init, parameters=names, body=body, inputs=", ".join(inputs))
    path = folder / f"problem_{abs(hash(text))}.py"
    path.write_text(text)
    return load(str(path), None)


def strategy(*tactics: str) -> Strategy:
    return Strategy(tuple(TacticUse.of(tactic) for tactic in sorted(tactics)))


def worst_error(
    made: Problem, kernel: KernelFile, point: Mapping[str, int] | None = None, *, shapes: int = 3
) -> float:
    """The kernel's largest error at the target and other shapes, in units of what the framework is allowed:
    a few roundings, or eight times the framework's own error. Places count by the values they select."""
    built = build(kernel, point or first_point(kernel), made.target, Cpu())
    assert not isinstance(built, Failed), (built.reason, built.log)
    worst = 0.0
    for case in made.shapes[:shapes]:
        generator = torch.Generator().manual_seed(len(case.name))
        tensors = {
            spec.name: made.domains[spec.name].project(_drawn(spec.dtype, spec.shape, generator))
            for spec in case.signature.tensors
        }
        session = built.open(case.signature, Ring(1, 1))
        assert not isinstance(session, Failed), session.reason
        with session:
            session.write(0, {name: tensor.numpy() for name, tensor in tensors.items()})
            session.poison(0)
            ran = session.run(0, 1, order_seed=7)
            assert not isinstance(ran, Died), ran.reason
            assert session.check_guards() is None
            got = session.read(0)
        exact, usual = made.reference(tensors, torch.float64), made.reference(tensors, torch.float32)
        for spec, want, eager in zip(case.signature.outputs, exact, usual, strict=True):
            worst = max(worst, _error(got[spec.name], want, eager))
    return worst


def _drawn(dtype: DType, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    if dtype is DType.I64:
        return torch.randint(0, 3, shape, generator=generator)
    if dtype is DType.BOOL:
        return torch.rand(shape, generator=generator) < 0.5
    return torch.randn(shape, generator=generator).abs().add(0.1).to(_TORCH[dtype])


def _error(got: np.ndarray, want: torch.Tensor, eager: torch.Tensor) -> float:
    if not want.is_floating_point():
        return float((torch.from_numpy(got) != eager).any())
    size = want.abs() + 1e-3 * want.abs().max() + 1e-30
    unit = 2.0**-10 if got.dtype == np.float16 else 2.0**-23 if got.dtype == np.float32 else 2.0**-52
    own = ((eager.double() - want).abs() / size).max().item() if got.dtype != np.float64 else 0.0
    off = ((torch.from_numpy(got.astype(np.float64)) - want).abs() / size).max().item()
    return off / (24 * unit + 8 * own)
