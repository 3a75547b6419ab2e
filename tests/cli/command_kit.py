"""Types of what the fixtures of this folder hand out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

Command = Callable[..., int]  # runs `cupilot ...` and returns the exit code
Bench = Callable[..., AbstractContextManager[object]]
Measured = Callable[[Bench], None]  # makes the commands measure with something else
