"""One emulator process with one candidate and its buffers: see `device.base.Session`. All checks are on."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from cupilot.device.base import NUMPY_TYPES, Array, Died, Ran, Ring
from cupilot.device.counted import Counted
from cupilot.device.cuda_emulated.counters import Executed, digest
from cupilot.device.cuda_emulated.encode.frame import buffer_address
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.faults import Fault, Setting, explain
from cupilot.device.cuda_emulated.gate import Gated
from cupilot.device.cuda_emulated.launching import MULTIPROCESSOR_COUNTS, pack_parameters, triple
from cupilot.device.cuda_emulated.process import EmulatorDiedError, EmulatorProcess, LaunchRequest
from cupilot.device.cuda_emulated.sass import machine_code
from cupilot.device.memory import Poison, SessionOverError
from cupilot.kernel.plan import Launch, Plan, ScratchSpec, TensorArg, Zero
from cupilot.types import Signature, TensorSpec

_PARAMETER_BYTES = 32 << 10
_WORKSPACE_BYTES = 64
# Since a block last came to its end: so many, and so many for each block at work.
_WARP_INSTRUCTIONS, _WARP_INSTRUCTIONS_EACH = 1 << 24, 1 << 20
_AT_WORK = 64  # kResident of native/schedule.cpp


class EmulatedSession:
    def __init__(
        self, gated: Gated, programs: Mapping[str, Program], image: bytes, plan: Plan,
        signature: Signature, ring: Ring,
    ) -> None:  # fmt: skip
        self._gated, self._programs, self._plan = gated, programs, plan
        self.signature, self.ring = signature, ring
        self.fault: Fault | None = None  # of the run that died
        self.printed = ""  # what the kernels printed
        self._names: dict[int, str] = {}
        self._races_missed: set[str] = set()  # kernels with a launch of more blocks than are followed
        self._poison = Poison()
        self._seed = secrets.randbits(63)
        self._over = False
        self._process = EmulatorProcess()
        try:
            self._set_up(image)
        except BaseException:
            self._process.close()
            raise

    def _set_up(self, image: bytes) -> None:
        process = self._process
        module = process.add_buffer(max(len(image), 1), writable=False, races=False)
        if image:
            process.write(module, np.frombuffer(image, np.uint8))
        process.add_buffer(_PARAMETER_BYTES, writable=False, races=False)
        process.add_buffer(_WORKSPACE_BYTES, writable=True, races=False)
        self._numbers: dict[str, int] = {}
        for number, (name, program) in enumerate(self._programs.items()):
            process.load(program)
            self._numbers[name] = number
        self._inputs = [self._buffers(self.signature.tensors, False) for _ in range(self.ring.inputs)]
        self._outputs = [self._buffers(self.signature.outputs, True) for _ in range(self.ring.outputs)]
        self._scratch = self._buffers(self._plan.scratch, True)
        for slot in range(self.ring.outputs):
            self.poison(slot)

    def _buffers(self, specs: Sequence[TensorSpec | ScratchSpec], writable: bool) -> dict[str, int]:
        found = {}
        for spec in specs:
            found[spec.name] = self._process.add_buffer(spec.size_bytes, writable=writable, races=writable)
            self._names[found[spec.name]] = spec.name
        return found

    @property
    def pid(self) -> int:
        return self._process.pid

    # ---- memory ----
    def write(self, slot: int, tensors: Mapping[str, Array]) -> None:
        self._alive()
        for name, buffer in self._inputs[slot].items():
            self._process.write(buffer, np.ascontiguousarray(tensors[name]))

    def poison(self, slot: int) -> None:
        self._alive()
        self._fill(self._outputs[slot], self.signature.outputs)

    def read(self, slot: int) -> dict[str, Array]:
        self._alive()
        return self._read(self._outputs[slot], self.signature.outputs)

    def read_inputs(self, slot: int) -> dict[str, Array]:
        self._alive()
        return self._read(self._inputs[slot], self.signature.tensors)

    def check_guards(self) -> str | None:
        """Nothing to look for: an access outside a buffer ends the run when it happens."""
        return None

    def _read(self, buffers: Mapping[str, int], specs: Sequence[TensorSpec]) -> dict[str, Array]:
        found = {}
        for spec in specs:
            array = np.empty(spec.shape, NUMPY_TYPES[spec.dtype])
            self._process.read(buffers[spec.name], array)
            found[spec.name] = array
        return found

    def _fill(self, buffers: Mapping[str, int], specs: Sequence[TensorSpec | ScratchSpec]) -> None:
        for spec in specs:
            self._process.write(buffers[spec.name], self._poison.take(spec.size_bytes))

    # ---- work ----
    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = 20.0) -> Ran | Died:
        self._alive()
        deadline = time.monotonic() + limit_s
        wall, cpu = time.perf_counter_ns(), self.cpu_time_ns()
        for call in range(first, first + count):
            died = self._call(call, order_seed, deadline)
            if died is not None:
                self._over = True
                self.close()
                return died
        return Ran(cpu, self.cpu_time_ns(), time.perf_counter_ns() - wall)

    def _call(self, call: int, order_seed: int, deadline: float) -> Died | None:
        self._fill(self._scratch, self._plan.scratch)
        buffers = (
            self._inputs[call % self.ring.inputs] | self._outputs[call % self.ring.outputs] | self._scratch
        )
        for step in self._plan.steps:
            if isinstance(step, Zero):
                self._process.zero(buffers[step.name])
                continue
            died = self._launch(step, buffers, order_seed, deadline)
            if died is not None:
                return died
        return None

    def _launch(
        self, step: Launch, buffers: Mapping[str, int], order_seed: int, deadline: float
    ) -> Died | None:
        kernel, program = self._gated.kernels[step.kernel], self._programs[step.kernel]
        grid, block = triple(step.grid), triple(step.block or (1,))
        request = LaunchRequest(
            program=self._numbers[step.kernel],
            grid=grid,
            block=block,
            dynamic_shared=step.attributes.get("shared", 0),
            cooperative=bool(step.attributes.get("cooperative", 0)),
            parameters=pack_parameters(
                step, kernel, program, {name: buffer_address(number) for name, number in buffers.items()}
            ),
            buffers=tuple(buffers[a.name] for a in step.args if isinstance(a, TensorArg)),
            seed=self._seed,
            order_seed=order_seed,
            budget=_budget(math.prod(grid), bool(step.attributes.get("cooperative", 0)), program),
        )
        try:
            outcome = self._process.launch(request, max(0.01, deadline - time.monotonic()))
        except EmulatorDiedError as error:
            return Died(f"was not finished by the emulator: {error.message}")
        self.printed += outcome.printed
        if not outcome.races_followed:
            self._races_missed.add(step.kernel)
        if outcome.fault is None:
            return None
        self.fault = explain(outcome.fault, Setting(program, self._names, block, grid))
        return Died(f"`{step.kernel}` goes wrong: {self.fault}")

    def counted(self) -> Counted:
        """See `device.counted.Counting`."""
        self._alive()
        mixes = machine_code(self._gated.cubin)
        executed = {
            name: Executed(
                self._gated.kernels[name],
                self._programs[name],
                tuple(s for s in self._plan.steps if isinstance(s, Launch) and s.kernel == name),
                self._process.counters(number),
                mixes.get(self._gated.kernels[name].entry, {}),
                name not in self._races_missed,
            )
            for name, number in self._numbers.items()
        }
        return digest(executed, self._gated.arch, MULTIPROCESSOR_COUNTS[self._gated.arch])

    def cpu_time_ns(self) -> int:
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def pin(self, core: int) -> None:
        os.sched_setaffinity(self.pid, {core})

    def _alive(self) -> None:
        if self._over:
            raise SessionOverError("the emulated kernel went wrong; open another session")

    def close(self) -> None:
        self._over = True
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _budget(blocks: int, cooperative: bool, program: Program) -> int:
    """Warp instructions for each block at work."""
    at_work = blocks if cooperative else min(blocks, _AT_WORK) if program.may_spin else 1
    return _WARP_INSTRUCTIONS // at_work + _WARP_INSTRUCTIONS_EACH
