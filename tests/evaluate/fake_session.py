"""A session that applies a Python function to arrays, for verdicts without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import torch

from cupilot.device.base import NUMPY_TYPES, Died, Ran, Ring
from cupilot.problem.cases import ShapeCase

Arrays = dict[str, np.ndarray]
Kernel = Callable[..., Any]  # inputs by name and `out` (or out0, ...) to write into


class FakeSession:
    """Holds buffers as the real one does; `kernel` gets the arrays of a slot and writes the outputs."""

    pid = 0

    def __init__(self, kernel: Kernel, case: ShapeCase, ring: Ring) -> None:
        self._kernel, self._ring = kernel, ring
        signature = case.signature
        self._inputs = [_buffers(signature.tensors) for _ in range(ring.inputs)]
        self._outputs = [_buffers(signature.outputs) for _ in range(ring.outputs)]
        self._random = np.random.default_rng(0)
        self.orders: list[int] = []
        self.guards: str | None = None

    def write(self, slot: int, tensors: Mapping[str, np.ndarray]) -> None:
        for name, array in tensors.items():
            self._inputs[slot][name][...] = array

    def poison(self, slot: int) -> None:
        for array in self._outputs[slot].values():
            raw = array.reshape(-1).view(np.uint8)
            raw[:] = 0xFF if array.dtype.kind == "f" else 0x7B
            array.reshape(-1).view(np.uint8)[:: array.itemsize] = self._random.integers(256)

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        self.orders.append(order_seed)
        for call in range(first, first + count):
            tensors, outputs = (
                self._inputs[call % self._ring.inputs],
                self._outputs[call % self._ring.outputs],
            )
            reason = self._kernel(**tensors, **outputs)
            if isinstance(reason, str):
                return Died(reason)
        return Ran(0, 0, 0)

    def read(self, slot: int) -> Arrays:
        return {name: array.copy() for name, array in self._outputs[slot].items()}

    def read_inputs(self, slot: int) -> Arrays:
        return {name: array.copy() for name, array in self._inputs[slot].items()}

    def check_guards(self) -> str | None:
        return self.guards

    def cpu_time_ns(self) -> int:
        return 0

    def pin(self, core: int) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...


def _buffers(specs: Any) -> Arrays:
    return {spec.name: np.zeros(spec.shape, NUMPY_TYPES[spec.dtype]) for spec in specs}


def from_torch(function: Callable[..., Any]) -> Kernel:
    """A kernel that computes with torch on single-precision tensors; inputs come in order."""

    def kernel(**arrays: np.ndarray) -> None:
        outputs = {name: array for name, array in arrays.items() if name.startswith("out")}
        inputs = [torch.from_numpy(array.copy()) for name, array in arrays.items() if name not in outputs]
        with torch.no_grad():
            result = function(*inputs)
        results = result if isinstance(result, (tuple, list)) else [result]
        for array, value in zip(outputs.values(), results, strict=True):
            array[...] = value.numpy()

    return kernel
