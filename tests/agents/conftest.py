from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem
from cupilot.store import Store


@pytest.fixture(scope="session")
def relu() -> Problem:
    return from_function(lambda x: torch.relu(x), [torch.rand(8, 8)])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "run.db") as opened:
        yield opened
