"""Tells whether somebody else used the CPUs while we measured. Does not see a neighbour outside a virtual
machine unless the hypervisor reports the time it took ("steal")."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

_STAT = Path("/proc/stat")
_FOREIGN_CPUS = 0.1  # what others may use, in CPUs
_FOREIGN_SHARE = 0.02  # or as a share of a large machine


def busy_cpu_s() -> float:
    """CPU time that all processes, and the hypervisor, have used so far; idling and waiting left out."""
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, _STAT.read_text().split("\n", 1)[0].split()[1:9]
        )
    except (OSError, ValueError):
        return own_cpu_s()  # not Linux as we know it: nobody else can be seen
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_cpu_s() -> float:
    """CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass(frozen=True)
class Watch:
    """A stretch of time that began when this value was made. Children must have ended when it is read."""

    wall_s: float = field(default_factory=time.monotonic)
    busy_s: float = field(default_factory=busy_cpu_s)
    own_s: float = field(default_factory=own_cpu_s)

    def others(self, known_s: float = 0.0) -> float:
        """CPUs that others kept busy on average; `known_s`: used by our processes that are no children."""
        own_s, busy_s, wall_s = own_cpu_s() + known_s, busy_cpu_s(), time.monotonic()
        return max(0.0, (busy_s - self.busy_s) - (own_s - self.own_s)) / max(wall_s - self.wall_s, 1e-9)

    def contention(self, known_s: float = 0.0) -> str:
        """What is wrong, as a sentence, or "" on a quiet machine."""
        others = self.others(known_s)
        if others <= max(_FOREIGN_CPUS, _FOREIGN_SHARE * (os.cpu_count() or 1)):
            return ""
        return f"other processes kept {others:.1f} CPUs busy"
