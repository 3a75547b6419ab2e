"""torch.compile's own kernels as honest candidates: a session that runs them in this process.

No sandbox: the code is torch's, and only its numbers are on trial.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from benchmarks.false_verdicts.judge import problem_of
from benchmarks.false_verdicts.operator import Operator

from cupilot.device.base import Array, Ran
from cupilot.evaluate.pipeline import VERIFY_RING
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.suite import raw_arrays
from cupilot.evaluate.verify import Verified, verify
from cupilot.types import Failed, Signature

# Not bilinear: where infinities meet, torch.compile's NaN differs from the -inf of the operator itself.
COMPILED = frozenset(
    {"gelu", "mish", "swiglu", "sum", "variance", "logsumexp", "cosine_similarity", "softmax", "layer_norm",
     "rms_norm", "cumsum", "linear_relu", "attention", "depthwise", "embedding_mean", "rope",
     "cross_entropy"}
)  # fmt: skip


def judge_compiled(operator: Operator) -> Verified | Failed:
    compiled = torch.compile(operator.function, dynamic=True)
    return verify(
        problem_of(operator),
        lambda case: CompiledSession(compiled, case.signature),
        VERIFY_RING,
        ReferenceCache(),
    )


class CompiledSession:
    """See `cupilot.device.base.Session`; one slot of everything is enough here."""

    pid = os.getpid()

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self._function, self._signature = function, signature
        self._inputs: dict[str, torch.Tensor] = {}
        self._outputs: dict[str, Array] = {}

    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        self._inputs = {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}

    def poison(self, slot: int) -> None:
        self._outputs = {}

    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran:
        found = self._function(*(self._inputs[spec.name] for spec in self._signature.tensors))
        results = found if isinstance(found, tuple) else (found,)
        names = (spec.name for spec in self._signature.outputs)
        self._outputs = raw_arrays(dict(zip(names, results, strict=True)))
        return Ran(0, 0, 0)

    def read(self, slot: int) -> dict[str, Array]:
        if not self._outputs:
            return {spec.name: np.full(spec.shape, np.nan, np.float32) for spec in self._signature.outputs}
        return self._outputs

    def read_inputs(self, slot: int) -> dict[str, Array]:
        return raw_arrays(self._inputs)

    def check_guards(self) -> str | None:
        return None

    def cpu_time_ns(self) -> int:
        return 0

    def pin(self, core: int) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
