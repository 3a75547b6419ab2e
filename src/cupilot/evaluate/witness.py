"""Looks at what timed calls returned: one of them closely, with its error bound, the others at a glance.

A bound takes many times as long as the reference itself, so it cannot be had for every call. The first close
look also tells how large errors may become on contents like these; at a glance a result only has to lie
within a few times that of what the framework itself returns. Nothing finer can be kept from a glance, but no
kernel can skip work, or drop precision, on the timed calls that nobody looks at closely.
"""

from __future__ import annotations

from collections.abc import Mapping

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

_MEMORY_SHARE = 0.5  # of the memory available, for a reference
_SLACK = 16.0  # times the largest error that was allowed at the close look
_DISCRETE_SHARE = 0.01  # of integers and booleans, which ties and roundings may turn

Tensors = Mapping[str, Array]


class Witness:
    """For one problem at one target."""

    def __init__(self, problem: Problem, case: ShapeCase) -> None:
        self._problem, self._case = problem, case
        signature = case.signature
        self._types = {spec.name: spec.dtype for spec in (*signature.tensors, *signature.outputs)}
        self._slack: dict[str, float | None] = {}  # by output; None for integers and booleans

    def look(self, inputs: Tensors, outputs: Tensors, *, closely: bool) -> str | None:
        """None, or what is wrong with a timed call."""
        if self._problem.reference_bytes(self._case) > _MEMORY_SHARE * memory_available_bytes():
            return None
        tensors = {name: as_tensor(array, self._types[name]) for name, array in inputs.items()}
        if closely or not self._slack:
            return self._closely(tensors, outputs)
        return self._at_a_glance(tensors, outputs)

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
        for (name, slack), tensor in zip(self._slack.items(), expected, strict=True):
            wanted = tensor.double().numpy()
            raw = outputs[name].reshape(wanted.shape)
            got = as_numbers(raw, self._types[name]).astype(np.float64)
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            if slack is None:
                wrong = ~same if np.mean(~same) > _DISCRETE_SHARE else np.zeros_like(same)
            else:
                with np.errstate(invalid="ignore"):
                    wrong = ~same & ~(np.abs(got - wanted) <= slack)
            if wrong.any():
                place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
                return _words(name, place, float(got[place]), float(wanted[place]))
        return None


def _slack(reference: Reference) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for output in reference.outputs:
        if output.allowed is None:
            found[output.name] = None
        else:
            found[output.name] = _SLACK * float(output.allowed.max(initial=0.0))
    return found


def _words(name: str, place: tuple[int, ...], got: float, expected: float) -> str:
    return f"{name}[{', '.join(map(str, place))}] is {got:.6g}, expected {expected:.6g}"
