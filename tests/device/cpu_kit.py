"""Small kernels in a moment: shared by the tests of the CPU device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cupilot.device.base import Array, Compiled, Died, Ran, Ring
from cupilot.device.cpu import Cpu, build, launched
from cupilot.device.inspection import read_parameters
from cupilot.device.session import CpuSession
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle, Plan
from cupilot.types import DType, Failed, Role, Signature, TensorSpec

N = 1024
ONE = Ring(1, 1)


def tensor(name: str, shape: tuple[int, ...], dtype: DType = DType.F32) -> TensorSpec:
    return TensorSpec(name, shape, dtype, Role.OUTPUT if name.startswith("out") else Role.INPUT)


VECTOR = Signature((tensor("x", (N,)),), {}, (tensor("out", (N,)),))


def kernel(code: str, launch: str = "k[4](x, out)", tune: str = "") -> KernelFile:
    lines = "\n".join(f"    {line}" for line in launch.splitlines())
    tuned = f"tune:\n    {tune}\n" if tune else ""
    return parse_kernel(f"/* cupilot 1\n{tuned}launch:\n{lines}\n*/\n{code}\n")


def compile_kernel(
    file: KernelFile, signature: Signature = VECTOR, point: Mapping[str, int] | None = None
) -> Compiled | Failed:
    return Cpu().compile(file, point or {}, signature)


def refusal(code: str, launch: str = "k[4](x, out)", signature: Signature = VECTOR) -> Failed:
    outcome = compile_kernel(kernel(code, launch), signature)
    assert isinstance(outcome, Failed), "this kernel should have been refused"
    return outcome


def unchecked(file: KernelFile) -> Compiled:
    """What an attacker would mount who got past every check of text and library."""
    names = launched(file.launch.statements)
    built = build(file, {}, names)
    assert not isinstance(built, Failed), built
    library, log = built
    return Compiled(library, {name: read_parameters(library.read_bytes(), name) for name in names}, log)


def plan_of(file: KernelFile, signature: Signature, point: Mapping[str, int] | None = None) -> Plan:
    return run(file.launch, bind(file, signature, point or {}), grid_style=GridStyle.CPU)


def session(
    file: KernelFile,
    signature: Signature = VECTOR,
    ring: Ring = ONE,
    threads: int = 1,
    compiled: Compiled | None = None,
    point: Mapping[str, int] | None = None,
) -> CpuSession:
    outcome = compiled or compile_kernel(file, signature)
    assert not isinstance(outcome, Failed), outcome
    opened = Cpu().open(outcome, plan_of(file, signature, point), signature, ring, threads)
    assert not isinstance(opened, Failed), opened
    return opened


def result(
    file: KernelFile,
    inputs: Mapping[str, Array],
    signature: Signature = VECTOR,
    threads: int = 1,
    order_seed: int = 0,
) -> dict[str, Array]:
    """One call in a fresh session; guards and inputs are intact afterwards."""
    with session(file, signature, threads=threads) as opened:
        opened.write(0, inputs)
        ran = opened.run(0, 1, order_seed)
        assert isinstance(ran, Ran), ran
        assert opened.check_guards() is None
        after = opened.read_inputs(0)
        assert all(np.array_equal(after[name], inputs[name]) for name in inputs)
        return opened.read(0)


def death(code: str, limit_s: float = 5.0) -> Died:
    """How a kernel ends that no check looked at."""
    file = kernel(code)
    with session(file, compiled=unchecked(file)) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        outcome = opened.run(0, 1, limit_s=limit_s)
        assert isinstance(outcome, Died), "this kernel should have died"
        return outcome
