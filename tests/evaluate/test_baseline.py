"""A real baseline process: set up like a candidate's, or every ratio over it is worth nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cupilot.device.base import Ran, Ring
from cupilot.errors import ProblemError
from cupilot.evaluate.baseline import BaselineHost, BaselineKind, BaselineSession, Unavailable
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem

RING = Ring(3, 2)
SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(1024, 1024)]
def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    path: Path = tmp_path_factory.mktemp("baseline") / "rectify.py"
    path.write_text(SOURCE)
    return load(str(path), None)


@pytest.fixture(scope="module")
def host(problem: Problem) -> Iterator[BaselineHost]:
    with BaselineHost(problem) as found:
        yield found


@pytest.fixture
def eager(host: BaselineHost, problem: Problem) -> Iterator[BaselineSession]:
    found = host.fork(BaselineKind.EAGER, problem.targets[0].signature, RING)
    assert isinstance(found, BaselineSession)
    with found:
        yield found


def mapping_at(pid: int, address: int) -> dict[str, str]:
    """The permissions of the mapping at an address, and how much of it lies in huge pages."""
    found: dict[str, str] = {}
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = line.split()[0]
        if not head.endswith(":"):
            if found:
                return found
            start, end = (int(part, 16) for part in head.split("-"))
            if start <= address < end:
                found = {"permissions": line.split()[1]}
        elif found:
            found[head] = line.split()[1]
    return found


def test_inputs_lie_in_private_huge_pages(eager: BaselineSession) -> None:
    """As a candidate's do. On small or shared pages eager is slower, and every kernel looks better."""
    found = mapping_at(eager.pid, eager._inputs.base)
    assert found["permissions"] == "rw-p"
    if "[never]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        assert int(found["AnonHugePages:"]) > 0


def test_it_computes_on_what_is_written_and_uses_time(eager: BaselineSession, problem: Problem) -> None:
    (spec,) = problem.targets[0].signature.tensors
    for slot in range(RING.inputs):
        eager.write(slot, {spec.name: np.ones(spec.shape, np.float32)})
    before = eager.cpu_time_ns()
    ran = eager.run(0, 20)
    assert isinstance(ran, Ran)
    assert before <= ran.cpu_start_ns < ran.cpu_end_ns <= eager.cpu_time_ns()


def test_it_has_one_thread(eager: BaselineSession) -> None:
    eager.run(0, 5)
    assert len(list(Path(f"/proc/{eager.pid}/task").iterdir())) == 1


def test_without_a_product_the_library_has_nothing_to_offer(host: BaselineHost, problem: Problem) -> None:
    found = host.fork(BaselineKind.LIBRARY, problem.targets[0].signature, RING)
    assert isinstance(found, Unavailable) and "better route" in found.reason


def test_a_problem_without_a_file_has_no_baseline(problem: Problem) -> None:
    with pytest.raises(ProblemError, match="no file"):
        BaselineHost(replace(problem, path=None))
