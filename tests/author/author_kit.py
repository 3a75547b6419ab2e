"""Problems from a few lines, and kernels run in the sandbox beside the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

import numpy as np
import torch

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined, Parent
from cupilot.device.base import Died, Ring
from cupilot.device.cpu import Cpu
from cupilot.evaluate.built import build
from cupilot.kernel.file import KernelFile
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.strategy.algebra import settle
from cupilot.strategy.strategy import Strategy, TacticUse, check
from cupilot.types import DType, Failed, Signature

_TORCH = {DType.F64: torch.float64, DType.F32: torch.float32, DType.F16: torch.float16}
Run = Callable[[Signature, Mapping[str, torch.Tensor]], Mapping[str, np.ndarray]]
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


def outlines(author: BuiltinAuthor, made: Problem, rng: Random) -> Iterator[Strategy]:
    """Nothing, everything that goes together, and a random choice."""
    book = author.cookbook(made)
    every = [TacticUse.of(tactic.id) for tactic in book]
    rng.shuffle(every)
    for uses in ([], every, [use for use in every if rng.random() < 0.6]):
        plan = Strategy(tuple(sorted(settle(uses, book))))
        check(plan, book)
        yield plan


def written(author: BuiltinAuthor, made: Problem, plan: Strategy) -> KernelFile:
    brief = Brief(made, "cpu", "cpp", author.cookbook(made), None)
    plain = author.generate(brief)
    assert not isinstance(plain, Declined), plain.reason
    kernel = author.write(brief, plan, Parent(Strategy(), plain, 1.0))
    assert not isinstance(kernel, Declined), kernel.reason
    return kernel


def worst_error(
    made: Problem, kernel: KernelFile, point: Mapping[str, int] | None = None, *, shapes: int = 3
) -> float:
    """The kernel's largest error at the target and other shapes, in units of what the framework is allowed:
    a few roundings, or eight times the framework's own error. Places count by the values they select."""
    run = runner(made, kernel, point)
    worst = 0.0
    for case in made.shapes[:shapes]:
        generator = torch.Generator().manual_seed(len(case.name))
        tensors = {
            spec.name: made.domains[spec.name].project(_drawn(spec.dtype, spec.shape, generator))
            for spec in case.signature.tensors
        }
        got = run(case.signature, tensors)
        exact, usual = made.reference(tensors, torch.float64), made.reference(tensors, torch.float32)
        for spec, want, eager in zip(case.signature.outputs, exact, usual, strict=True):
            worst = max(worst, _error(got[spec.name], want, eager))
    return worst


def swallowed_nans(made: Problem, kernel: KernelFile, seed: int) -> int:
    """How many results are finite where the framework's are not, or the other way round; one bad number at
    a random place of every input."""
    rng, wrong = Random(seed), 0
    run = runner(made, kernel, None)
    for bad in (float("nan"), float("inf")):
        for spoiled in made.target.tensors:
            tensors = made.draw(seed)
            flat = tensors[spoiled.name].view(-1)
            flat[rng.choice(flat.nonzero().view(-1).tolist())] = bad
            wanted = made.reference(tensors, torch.float64)
            got = run(made.target, tensors)
            for spec, want in zip(made.target.outputs, wanted, strict=True):
                wrong += int((torch.from_numpy(got[spec.name]).isfinite() != want.isfinite()).sum())
    return wrong


def runner(made: Problem, kernel: KernelFile, point: Mapping[str, int] | None) -> Run:
    """Runs the kernel in the sandbox, its blocks in a random order, its results poisoned before."""
    built = build(kernel, point or first_point(kernel), made.target, Cpu())
    assert not isinstance(built, Failed), (built.reason, built.log)

    def run(signature: Signature, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, np.ndarray]:
        session = built.open(signature, Ring(1, 1))
        assert not isinstance(session, Failed), session.reason
        with session:
            session.write(0, {name: tensor.numpy() for name, tensor in tensors.items()})
            session.poison(0)
            ran = session.run(0, 1, order_seed=7)
            assert not isinstance(ran, Died), ran.reason
            assert session.check_guards() is None
            return session.read(0)

    return run


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
