"""A problem on a device, set up once for all kernels that are tried on it.

What does not depend on a kernel lives here: references, new contents for timed calls, the process that
baselines are forked from, the roofline. Make one for a whole search; it is a context manager.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import Self

from cupilot.device.base import Device
from cupilot.device.peaks import CpuPeaks, cpu_peaks
from cupilot.evaluate.baseline import BaselineHost
from cupilot.evaluate.fresh import Fresh, fresh_at
from cupilot.evaluate.quiet import STRICT, Gate, Sentinel
from cupilot.evaluate.race import Look
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.witness import Witness
from cupilot.problem.cases import ShapeCase
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement, Work, place


class Bench:
    """`gate` says how quiet the machine must be for a time to count."""

    def __init__(
        self, problem: Problem, device: Device, *, gate: Gate = STRICT, cache: ReferenceCache | None = None
    ) -> None:
        self.problem, self.device, self.gate = problem, device, gate
        self.cache = cache or ReferenceCache()
        self._host: BaselineHost | None = None
        self._sentinel: Sentinel | None = None
        self._fresh: dict[str, Fresh] = {}
        self._witness: dict[str, Witness] = {}
        self._work: dict[str, Work] = {}

    @property
    def host(self) -> BaselineHost:
        """Begins to load torch when it is first asked for, and is waited for when a baseline is."""
        if self._host is None:
            self._host = BaselineHost(self.problem)
        return self._host

    def fresh(self, case: ShapeCase) -> Fresh:
        if case.name not in self._fresh:
            self._fresh[case.name] = fresh_at(self.problem, case)
        return self._fresh[case.name]

    def look(self, case: ShapeCase, *, closely: bool) -> Look:
        """Looks at timed calls; `closely`: at the first of each race with its error bound."""
        if case.name not in self._witness:
            self._witness[case.name] = Witness(self.problem, case)
        witness = self._witness[case.name]
        return lambda inputs, outputs, first: witness.look(inputs, outputs, closely=closely and first)

    def work(self, case: ShapeCase) -> Work:
        if case.name not in self._work:
            first = case is self.problem.targets[0]
            self._work[case.name] = Work.of(self.problem.counts if first else self.problem.counts_at(case))
        return self._work[case.name]

    @property
    def sentinel(self) -> Sentinel:
        if self._sentinel is None:
            self._sentinel = Sentinel()
        return self._sentinel

    @cached_property
    def peaks(self) -> CpuPeaks:
        return cpu_peaks()

    def measure_peaks_again(self) -> None:
        """For a time that seems too good."""
        self.peaks = cpu_peaks(force=True)

    def placement(self, case: ShapeCase, footprint_bytes: float, *, all_threads: bool = False) -> Placement:
        """On one thread or on all; `footprint_bytes` is what repeated calls walk through."""
        arithmetic = self.problem.precision.arithmetic
        peaks = self.peaks.all_threads if all_threads else self.peaks.one_thread
        return place(self.work(case), peaks, arithmetic, footprint_bytes)

    def close(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None
        if self._sentinel is not None:
            self._sentinel.close()
            self._sentinel = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
