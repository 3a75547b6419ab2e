"""Runs the user's Python and turns whatever goes wrong in it into a `ProblemError` with file and line.

The file is the user's own and runs with the user's rights. What it prints goes to standard error, so that
it cannot mix with results. Random states are set before and put back after.
"""

from __future__ import annotations

import contextlib
import random
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from cupilot.errors import CupilotError, ProblemError


def execute(path: Path) -> tuple[types.ModuleType, str]:
    """The module of a problem file and its text. Siblings of the file can be imported while it runs."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProblemError(
            f"{path} does not exist", hint="give the path of a problem file, or suite:softmax"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(
            f"{path} cannot be read: {error}", hint="a problem is a Python source file"
        ) from None
    module = types.ModuleType(f"cupilot_problem_{path.stem}")
    module.__file__ = str(path)
    try:
        code = compile(text, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ProblemError(
            f"{path}{line}: {reason}", hint="correct the Python syntax of the problem file"
        ) from None
    # inspect and dataclasses look a class's module up by name, also long after the file has run.
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent))
    try:
        with guarded(path, "running the file"), seeded(0):
            exec(code, module.__dict__)
    finally:
        sys.path.remove(str(path.parent))
    return module, text


@contextlib.contextmanager
def guarded(path: Path | None, doing: str, hint: str = "") -> Iterator[None]:
    """What the user's code raises becomes a `ProblemError` that names the deepest line of the user's file."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (CupilotError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if path is not None and frame.filename == str(path)]
        place = f"{path}:{own[-1].lineno}: " if own else f"{path}: " if path else ""
        reason = str(error).strip().split("\n")[0]
        if "CUDA" in reason or "NVIDIA" in reason:
            hint = "make tensors and modules on the CPU: cuPilot hands them to the device itself"
        raise ProblemError(
            f"{place}{doing} failed with {type(error).__name__}: {reason}",
            hint=hint or "make sure that Model(*get_init_inputs())(*get_inputs()) runs in plain PyTorch",
        ) from error


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the three random states a problem may draw from; the caller's come back afterwards."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])
