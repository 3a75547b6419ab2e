"""What a compiled kernel takes of a multiprocessor, read from ptxas's own report."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    registers: int  # per thread
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    shared_bytes: int  # static, per block
    barriers: int

    @property
    def spilled_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PATTERNS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "barriers": re.compile(r"used (\d+) barriers"),
}


def read_resources(log: str) -> dict[str, Resources]:
    """Per entry, under its PTX name. A number ptxas does not print is zero."""
    parts = _ENTRY.split(log)[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        own = text.split("Compile time", 1)[0]
        numbers = {field: pattern.search(own) for field, pattern in _PATTERNS.items()}
        found[name] = Resources(**{field: int(match[1]) if match else 0 for field, match in numbers.items()})
    return found
