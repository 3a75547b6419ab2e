"""Kernels with a planted bug, and their sound twins: `planted/*.cu` hold many kernel files one after another.

A line that is to blame ends with `// BUG kind | kind`; a kernel without such a line has nothing wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cupilot.device.base import Died, Ran, Ring
from cupilot.device.cuda_emulated.device import CudaEmulated
from cupilot.device.cuda_emulated.faults import Fault
from cupilot.kernel.binding import bind
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle
from cupilot.types import DType, Failed, Role, Signature, TensorSpec

FOLDER = Path(__file__).parent / "planted"
_BUG = re.compile(r"// BUG (.*)")
_SIGNATURE = Signature(
    (TensorSpec("x", (256,), DType.F32, Role.INPUT),),
    {},
    (TensorSpec("out", (256,), DType.F32, Role.OUTPUT),),
)


@dataclass(frozen=True)
class Planted:
    group: str
    kernel: KernelFile
    expected: Mapping[int, tuple[str, ...]]  # line -> kinds; empty for a sound twin

    @property
    def name(self) -> str:
        return self.kernel.summary

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


def all_planted() -> Iterator[Planted]:
    for path in sorted(FOLDER.glob("*.cu")):
        for text in re.split(r"(?m)^(?=/\* cupilot)", path.read_text())[1:]:
            expected = {
                number: tuple(kind.strip() for kind in match[1].split("|"))
                for number, line in enumerate(text.splitlines(), 1)
                if (match := _BUG.search(line))
            }
            yield Planted(path.stem, parse_kernel(text), expected)


def find(planted: Planted, order_seed: int, arch: str = "sm_80") -> Fault | None:
    """What the emulator finds in one call, on ones."""
    device = CudaEmulated(arch)
    compiled = device.compile(planted.kernel, {}, _SIGNATURE)
    assert not isinstance(compiled, Failed), compiled
    plan = run(planted.kernel.launch, bind(planted.kernel, _SIGNATURE, {}), grid_style=GridStyle.CUDA)
    opened = device.open(compiled, plan, _SIGNATURE, Ring(1, 1))
    assert not isinstance(opened, Failed), opened
    with opened as session:
        session.write(0, {"x": np.ones(256, np.float32)})
        outcome = session.run(0, 1, order_seed, limit_s=60)
        if isinstance(outcome, Ran):
            return None
        assert isinstance(outcome, Died) and session.fault is not None, outcome
        return session.fault


def is_right(planted: Planted, found: Fault | None) -> bool:
    if found is None:
        return not planted.expected
    return found.kind in planted.expected.get(found.line, ())
