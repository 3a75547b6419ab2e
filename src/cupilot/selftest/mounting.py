"""Mounts a kernel as a user's evaluation would meet it, and says at which stage it was refused.

Runs the stages of `evaluate` itself. What is right everywhere is then timed against its honest twin instead
of torch: that shows what a cheat gains, and takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Self

from cupilot.device import inspection
from cupilot.device.base import Compiled, Died, Ran, Ring
from cupilot.device.cpu import Cpu, build, launched
from cupilot.device.session import CpuSession
from cupilot.errors import KernelSyntaxError
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import VERIFY_RING, BuiltKernel
from cupilot.evaluate.built import build as build_kernel
from cupilot.evaluate.contestant import KernelContestant
from cupilot.evaluate.quiet import Gate
from cupilot.evaluate.race import RaceResult, Settings, race
from cupilot.evaluate.verify import verify
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.plan import Plan
from cupilot.kernel.tunables import first_point, points
from cupilot.problem.loading import load
from cupilot.selftest.cheat import Cheat, Outcome, Twin, problem_path
from cupilot.types import Failed, Signature, Stage

_PATIENCE_S = 1.0  # for a call of these small problems
_POINTS = 4  # of its tunables, if it has any
_SETTINGS = Settings(groups=2, rounds=12, batch_s=0.002, budget_s=60.0, retries=0)  # all rounds, however slow
_ANY_NOISE = Gate(9, 9, 9, 9)  # who cheats is found out on a busy machine, too


class _Impatient(CpuSession):
    def run(self, first: int, count: int, order_seed: int = 0, limit_s: float = _PATIENCE_S) -> Ran | Died:
        return super().run(first, count, order_seed, min(limit_s, _PATIENCE_S))


@dataclass
class _Workshop(Cpu):
    """The CPU device; where asked, one that looks at nothing beforehand, or is handed an edited library."""

    past_inspection: bool = False
    edit: Callable[[bytes], bytes] | None = None

    def compile(
        self, kernel: KernelFile, point: Mapping[str, int], signature: Signature
    ) -> Compiled | Failed:
        if not self.past_inspection and self.edit is None:
            return super().compile(kernel, point, signature)
        names = launched(kernel.launch.statements)
        built = build(kernel, point, names)
        if isinstance(built, Failed):
            return built
        library, log = built
        data = library.read_bytes()
        if self.edit is not None and (refusal := inspection.inspect_elf(self.edit(data))) is not None:
            return Failed(Stage.INSPECT, f"the kernel {refusal}")
        parameters = {name: inspection.read_parameters(data, name) for name in names}
        return Compiled(library, parameters, log)

    def open(
        self, compiled: Compiled, plan: Plan, signature: Signature, ring: Ring, threads: int = 1
    ) -> CpuSession | Failed:
        opened = super().open(compiled, plan, signature, ring, threads)
        if isinstance(opened, Failed):
            return opened
        return _Impatient(**{each.name: getattr(opened, each.name) for each in fields(opened)})


class Yard:
    """Where kernels are mounted: the benches of the problems, set up once. A context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._benches: dict[str, Bench] = {}

    def mount(self, subject: Cheat | Twin) -> Outcome:
        if isinstance(subject, Twin):
            return self._mount(subject, _Workshop())
        return self._mount(subject, _Workshop(subject.past_inspection, subject.edit))

    def _mount(self, subject: Cheat | Twin, workshop: _Workshop) -> Outcome:
        try:
            kernel = parse_kernel(subject.text)
        except KernelSyntaxError as error:
            return Outcome(Stage.PARSE, f"line {error.line}: {error.message}")
        bench = self._bench(subject.problem)
        verified = []
        for point in points(kernel, _POINTS):
            each = self._verified(bench, kernel, point, workshop)
            if isinstance(each, Failed):
                return Outcome(each.stage, each.reason)
            verified.append(each)
        return self._time(bench, verified[0], subject.problem)

    def _verified(
        self, bench: Bench, kernel: KernelFile, point: Mapping[str, int], workshop: _Workshop
    ) -> BuiltKernel | Failed:
        """At one of its points: whichever wins the tuning is verified before it counts."""
        built = build_kernel(kernel, point, bench.problem.target, workshop)
        if isinstance(built, Failed):
            return built
        found = verify(
            bench.problem, lambda case: built.open(case.signature, VERIFY_RING), VERIFY_RING, bench.cache
        )
        return found if isinstance(found, Failed) else built

    def _time(self, bench: Bench, built: BuiltKernel, problem: str) -> Outcome:
        """Against the honest twin; how many times faster it is, unless it is found out."""
        honest = parse_kernel(Twin(problem, problem).text)
        twin = build_kernel(honest, first_point(honest), bench.problem.target, Cpu())
        assert isinstance(twin, BuiltKernel), "an honest twin compiles"
        (case,) = bench.problem.targets
        found = race(
            [KernelContestant("kernel", built), KernelContestant("twin", twin)],
            case.signature,
            bench.fresh(case),
            bench.look(case, closely=True),
            bench.sentinel,
            _SETTINGS,
            bench.gate,
        )
        if isinstance(found, RaceResult):
            gain = found.ratios["twin"].ratio
            return Outcome(None, f"right, and {gain:.2f} times as fast as its honest twin", gain)
        return Outcome(found.stage if isinstance(found, Failed) else Stage.TIME, found.reason)

    def _bench(self, problem: str) -> Bench:
        if problem not in self._benches:
            bench = Bench(load(problem_path(problem)), Cpu(), gate=_ANY_NOISE)
            self._benches[problem] = self._stack.enter_context(bench)
        return self._benches[problem]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
