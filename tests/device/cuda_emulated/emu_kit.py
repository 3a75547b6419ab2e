"""Small CUDA kernels in a moment, on the emulated device: shared by its tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cupilot.device.base import NUMPY_TYPES, Array, Died, Ran, Ring
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.device.cuda_emulated.faults import Fault
from cupilot.device.cuda_emulated.session import EmulatedSession
from cupilot.kernel.binding import bind
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle
from cupilot.types import DType, Failed, Role, Signature, TensorSpec

_DTYPES = {numpy: dtype for dtype, numpy in NUMPY_TYPES.items()}
Outputs = Mapping[str, tuple[tuple[int, ...], DType]]


def open_kernel(
    code: str, launch: str, inputs: Mapping[str, Array], outputs: Outputs, arch: str = "sm_80"
) -> EmulatedSession | Failed:
    """A session with the inputs written; 16-bit unsigned arrays count as bf16."""
    lines = "\n".join(f"    {line}" for line in launch.splitlines())
    file = parse_kernel(f"/* cupilot 1\nlaunch:\n{lines}\n*/\n{code}\n")
    tensors = tuple(TensorSpec(n, a.shape, _DTYPES[a.dtype], Role.INPUT) for n, a in inputs.items())
    wanted = tuple(TensorSpec(n, shape, dtype, Role.OUTPUT) for n, (shape, dtype) in outputs.items())
    signature = Signature(tensors, {}, wanted)
    device = CudaEmulated(arch)
    compiled = device.compile(file, {}, signature)
    if isinstance(compiled, Failed):
        return compiled
    plan = run(file.launch, bind(file, signature, {}), grid_style=GridStyle.CUDA)
    session = device.open(compiled, plan, signature, Ring(1, 1))
    if not isinstance(session, Failed):
        session.write(0, inputs)
    return session


def compute(
    code: str,
    launch: str,
    inputs: Mapping[str, Array],
    outputs: Outputs,
    arch: str = "sm_80",
    order_seed: int = 7,
) -> dict[str, Array]:
    """The outputs of one call that goes well."""
    opened = open_kernel(code, launch, inputs, outputs, arch)
    assert not isinstance(opened, Failed), opened
    with opened as session:
        ran = session.run(0, 1, order_seed)
        assert isinstance(ran, Ran), ran
        return session.read(0)


def fault(
    code: str,
    launch: str,
    inputs: Mapping[str, Array] | None = None,
    outputs: Outputs | None = None,
    arch: str = "sm_80",
) -> Fault:
    """What the emulator finds wrong, in one call."""
    given = {"x": np.ones(256, np.float32)} if inputs is None else inputs
    opened = open_kernel(code, launch, given, outputs or {"out": ((256,), DType.F32)}, arch)
    assert not isinstance(opened, Failed), opened
    with opened as session:
        outcome = session.run(0, 1, 7)
        assert isinstance(outcome, Died), "this kernel should have gone wrong"
        assert session.fault is not None, outcome
        return session.fault


def refusal(code: str, launch: str = "k[1, 32](x, out)", arch: str = "sm_80") -> Failed:
    given = {"x": np.ones(256, np.float32)}
    opened = open_kernel(code, launch, given, {"out": ((256,), DType.F32)}, arch)
    assert isinstance(opened, Failed), "this kernel should have been refused"
    return opened
