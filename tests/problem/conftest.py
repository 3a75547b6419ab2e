"""Problem files written inline."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from cupilot.problem.loading import load
from cupilot.problem.problem import Problem

HEADER = """\
import torch
import torch.nn.functional as F
from torch import nn
"""

WriteProblem = Callable[[str], Path]
LoadProblem = Callable[[str], Problem]


@pytest.fixture
def write_problem(tmp_path: Path) -> WriteProblem:
    def write(text: str) -> Path:
        path = tmp_path / "example.py"
        path.write_text(HEADER + textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def load_problem(write_problem: WriteProblem) -> LoadProblem:
    """Loads a file of this text; without `Model`, `forward` is the function in it."""

    def loaded(text: str) -> Problem:
        return load(write_problem(text))

    return loaded
