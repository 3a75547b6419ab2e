"""The data caches that a set of CPUs sees, as Linux describes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys/devices/system/cpu")
# What one core can count on of a cache that it shares: virtual machines show the whole host's last level.
_MOST_BYTES = 64 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_TYPICAL = ((1, 32 << 10), (2, 1 << 20), (3, 16 << 20))  # where Linux says nothing (some virtual machines)


@dataclass(frozen=True)
class Cache:
    """One level of cache, all the parts of it that the CPUs can use together."""

    level: int
    size_bytes: int


def data_caches(cpus: Sequence[int], sysfs: Path = SYSFS) -> tuple[Cache, ...]:
    """Levels from the inside out. A cache shared by several of the CPUs counts once."""
    sizes: dict[int, int] = {}
    seen: set[tuple[int, str]] = set()
    for cpu in cpus:
        for level, size_bytes, shared in _of_cpu(sysfs / f"cpu{cpu}" / "cache"):
            if (level, shared) not in seen:
                seen.add((level, shared))
                sizes[level] = min(sizes.get(level, 0) + size_bytes, _MOST_BYTES)
    if not sizes:
        sizes = {level: size * (len(cpus) if level < 3 else 1) for level, size in _TYPICAL}
    return tuple(Cache(level, size) for level, size in sorted(sizes.items()))


def _of_cpu(folder: Path) -> Iterable[tuple[int, int, str]]:
    for index in sorted(folder.glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            size = (index / "size").read_text().strip()
            level = int((index / "level").read_text())
            yield level, int(size[:-1]) * _UNITS[size[-1]], (index / "shared_cpu_list").read_text().strip()
        except (OSError, ValueError, KeyError, IndexError):
            continue  # a level that Linux does not describe
