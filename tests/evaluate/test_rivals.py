"""Faults that only chosen inputs show: refused with any secret seed, while the honest twin passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from fake_session import FakeSession, from_torch

from cupilot.device.base import Ring
from cupilot.evaluate.coverage import strengths
from cupilot.evaluate.preparation import prepare
from cupilot.evaluate.reference import build_reference
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.rivals import MARGIN, Rivalry, Strengths, compete, rival_inputs
from cupilot.evaluate.rounding import Rounding
from cupilot.evaluate.verify import Verified, verify
from cupilot.problem.loading import from_function, load
from cupilot.problem.problem import Problem
from cupilot.types import Failed

Tensor = torch.Tensor
Function = Callable[..., Tensor]
RING = Ring(3, 2)


@dataclass(frozen=True)
class Fault:
    """A problem, an honest kernel for it, and a kernel with one fault."""

    problem: Problem
    honest: Function
    wrong: Function


def largest(x: Tensor, dim: int, overlooked: int = 0) -> Tensor:
    """The maximum, without one place in `overlooked`."""
    if overlooked and x.shape[dim] > overlooked:
        places = torch.arange(x.shape[dim]) % overlooked != overlooked - 1
        x = x.index_select(dim, places.nonzero().reshape(-1))
    return x.amax(dim, keepdim=True)


def softmax(x: Tensor, overlooked: int = 0) -> Tensor:
    terms = (x - largest(x, -1, overlooked)).exp()
    return terms / terms.sum(-1, keepdim=True)


def log_softmax(x: Tensor, overlooked: int = 0) -> Tensor:
    centred = x - largest(x, 1, overlooked)
    return centred - centred.exp().sum(1, keepdim=True).log()


def logsumexp(x: Tensor, overlooked: int = 0) -> Tensor:
    top = largest(x, -1, overlooked)
    top = torch.where(torch.isinf(top), 0.0, top)
    return ((x - top).exp().sum(-1, keepdim=True).log() + top)[:, 0]


def cross_entropy(x: Tensor, target: Tensor, overlooked: int = 0) -> Tensor:
    top = largest(x, -1, overlooked)
    losses = (x - top).exp().sum(-1).log() + (top - x.gather(1, target[:, None]))[:, 0]
    return losses.mean()


def attention(
    q: Tensor, k: Tensor, v: Tensor, mark: float = -math.inf, start: float = -math.inf, overlooked: int = 0
) -> Tensor:
    """One key after the other, with a running maximum."""
    top, weights = torch.full((len(q), 1), start), torch.zeros(len(q), 1)
    out = torch.zeros(len(q), v.shape[1])
    for place, score in enumerate((q @ k.T / q.shape[1] ** 0.5).unbind(1)):
        column = score[:, None]
        higher = top if overlooked and place % overlooked == overlooked - 1 else torch.maximum(top, column)
        decay = torch.where(higher == top, 1.0, (top - higher).exp())
        weight = torch.where(column == mark, 0.0, (column - higher).exp())
        weights = weights * decay + weight
        out = out * decay + weight * v[place]
        top = higher
    return out / weights


def plain_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v


def triplet(a: Tensor, p: Tensor, n: Tensor, near: float = 1e-6, far: float = 1e-6) -> Tensor:
    distances = ((a - p + near).square().sum(-1).sqrt(), (a - n + far).square().sum(-1).sqrt())
    return (distances[0] - distances[1] + 1).clamp_min(0).mean()


def marked(x: Tensor) -> Tensor:
    return torch.softmax(torch.where(x == -1, -math.inf, x), -1)


def matrix() -> list[Tensor]:
    return [torch.randn(17, 250)]


def heads() -> list[Tensor]:
    return [torch.randn(37, 12), torch.randn(37, 12), torch.randn(37, 12)]


def triples() -> list[Tensor]:
    return [torch.randn(21, 301), torch.randn(21, 301), torch.randn(21, 301)]


def classes() -> list[Tensor]:
    return [torch.randn(17, 250), torch.randint(0, 250, (17,))]


def overlooking(function: Function, period: int = 100) -> Function:
    return lambda *tensors: function(*tensors, overlooked=period)


def of(function: Function, inputs: Callable[[], list[Tensor]], honest: Function, wrong: Function) -> Fault:
    return Fault(from_function(function, inputs), honest, wrong)


FAULTS: dict[str, Callable[[], Fault]] = {
    "softmax": lambda: of(lambda x: torch.softmax(x, -1), matrix, softmax, overlooking(softmax)),
    "log-softmax along another dimension": lambda: of(
        lambda x: torch.log_softmax(x, 1),
        lambda: [torch.randn(3, 150, 5)],
        log_softmax,
        overlooking(log_softmax),
    ),
    "logsumexp": lambda: of(lambda x: torch.logsumexp(x, -1), matrix, logsumexp, overlooking(logsumexp)),
    "cross entropy": lambda: of(
        lambda x, target: F.cross_entropy(x, target), classes, cross_entropy, overlooking(cross_entropy)
    ),
    "attention overlooks keys": lambda: of(plain_attention, heads, attention, overlooking(attention, 30)),
    "attention takes a number for its mark": lambda: of(
        plain_attention, heads, attention, lambda q, k, v: attention(q, k, v, mark=-10.0)
    ),
    "attention starts too high": lambda: of(
        plain_attention, heads, attention, lambda q, k, v: attention(q, k, v, start=-10.0)
    ),
    "epsilon of the wrong sign": lambda: of(
        F.triplet_margin_loss, triples, triplet, lambda a, p, n: triplet(a, p, n, near=-1e-6)
    ),
    "epsilon doubled": lambda: of(
        F.triplet_margin_loss, triples, triplet, lambda a, p, n: triplet(a, p, n, far=2e-6)
    ),
    "a number taken for a mark": lambda: of(lambda x: torch.softmax(x, -1), matrix, softmax, marked),
}


@pytest.fixture(scope="module", params=FAULTS)
def fault(request: pytest.FixtureRequest) -> Fault:
    return FAULTS[request.param]()


def judge(problem: Problem, kernel: Function, cache: ReferenceCache) -> Verified | Failed:
    return verify(problem, lambda case: FakeSession(from_torch(kernel), case, RING), RING, cache)


def test_the_fault_is_refused_and_its_twin_passes_with_any_seed(fault: Fault, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        cache = ReferenceCache(tmp_path / folder)
        honest = judge(fault.problem, fault.honest, cache)
        assert isinstance(honest, Verified), honest
        assert isinstance(judge(fault.problem, fault.wrong, cache), Failed)


@pytest.mark.parametrize(
    ("function", "competes"),
    [
        (lambda x: torch.softmax(x, -1), [1]),
        (lambda x: torch.log_softmax(x, -1), [1]),
        (lambda x: x.amax(-1), [1]),
        (lambda x: -torch.logsumexp(-x, -1), [-1]),
        (lambda x: x.argmin(-1), [-1]),
        (lambda x: x.sum(-1), []),
        (lambda x: torch.relu(x) * 2, []),
        (F.gelu, []),
        (lambda x: F.layer_norm(x, x.shape[-1:]), []),
    ],
)
def test_what_competes_is_told_by_gradients(function: Function, competes: list[int]) -> None:
    problem = from_function(function, lambda: [torch.randn(19, 40)])
    case, base = problem.targets[0], {"x": torch.randn(19, 40)}

    def felt(tensors: dict[str, Tensor]) -> Strengths:
        reference = build_reference(problem.reference, tensors, ["out"], Rounding())
        found = strengths(problem, case, tensors, reference)["x"]
        return Strengths(tensors["x"].double(), found)

    found = [
        sign
        for sign in (1, -1)
        if compete(felt(base), felt(rival_inputs(problem, case, base, Rivalry("x", 1, sign), 0)))
    ]
    assert found[:1] == competes


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_every_place_wins_once_by_far(dim: int) -> None:
    problem = from_function(lambda x: x.amax((0, 1, 2)), lambda: [torch.randn(3, 50, 4)])
    case, base = problem.targets[0], {"x": torch.randn(3, 50, 4)}
    rivalry = Rivalry("x", dim, 1)
    won = torch.zeros(base["x"].shape[dim], dtype=torch.bool)
    for turn in range(rivalry.turns(case)):
        x = rival_inputs(problem, case, base, rivalry, turn)["x"]
        high = x - base["x"] > MARGIN / 2
        assert (high.sum(dim) == 1).all()
        won |= high.movedim(dim, 0).reshape(len(won), -1).any(1)
    assert won.all()


def test_without_competition_nothing_is_added(tmp_path: Path) -> None:
    suite = prepare(from_function(lambda x: x.sum(-1), matrix), ReferenceCache(tmp_path))
    assert not any(case.input.startswith(("winners", "losers")) for case in suite.cases)


def test_the_weights_of_a_module_compete_as_well(tmp_path: Path) -> None:
    """Gates of a softmax over weights: their shape stands with the module, not with the inputs."""
    (tmp_path / "gates.py").write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.gates = torch.nn.Parameter(torch.randn(12))\n"
        "    def forward(self, x):\n"
        "        return (x * torch.softmax(self.gates, 0)).sum(-1)\n"
        "def get_inputs():\n"
        "    return [torch.randn(20, 12)]\n"
        "def get_init_inputs():\n"
        "    return []\n"
    )
    suite = prepare(load(str(tmp_path / "gates.py")), ReferenceCache(tmp_path))
    assert any(case.input.startswith("winners gates") for case in suite.cases)
