"""Contents that no process has seen before, at the speed of memory: what timed calls compute on.

A kernel that remembers (by address, by fingerprint, by full content) gains nothing if no content ever comes
twice. The user's own generator is too slow to fill every slot before every batch, so its draws are kept in
a pool, and a slot is filled with short runs taken from secret random places of the pool. In floating
tensors the low bits of every number are replaced as well: 8 of the 24 in f32, 16 of the 53 in f64.

What that leaves to an attacker who knows all of this and has seen every earlier slot:
- Whole slots, rows or tiles never repeat: a run is 16 elements, and there are more than 2^15 places to
  start it.
- A table from values to results is of no use: the 2^16 values of a pool become 2^24, and a table costs more
  than computing, with memory that it would have to keep somewhere.
- Foreseeing a slot from earlier ones needs the seed, which is drawn from the system for every fill.
- Reusing a result for a nearly equal operand (A' = A + d) would need the same arrangement of runs.
- Integer and boolean tensors have no low bits to spare; there only the arrangement is new. A tensor of a
  few elements, or a constant of the module, can repeat, but then also carries next to no work.

Each tensor stays in its domain: runs keep every rule on single values (ranges, signs, 0/1, a few distinct
values), numbers that are round stay round, and rules on whole rows or matrices (sums, triangles, order) are
restored by projection, which is slower.
"""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cupilot.device import native
from cupilot.device.base import NUMPY_TYPES, Array
from cupilot.problem.cases import ShapeCase
from cupilot.problem.domains import Domain, Order, Structure
from cupilot.problem.dtypes import torch_dtype
from cupilot.problem.problem import Problem
from cupilot.types import DType, Signature, TensorSpec

_POOL_ELEMENTS = 1 << 16
_DRAWS = 2  # of the generator, for the pool
_LOW_BITS = {DType.F32: 0xFF, DType.F64: 0xFFFF}


@dataclass(frozen=True)
class _Source:
    spec: TensorSpec
    pool: Array
    low_bits: int
    domain: Domain


def fresh_at(problem: Problem, case: ShapeCase) -> Fresh:
    """For a problem at one of its targets."""
    seeds = [secrets.randbits(31) for _ in range(_DRAWS)]
    inputs = [problem.program.draw_inputs(case.arguments or (), seed) for seed in seeds]
    draws = [drawn | problem.weights(seed) for drawn, seed in zip(inputs, seeds, strict=True)]
    return Fresh(case.signature, draws, problem.domains_at(case))


class Fresh:
    """Fills sets of tensors of one signature with new contents."""

    def __init__(
        self,
        signature: Signature,
        draws: Sequence[Mapping[str, torch.Tensor]],
        domains: Mapping[str, Domain],
    ) -> None:
        library = ctypes.CDLL(str(native.program("fresh", "-O3", "-march=native", shared=True)))
        self._fill = library.cupilot_fresh
        self._fill.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
            ctypes.c_uint64, ctypes.c_uint64,
        )  # fmt: skip
        self._sources = [_source(spec, draws, domains[spec.name]) for spec in signature.tensors]

    def blank(self) -> dict[str, Array]:
        """Memory for one set."""
        return {
            source.spec.name: np.zeros(source.spec.shape, NUMPY_TYPES[source.spec.dtype])
            for source in self._sources
        }

    def refill(self, tensors: Mapping[str, Array]) -> None:
        """New contents for a set made by `blank`."""
        for source in self._sources:
            array = tensors[source.spec.name]
            self._fill(
                array.ctypes.data, array.size, array.itemsize, source.pool.ctypes.data, source.pool.size,
                source.low_bits, secrets.randbits(64),
            )  # fmt: skip
            if _is_structured(source.domain):
                _restore(array, source)


def _source(spec: TensorSpec, draws: Sequence[Mapping[str, torch.Tensor]], domain: Domain) -> _Source:
    each = max(1, _POOL_ELEMENTS // len(draws))
    parts = [as_array(draw[spec.name], spec.dtype).reshape(-1) for draw in draws]
    if domain.structure is not Structure.FULL:
        parts = [part[part != 0] if part.any() else part for part in parts]
    pool = np.ascontiguousarray(np.concatenate([part[:: max(1, part.size // each)][:each] for part in parts]))
    exact = bool(domain.values) or domain.fixed is not None
    return _Source(spec, pool, 0 if exact else _LOW_BITS.get(spec.dtype, 0), domain)


def _is_structured(domain: Domain) -> bool:
    whole = (domain.structure, domain.order) != (Structure.FULL, Order.NONE)
    return whole or domain.sums_to_one is not None or domain.fixed is not None


def _restore(array: Array, source: _Source) -> None:
    tensor = as_tensor(array, source.spec.dtype)
    np.copyto(array, as_array(source.domain.project(tensor), source.spec.dtype))


def as_array(tensor: torch.Tensor, dtype: DType) -> Array:
    """The same data for a session: bf16 as its bits."""
    dense = tensor.detach().contiguous()
    array: Array = dense.view(torch.uint16).numpy() if dtype is DType.BF16 else dense.numpy()
    return array


def as_tensor(array: Array, dtype: DType) -> torch.Tensor:
    """The same data for torch."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch_dtype(dtype)) if dtype is DType.BF16 else tensor
