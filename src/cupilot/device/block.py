"""The parameter block a runner is started with: the plan as addresses and numbers, in 8-byte words.

The mirror of what native/runner.cpp reads. Texts are padded with zeros to whole words.
"""

from __future__ import annotations

import os
import struct

from cupilot.device.base import Compiled, ElementKind, Parameter, Ring
from cupilot.device.layout import Layout
from cupilot.kernel.plan import Launch, Plan, TensorArg, Zero

CPU_LIMIT_S = 900
_MAGIC = 0x3152544F4C495055
_VALUE, _INPUT_SLOT, _OUTPUT_SLOT, _FIXED = range(4)
_BEYOND_BUFFERS = 1 << 30  # address space for libraries and the first thread's stack
_PER_THREAD = 16 << 20


def pack_block(compiled: Compiled, plan: Plan, layout: Layout, ring: Ring, threads: int) -> bytes:
    kernels = list(dict.fromkeys(step.kernel for step in plan.steps if isinstance(step, Launch)))
    address_space = layout.size + _BEYOND_BUFFERS + threads * _PER_THREAD
    words = [os.getpid(), threads, ring.inputs, ring.outputs, layout.size, address_space, CPU_LIMIT_S]
    words += [len(kernels), len(plan.steps), *_text(str(compiled.library))]
    for name in kernels:
        words += _text(f"cupilot_entry_{name}")
    for step in plan.steps:
        match step:
            case Zero(name):
                words += [1, 0, 0, 1, 1, 1, layout.place(name).size, 1, *_pointer(layout, name)]
            case Launch():
                grid = (*step.grid, 1, 1)[:3]
                words += [0, kernels.index(step.kernel), len(step.grid), *grid, 0, len(step.args)]
                parameters = compiled.kernels[step.kernel][len(step.grid) :]
                for argument, parameter in zip(step.args, parameters, strict=True):
                    if isinstance(argument, TensorArg):
                        words += _pointer(layout, argument.name)
                    else:
                        words += [_VALUE, _bits(argument, parameter), 0]
    return struct.pack(f"<{len(words) + 2}Q", _MAGIC, len(words), *words)


def _pointer(layout: Layout, name: str) -> tuple[int, int, int]:
    place = layout.place(name)
    ring = _INPUT_SLOT if place in layout.inputs else _OUTPUT_SLOT if place in layout.outputs else _FIXED
    return ring, place.offset, place.stride


def _bits(value: int | float, parameter: Parameter) -> int:
    """A number as its parameter's type holds it, in the low bytes of a word."""
    if parameter.kind is ElementKind.FLOATING:
        layout = {2: "<e", 4: "<f", 8: "<d"}[parameter.width_bytes]
        return int.from_bytes(struct.pack(layout, value), "little")
    return int(value) & ((1 << 8 * parameter.width_bytes) - 1)


def _text(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 8)
    return [len(data) // 8, *struct.unpack(f"<{len(data) // 8}Q", data)]
