"""cuPilot evolves faster kernels for PyTorch references, and proves them."""

from __future__ import annotations

from typing import Any

__all__ = ["evaluate", "optimize"]


def __getattr__(name: str) -> Any:
    """The Python API, loaded when it is first used: torch takes seconds."""
    if name in __all__:
        from cupilot import api

        return getattr(api, name)
    raise AttributeError(f"module 'cupilot' has no attribute {name!r}")
