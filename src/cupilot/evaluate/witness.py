"""Looks at what timed calls returned: one of them closely, with its error bound, the others at a glance.

A bound takes many times as long as the reference itself, so it cannot be had for every call. The first close
look also tells how large errors may become on contents like these, for small results and for large ones; at
a glance a result only has to lie within a few times that of what the framework itself returns. Nothing finer
can be kept from a glance, but no kernel can skip work, or drop precision, on the timed calls that nobody
looks at closely. What looks wrong at a glance is looked at closely before anybody is accused: results that
cancel nearly to nothing may be rarer than one a call, and then the first close look knew none. Where there is
no memory for a bound, and verification has seen smaller shapes only, a glance must do, by the largest result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch

from cupilot.device.base import Array
from cupilot.evaluate.compare import as_numbers, compare
from cupilot.evaluate.fresh import as_tensor
from cupilot.evaluate.quiet import memory_available_bytes
from cupilot.evaluate.reference import Reference, build_reference
from cupilot.evaluate.rounding import rounding_of
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.types import DType

_MEMORY_SHARE = 0.5  # of the memory available, for a reference
_SLACK = 16.0  # times the largest error that was allowed at the close look
_SIZES = 320  # powers of two that are told apart
_COARSE = 0.01  # of the largest result, where no bound can be had
_DISCRETE_SHARE = 0.01  # of integers and booleans, which ties and roundings may turn

Tensors = Mapping[str, Array]


class Witness:
    """For one problem at one target."""

    def __init__(self, problem: Problem, case: ShapeCase) -> None:
        self._problem, self._case = problem, case
        signature = case.signature
        self._types = {spec.name: spec.dtype for spec in (*signature.tensors, *signature.outputs)}
        self._slack: dict[str, Array | None] = {}  # by output and size; None for integers and booleans

    def look(self, inputs: Tensors, outputs: Tensors, *, closely: bool) -> str | None:
        """None, or what is wrong with a timed call."""
        with _one_thread():
            return self._look(inputs, outputs, closely=closely)

    def _look(self, inputs: Tensors, outputs: Tensors, *, closely: bool) -> str | None:
        tensors = {name: as_tensor(array, self._types[name]) for name, array in inputs.items()}
        if not closely and self._slack and self._at_a_glance(tensors, outputs) is None:
            return None
        if self._problem.reference_bytes(self._case) > _MEMORY_SHARE * memory_available_bytes():
            return self._at_a_glance(tensors, outputs)
        return self._closely(tensors, outputs)

    def _closely(self, tensors: Mapping[str, torch.Tensor], outputs: Tensors) -> str | None:
        problem, names = self._problem, [spec.name for spec in self._case.signature.outputs]
        reference = build_reference(problem.reference, tensors, names, rounding_of(problem.precision))
        self._slack = _slack(reference)
        for expected in reference.outputs:
            raw = outputs[expected.name].reshape(expected.value.shape)
            worst = compare(raw, self._types[expected.name], expected)
            if not worst.is_right:
                return _words(expected.name, worst.index, worst.got, worst.expected)
        return None

    def _at_a_glance(self, tensors: Mapping[str, torch.Tensor], outputs: Tensors) -> str | None:
        with torch.no_grad():
            expected = self._problem.reference(tensors, torch.float32)
        for spec, tensor in zip(self._case.signature.outputs, expected, strict=True):
            name, wanted = spec.name, tensor.double().numpy()
            slack = self._slack[name] if self._slack else _coarse_slack(wanted, spec.dtype)
            raw = outputs[name].reshape(wanted.shape)
            got = as_numbers(raw, self._types[name]).astype(np.float64)
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            if slack is None:
                wrong = ~same if np.mean(~same) > _DISCRETE_SHARE else np.zeros_like(same)
            else:
                with np.errstate(invalid="ignore"):
                    wrong = ~same & ~(np.abs(got - wanted) <= slack[_size(wanted)])
            if wrong.any():
                place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
                return _words(name, place, float(got[place]), float(wanted[place]))
        return None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Races hold this process on one core, where threads of torch's would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _slack(reference: Reference) -> dict[str, Array | None]:
    """For each size of a result, the largest error allowed to results as small as that, with some room.

    Of sizes below all that were seen, what the smallest was allowed.
    """
    found: dict[str, Array | None] = {}
    for output in reference.outputs:
        found[output.name] = None
        if output.allowed is not None:
            most = np.zeros(_SIZES)
            np.fmax.at(most, _size(output.value).reshape(-1), output.allowed.reshape(-1))
            smallest = int(np.argmax(most > 0))
            most[:smallest] = most[smallest]
            found[output.name] = _SLACK * np.maximum.accumulate(most)
    return found


def _coarse_slack(wanted: Array, dtype: DType) -> Array | None:
    sizes = np.abs(wanted[np.isfinite(wanted)])
    return np.full(_SIZES, _COARSE * float(sizes.max(initial=0.0))) if dtype.is_floating else None


def _size(values: Array) -> Array:
    """The power of two above each magnitude, as an index: 0 for what is hardly there, or not at all."""
    powers: Array = np.frexp(np.abs(values.astype(np.float64)))[1]
    sizes: Array = np.clip(powers + _SIZES // 2, 0, _SIZES - 1)
    return np.where(values == 0, 0, sizes)


def _words(name: str, place: tuple[int, ...], got: float, expected: float) -> str:
    return f"{name}[{', '.join(map(str, place))}] is {got:.6g}, expected {expected:.6g}"
