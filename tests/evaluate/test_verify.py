"""Verdicts through a fake session: right kernels pass, wrong ones fail with a reason people understand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fake_session import FakeSession, Kernel, from_torch

from cupilot.device.base import Ring
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.verify import Verified, verify
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem
from cupilot.types import Failed, Stage

RING = Ring(3, 2)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def softmax_inputs() -> list[torch.Tensor]:
    return [torch.randn(24, 96)]


def argmax(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(-1)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def product_inputs() -> list[torch.Tensor]:
    return [torch.randn(20, 48), torch.randn(48, 12)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> ReferenceCache:
    return ReferenceCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def soft() -> Problem:
    return from_function(softmax, softmax_inputs)


def judge(problem: Problem, kernel: Kernel, cache: ReferenceCache) -> Verified | Failed:
    return verify(problem, lambda case: FakeSession(kernel, case, RING), RING, cache)


def refused(problem: Problem, kernel: Kernel, cache: ReferenceCache) -> str:
    verdict = judge(problem, kernel, cache)
    assert isinstance(verdict, Failed)
    assert verdict.stage is Stage.VERIFY
    return verdict.reason


def test_a_right_kernel_is_verified_with_its_evidence(soft: Problem, cache: ReferenceCache) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        terms = (x - x.amax(-1, keepdim=True)).exp()
        return terms * (1 / terms.sum(-1, keepdim=True))

    verdict = judge(soft, from_torch(kernel), cache)
    assert isinstance(verdict, Verified)
    assert 0 < verdict.error.ratio <= 1
    assert verdict.error.input in verdict.inputs or verdict.error.input.startswith("fresh")
    assert len(verdict.inputs) >= 8
    assert verdict.shapes[-1] == "target"
    assert verdict.dropped.keys().isdisjoint(verdict.inputs)
    assert verdict.coverage["target"].share == 1.0
    assert set(verdict.time_s) == {"prepare", "load", "fresh", "run", "compare"}


def from_maximum(x: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    terms = torch.exp(x - largest)
    return terms / terms.sum(-1, keepdim=True)


def tail(x: torch.Tensor) -> torch.Tensor:
    out = torch.softmax(x, -1)
    out[:, x.shape[1] // 8 * 8 :] = 0
    return out


WRONG: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "tail": (tail, "is the tail handled"),
    "no maximum": (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), "Subtract the maximum"),
    "half": (lambda x: torch.softmax(x.half().float(), -1), ""),
    "factor": (lambda x: torch.softmax(x, -1) * 1.01, "1.01 times what is expected"),
    "half result": (lambda x: torch.softmax(x, -1).half().float(), ""),
    "wrong dimension": (lambda x: torch.softmax(x, 0), ""),
    "starts at zero": (lambda x: from_maximum(x, x.amax(-1, keepdim=True).clamp(min=0)), ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_with_a_hint(name: str, soft: Problem, cache: ReferenceCache) -> None:
    function, hint = WRONG[name]
    reason = refused(soft, from_torch(function), cache)
    assert hint in reason
    assert "expected" in reason
    assert "shape" in reason


def test_a_kernel_that_knows_one_shape_only_is_told_so(soft: Problem, cache: ReferenceCache) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1) if x.shape[1] < 90 else torch.softmax(x, -1) * 0.5

    reason = refused(soft, from_torch(kernel), cache)
    assert "right at small" in reason


def test_elements_left_unwritten_are_counted(soft: Problem, cache: ReferenceCache) -> None:
    def kernel(x: np.ndarray, out: np.ndarray) -> None:
        out[:-1] = torch.softmax(torch.from_numpy(x.copy()), -1).numpy()[:-1]

    reason = refused(soft, kernel, cache)
    assert "of out unwritten" in reason
    assert reason.startswith("the kernel left")


def test_a_kernel_that_writes_its_input_fails(soft: Problem, cache: ReferenceCache) -> None:
    def kernel(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = torch.softmax(torch.from_numpy(x.copy()), -1).numpy()
        x[0, 0] += 1

    assert "changed its input x" in refused(soft, kernel, cache)


def test_a_kernel_that_differs_between_runs_fails(soft: Problem, cache: ReferenceCache) -> None:
    calls = iter(range(10**6))

    def kernel(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = torch.softmax(torch.from_numpy(x.copy()), -1).numpy() * np.float32(
            1 + 1e-7 * (next(calls) % 2)
        )

    assert "differs between runs" in refused(soft, kernel, cache)


def test_a_kernel_that_dies_or_writes_outside_fails(soft: Problem, cache: ReferenceCache) -> None:
    assert "the kernel crashed" in refused(soft, lambda **_: "crashed", cache)

    def opened(case: Any) -> FakeSession:
        session = FakeSession(from_torch(softmax), case, RING)
        session.guards = "wrote beyond out"
        return session

    verdict = verify(soft, opened, RING, cache)
    assert isinstance(verdict, Failed)
    assert "wrote beyond out" in verdict.reason


def test_a_session_that_cannot_be_opened_is_the_verdict(soft: Problem, cache: ReferenceCache) -> None:
    failed = Failed(Stage.LOAD, "no symbol")
    assert verify(soft, lambda case: failed, RING, cache) is failed


def test_block_order_is_shuffled_in_all_but_one_run_of_a_repeated_case(
    soft: Problem, cache: ReferenceCache
) -> None:
    sessions: list[FakeSession] = []

    def opened(case: Any) -> FakeSession:
        sessions.append(FakeSession(from_torch(softmax), case, RING))
        return sessions[-1]

    assert isinstance(verify(soft, opened, RING, cache), Verified)
    first = sessions[0].orders[:3]
    assert first[2] == 0
    assert len(set(first)) == 3


def test_any_tie_of_an_argmax_passes_and_the_last_position_counts(cache: ReferenceCache) -> None:
    problem = from_function(argmax, softmax_inputs)
    last = lambda x: x.shape[1] - 1 - x.flip(1).argmax(1)  # noqa: E731
    verdict = judge(problem, from_torch(last), cache)
    assert isinstance(verdict, Verified) or "nan" in verdict.reason
    assert isinstance(judge(problem, from_torch(argmax), cache), Verified)
    assert refused(
        problem, from_torch(lambda x: x[:, :-1].argmax(1) if x.shape[1] > 1 else x.argmax(1)), cache
    )


def test_every_term_of_a_product_is_covered(cache: ReferenceCache) -> None:
    problem = from_function(product, product_inputs)
    verdict = judge(problem, from_torch(product), cache)
    assert isinstance(verdict, Verified)
    assert all(coverage.share == 1.0 for coverage in verdict.coverage.values())

    def dropped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a = a.clone()
        a[-1, a.shape[1] // 2] = 0
        return a @ b

    assert refused(problem, from_torch(dropped), cache)
    rounded = lambda a, b: (a.bfloat16().float()) @ b  # noqa: E731
    assert refused(problem, from_torch(rounded), cache)


def test_fresh_cases_catch_a_kernel_that_knows_the_kept_inputs(soft: Problem, cache: ReferenceCache) -> None:
    seen: set[bytes] = set()

    def learning(x: np.ndarray, out: np.ndarray) -> None:
        seen.add(x.tobytes())
        out[...] = torch.softmax(torch.from_numpy(x.copy()), -1).numpy()

    def cheating(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = torch.softmax(torch.from_numpy(x.copy()), -1).numpy() if x.tobytes() in seen else 0.0

    assert isinstance(judge(soft, learning, cache), Verified)
    assert "fresh" in refused(soft, cheating, cache)
