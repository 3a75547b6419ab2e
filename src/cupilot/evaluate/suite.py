"""The cases a kernel must pass on one problem. Made by `preparation`, kept on disk.

A case is a shape and an input with its reference; all of them are independent of any candidate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

from cupilot.evaluate.reference import Array, Reference
from cupilot.evaluate.reference_cache import Entry, ReferenceCache, pack_reference, unpack_reference
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem

VERSION = 7  # of everything that goes into a reference: raise it when a bound or a distribution changes


@dataclass(frozen=True)
class Case:
    """One shape and one input. `key` finds it in the cache."""

    shape: str
    input: str
    exposes: str
    key: str


@dataclass(frozen=True)
class Coverage:
    """Elements of the inputs at one shape: put to the test by some case, and all that may matter."""

    exercised: int
    influential: int  # includes, unless the search was exhausted, elements that never showed any influence

    @property
    def share(self) -> float:
        return self.exercised / self.influential if self.influential else 1.0


@dataclass(frozen=True)
class Suite:
    """Everything about the correctness of a problem that does not depend on a kernel."""

    cases: tuple[Case, ...]  # in the order in which they unmask wrong kernels soonest
    dropped: Mapping[str, str]  # inputs that prove nothing or little, each with the reason
    coverage: Mapping[str, Coverage]  # by shape
    sketched: tuple[str, ...]  # operators whose bound is sampled
    scaled: bool  # the target itself does not fit into memory
    planned: tuple[ShapeCase, ...]  # among them those of the cases

    @property
    def inputs(self) -> tuple[str, ...]:
        """The live ones."""
        return tuple(dict.fromkeys(case.input for case in self.cases if case.input not in self.dropped))

    @property
    def shapes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case.shape for case in self.cases))

    def shape(self, name: str) -> ShapeCase:
        return next(shape for shape in self.planned if shape.name == name)


@dataclass(frozen=True)
class Material:
    """What a case is checked with: raw input arrays as a device takes them, and the reference."""

    tensors: Mapping[str, Array]
    reference: Reference


def raw_arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """As numpy arrays; bf16 as its bits."""
    bits = {n: t.view(torch.uint16) if t.dtype is torch.bfloat16 else t for n, t in tensors.items()}
    return {name: tensor.contiguous().numpy() for name, tensor in bits.items()}


def store_case(
    cache: ReferenceCache, key: str, tensors: Mapping[str, torch.Tensor], reference: Reference
) -> None:
    packed = pack_reference(reference)
    inputs = {f"input.{name}": array for name, array in raw_arrays(tensors).items()}
    cache.put(key, Entry(packed.meta, packed.arrays | inputs))


def load_case(cache: ReferenceCache, case: Case) -> Material | None:
    """None when the entry has gone from the cache."""
    entry = cache.get(case.key)
    if entry is None:
        return None
    prefix = "input."
    inputs = {n.removeprefix(prefix): a for n, a in entry.arrays.items() if n.startswith(prefix)}
    return Material(inputs, unpack_reference(entry))


def suite_key(problem: Problem, scaled: ShapeCase | None = None) -> str:
    """The identity of everything a suite depends on but the secret seed; `scaled` stands for the target."""
    return _digest(
        *(VERSION, torch.__version__, np.__version__, problem.source, problem.precision, problem.fixed_shape),
        *(problem.graph.fingerprint(), problem.shapes, sorted(map(str, problem.domains.items()))),
        *(() if scaled is None else (scaled,)),
    )


def case_key(suite_key: str, shape: ShapeCase, name: str, seed: int) -> str:
    return _digest(suite_key, shape, name, seed)


def _digest(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def store_suite(cache: ReferenceCache, key: str, suite: Suite) -> None:
    cache.put(key, Entry(asdict(replace(suite, planned=())), {}))


def load_suite(cache: ReferenceCache, key: str, planned: tuple[ShapeCase, ...]) -> Suite | None:
    entry = cache.get(key)
    if entry is None:
        return None
    meta = entry.meta
    return Suite(
        tuple(Case(**case) for case in meta["cases"]),
        meta["dropped"],
        {shape: Coverage(**counts) for shape, counts in meta["coverage"].items()},
        tuple(meta["sketched"]),
        meta["scaled"],
        planned,
    )
