"""Who can be timed: a kernel in its runner, or the user's module in a baseline process."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.device.base import Ring, Session
from cupilot.evaluate.baseline import BaselineHost, BaselineKind, BaselineSession, Unavailable
from cupilot.evaluate.built import BuiltKernel
from cupilot.types import Failed, Signature


@dataclass(frozen=True)
class KernelContestant:
    """Not trusted: it may know how it is timed and do anything to look fast."""

    name: str
    built: BuiltKernel

    def start(self, signature: Signature, ring: Ring) -> Session | Failed:
        return self.built.open(signature, ring)


@dataclass(frozen=True)
class BaselineContestant:
    """Trusted: torch, and the user's own module."""

    name: str
    kind: BaselineKind
    host: BaselineHost
    threads: int = 1

    def start(self, signature: Signature, ring: Ring) -> BaselineSession | Unavailable:
        return self.host.fork(self.kind, signature, ring, self.threads)


Contestant = KernelContestant | BaselineContestant
