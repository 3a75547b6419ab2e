"""The null-kernel gate: kernels that do nothing must fail on a problem before it is accepted.

Each such kernel is a function of the inputs and the reference; it must be wrong on at least one live input. A
gate that says nothing about a problem (half precision where results are whole numbers) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cupilot.evaluate.compare import compare
from cupilot.evaluate.reference import Array, OutputReference, Reference
from cupilot.types import DType


@dataclass(frozen=True)
class Trial:
    """One live input of the problem, its reference, and what comes out when half of the data is missing."""

    tensors: Mapping[str, torch.Tensor]
    reference: Reference
    halved: tuple[torch.Tensor, ...]


Null = Callable[[Sequence[Trial], int, int], Array | None]  # trials, which trial, which output


def failing_gates(trials: Sequence[Trial], storage: str) -> tuple[str, ...]:
    """The names of null kernels that pass as right on every trial."""
    return tuple(name for name, null in _NULLS.items() if _passes(null, trials, storage, name))


def _passes(null: Null, trials: Sequence[Trial], storage: str, name: str) -> bool:
    if name == "half-precision round trip" and storage != "f32":
        return False
    applied = False
    for place in range(len(trials)):
        for which, reference in enumerate(trials[place].reference.outputs):
            answer = null(trials, place, which)
            if answer is None:
                continue
            applied = True
            if not compare(np.asarray(answer), DType.F32, reference).is_right:
                return False
    return applied


def _filled(value: float) -> Null:
    def null(trials: Sequence[Trial], place: int, which: int) -> Array:
        return np.full_like(_answer(trials[place].reference.outputs[which]), value)

    return null


def _mean(trials: Sequence[Trial], place: int, which: int) -> Array:
    """The mean over the output; for a single number the mean over the inputs of the same shape."""
    expected = trials[place].reference.outputs[which]
    same = [expected]
    if expected.value.size == 1:
        same = [trial.reference.outputs[which] for trial in trials]
    values = np.concatenate([e.value.reshape(-1).astype(np.float64) for e in same])
    values = values[np.isfinite(values)]
    return np.full_like(_answer(expected), values.mean() if values.size else 0.0)


def _stale(trials: Sequence[Trial], place: int, which: int) -> Array | None:
    return None if len(trials) < 2 else _answer(trials[place - 1].reference.outputs[which])


def _identity(trials: Sequence[Trial], place: int, which: int) -> Array | None:
    shape = trials[place].reference.outputs[which].value.shape
    for tensor in trials[place].tensors.values():
        if tuple(tensor.shape) == shape:
            return tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
    return None


def _rounded(trials: Sequence[Trial], place: int, which: int) -> Array | None:
    expected = trials[place].reference.outputs[which]
    if expected.allowed is None:
        return None
    with np.errstate(over="ignore"):
        half = expected.value.astype(np.float16).astype(np.float64)
    exact = np.array_equal(half, expected.value, equal_nan=True)
    return None if exact else half


def _halved(trials: Sequence[Trial], place: int, which: int) -> Array:
    return trials[place].halved[which].numpy()


def _answer(expected: OutputReference) -> Array:
    return expected.value.copy()


_NULLS: dict[str, Null] = {
    "all zeros": _filled(0.0),
    "all ones": _filled(1.0),
    "the mean of the result": _mean,
    "the result of the call before": _stale,
    "an input handed back": _identity,
    "half-precision round trip": _rounded,
    "half of the data": _halved,
}
