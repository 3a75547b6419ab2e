"""A limit on what torch may allocate while a problem is only looked at.

Counts what operations return and what factories are asked for; does not see memory taken by other libraries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

LOOK_LIMIT_BYTES = 1 << 30


def modest_memory() -> TorchDispatchMode:
    """A context in which tensors of more than `LOOK_LIMIT_BYTES` in all raise `MemoryError`."""
    return _Limit(LOOK_LIMIT_BYTES)


class _Limit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, limit_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left_bytes = limit_bytes
        self._limit_bytes = limit_bytes

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        size = args[0] if args else None
        if isinstance(size, list | tuple) and all(isinstance(extent, int) for extent in size):
            dtype = (kwargs or {}).get("dtype") or torch.get_default_dtype()
            if math.prod(size) * dtype.itemsize > self._left_bytes:  # known before it is allocated
                self._spend(self._left_bytes + 1)
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor._base is None:
                self._spend(tensor.nbytes)
        return result

    def _spend(self, size_bytes: int) -> None:
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise MemoryError(f"it needs more than {self._limit_bytes >> 20} MiB")
